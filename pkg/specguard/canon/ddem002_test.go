// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
)

func specHash(tb testing.TB, spec string) canon.Hash {
	tb.Helper()
	h, err := canon.HashSpec([]byte(spec))
	if err != nil {
		tb.Fatalf("hashing %.200s: %v", spec, err)
	}
	return h
}

// wantSameSpec checks that all specs hash alike, and as the published algorithm.
func wantSameSpec(t *testing.T, specs ...string) {
	t.Helper()
	first := specHash(t, specs[0])
	for _, spec := range specs {
		if got := specHash(t, spec); got != first {
			t.Errorf("hash of %s is %s, want %s as of %s", spec, got, first, specs[0])
		}
		want, err := referenceHash([]byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		if got := specHash(t, spec); string(got) != want {
			t.Errorf("hash of %s is %s, the published algorithm gives %s", spec, got, want)
		}
	}
}

func wantOtherSpec(t *testing.T, a, b string) {
	t.Helper()
	if specHash(t, a) == specHash(t, b) {
		t.Errorf("%s and %s hash alike", a, b)
	}
}

func TestUTHash001MapKeyOrderIndependence(t *testing.T) {
	wantSameSpec(t, `{"a":1,"b":{"x":true,"y":null},"c":"z"}`, `{"c":"z","b":{"y":null,"x":true},"a":1}`)
	wantOtherSpec(t, `{"a":1,"b":2}`, `{"a":2,"b":1}`)
}

func TestUTHash002SliceOrderIndependence(t *testing.T) {
	wantSameSpec(t, `{"l":["a","b"]}`, `{"l":["b","a"]}`)
	wantOtherSpec(t, `{"l":["a","b"]}`, `{"l":["a","b","b"]}`)
}

func TestUTHash003NestedMapAndSliceNormalization(t *testing.T) {
	wantSameSpec(t, `{"l":[{"m":[3,1,2]},{"m":[[2,1],[0]]}]}`, `{"l":[{"m":[[0],[1,2]]},{"m":[2,1,3]}]}`)
}

func TestUTHash004RealDeploymentSpec(t *testing.T) {
	spec := specOf(t, canontest.Deployment(4<<10))
	var decoded map[string]any
	if err := json.Unmarshal(spec, &decoded); err != nil {
		t.Fatal(err)
	}
	roundTrip, err := json.MarshalIndent(decoded, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	wantSameSpec(t, string(spec), string(roundTrip))
}

func TestUTHash005PodSpecWithReorderedContainers(t *testing.T) {
	wantSameSpec(t,
		`{"containers":[{"name":"app","image":"app:1"},{"name":"log","image":"log:1"}]}`,
		`{"containers":[{"name":"log","image":"log:1"},{"name":"app","image":"app:1"}]}`)
}

func TestUTHash006EmptyNilAndEmptyMap(t *testing.T) {
	wantSameSpec(t, `{}`, `null`, ` { } `)
	empty := specHash(t, "")
	if want := specHash(t, "{}"); empty != want {
		t.Errorf("hash of no bytes is %s, want %s", empty, want)
	}
	for name, value := range map[string]any{"nil": nil, "nil map": map[string]any(nil)} {
		if got, err := canon.HashValue(value); err != nil || got != empty {
			t.Errorf("hash of %s is %s, %v, want %s", name, got, err, empty)
		}
	}
	wantOtherSpec(t, `{}`, `{"a":null}`)
	wantOtherSpec(t, `{"a":[]}`, `{"a":{}}`)
}

func TestUTHash007FloatPrecision(t *testing.T) {
	wantSameSpec(t, `{"replicas":3}`, `{"replicas":3.0}`, `{"replicas":3e0}`)
	asFloat, err := canon.HashValue(map[string]any{"replicas": float64(3)})
	if err != nil {
		t.Fatal(err)
	}
	asInt, err := canon.HashValue(map[string]any{"replicas": int64(3)})
	if err != nil {
		t.Fatal(err)
	}
	if asFloat != asInt {
		t.Errorf("float64(3) hashes as %s, int64(3) as %s", asFloat, asInt)
	}
	if _, err := canon.HashValue(map[string]any{"x": math.NaN()}); err == nil {
		t.Error("NaN was hashed, want the error of json.Marshal")
	}
}

func TestUTHash008UnicodeStrings(t *testing.T) {
	wantSameSpec(t, `{"s":"grüße 世界 😀"}`, `{"s":"gr\u00fc\u00dfe \u4e16\u754c \ud83d\ude00"}`)
	wantSameSpec(t, `{"s":"<a href=\"x\">&\u2028\b\f"}`, `{"s":"\u003ca href=\u0022x\u0022\u003e\u0026\u2028\u0008\u000c"}`)
	wantSameSpec(t, "{\"s\":\"a\xffb\"}", `{"s":"a\ufffdb"}`)
}

func TestUTHash009LargeSpec(t *testing.T) {
	spec := string(specOf(t, canontest.Deployment(100<<10)))
	if len(spec) < 10<<10 {
		t.Fatalf("spec has %d bytes, want more than 10 KiB", len(spec))
	}
	wantSameSpec(t, spec)
	wantOtherSpec(t, spec, strings.Replace(spec, "SETTING_000", "SETTING_XXX", 1))
}

func TestUTHash010Idempotency(t *testing.T) {
	spec := string(specOf(t, canontest.Deployment(2<<10)))
	want := specHash(t, spec)
	for range 1000 {
		if got := specHash(t, spec); got != want {
			t.Fatalf("hash changed from %s to %s", want, got)
		}
	}
}

func TestUTHash011NestedSlicesOfMaps(t *testing.T) {
	wantSameSpec(t,
		`{"containers":[{"name":"a","volumeMounts":[{"name":"x"},{"name":"y"}]},{"name":"b"}]}`,
		`{"containers":[{"name":"b"},{"volumeMounts":[{"name":"y"},{"name":"x"}],"name":"a"}]}`)
}

func TestUTHash012MixedTypesInSlices(t *testing.T) {
	wantSameSpec(t, `{"l":["s",1,true,null,{"a":1},[2],false]}`, `{"l":[false,[2],{"a":1},null,true,1,"s"]}`)
}

// Each published vector holds for an object with the spec. What the parser refuses no API server answers.
func TestHashBodySpecHasThePublishedHashes(t *testing.T) {
	raw, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var published vectors
	if err := json.Unmarshal(raw, &published); err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, v := range published.DDEM002 {
		body := `{"kind":"Deployment"}`
		if v.Spec != "" {
			body = `{"kind":"Deployment","spec":` + v.Spec + `,"status":{"replicas":7}}`
		}
		got, err := canon.HashBodySpec([]byte(body), deployment)
		switch {
		case v.SpecBase64 != "":
		case err != nil:
			refused = append(refused, v.Name)
		case got != v.Hash:
			t.Errorf("%s: the hash is %s, want %s", v.Name, got, v.Hash)
		}
	}
	if diff := cmp.Diff([]string{"duplicate keys"}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	for name, body := range map[string]string{"a spec that is a list": `{"spec":[]}`, "no JSON": `{"spec":`, "a number beyond float64": `{"spec":{"a":1e400}}`} {
		if got, err := canon.HashBodySpec([]byte(body), custom); err == nil {
			t.Errorf("%s has the hash %s", name, got)
		}
	}
}

func TestHashSpecRefusesWhatIsNoMap(t *testing.T) {
	for name, spec := range map[string]string{
		"a list":                   `[]`,
		"a string":                 `"x"`,
		"trailing data":            `{} {}`,
		"a syntax error":           `{"a":}`,
		"a number beyond float64":  `{"a":1e400}`,
		"an unfinished object":     `{"a":1`,
		"trailing closing bracket": `{}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if h, err := canon.HashSpec([]byte(spec)); err == nil {
				t.Errorf("hash of %s is %s, want an error", spec, h)
			}
		})
	}
}

func TestHashSpecKeepsIntegersExact(t *testing.T) {
	// 2^53+1: float64 would make it 2^53. Read as unstructured objects are.
	wantOtherSpec(t, `{"a":9007199254740993}`, `{"a":9007199254740992}`)
	wantSameSpec(t, `{"a":1e21}`, `{"a":1000000000000000000000}`)
}

func TestHashValuePassesTypedSlicesThrough(t *testing.T) {
	a, errA := canon.HashValue(map[string]any{"l": []string{"a", "b"}})
	b, errB := canon.HashValue(map[string]any{"l": []string{"b", "a"}})
	if errA != nil || errB != nil || a == b {
		t.Errorf("typed slices in two orders hash as %s (%v) and %s (%v), want two hashes", a, errA, b, errB)
	}
}

// drawJSON draws a decoded JSON value of a kind that DD-EM-002 knows.
func drawJSON(t *rapid.T, depth int) any {
	top := 6
	if depth == 0 {
		top = 4
	}
	switch rapid.IntRange(0, top).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return float64(rapid.IntRange(-1<<40, 1<<40).Draw(t, "n")) / rapid.SampledFrom([]float64{1, 1, 1e9, 3}).Draw(t, "by")
	case 3, 4:
		return rapid.String().Draw(t, "string")
	case 5:
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return drawJSON(t, depth-1) }), 0, 5).Draw(t, "list")
	default:
		return rapid.MapOfN(rapid.String(), rapid.Custom(func(t *rapid.T) any { return drawJSON(t, depth-1) }), 0, 5).Draw(t, "map")
	}
}

func TestDDEM002EqualsThePublishedAlgorithm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, err := json.Marshal(map[string]any{"v": drawJSON(t, 4)})
		if err != nil {
			t.Skip("not encodable")
		}
		want, err := referenceHash(spec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := canon.HashSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("hash of %s (-want +got):\n%s", spec, diff)
		}
	})
}

func TestDDEM002LeavesItsInputAlone(t *testing.T) {
	list := []any{"b", "a"}
	if _, err := canon.HashValue(map[string]any{"l": list}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(list, []any{"b", "a"}) {
		t.Errorf("the list was reordered to %v", list)
	}
}

// The hash of the published algorithm could not be had of JSON with half a surrogate pair.
func TestHalfASurrogatePairIsReadAsTheReplacementCharacter(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"a high one alone":           {`{"a":"x\ud83dx"}`, `{"a":"x\ufffdx"}`},
		"a low one alone":            {`{"a":"\ude00"}`, `{"a":"\ufffd"}`},
		"a high one before a pair":   {`{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\ufffd\ud83d\ude00"}`},
		"a pair the wrong way round": {`{"a":"\ude00\ud83d"}`, `{"a":"\ufffd\ufffd"}`},
		"in a key":                   {`{"\uDEAD":1}`, `{"\ufffd":1}`},
		"a pair":                     {`{"a":"\ud83d\ude00"}`, `{"a":"\ud83d\ude00"}`},
		"a backslash before a u":     {`{"a":"\\ud83d"}`, `{"a":"\\ud83d"}`},
		"no JSON at all":             {`{"a":"\ud8`, `{"a":"\ud8`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(canon.ReplaceLoneSurrogates([]byte(tc.src))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Whatever is escaped, what is left is read as before, and by the strict parser as well.
func TestWithoutHalvesOfPairsJSONSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{`\ud83d`, `\uDE00`, `\u0041`, `\\`, `\n`, `u`, `d83d`, `ü`}), 0, 8).Draw(t, "pieces")
		src := `{"a":"` + strings.Join(pieces, "") + `"}`
		out := canon.ReplaceLoneSurrogates([]byte(src))
		var before, after any
		if err := json.Unmarshal([]byte(src), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s (-before +after):\n%s", src, diff)
		}
		parsed, err := canon.Parse(out, canon.GVK{})
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		parsed.Release()
	})
}
