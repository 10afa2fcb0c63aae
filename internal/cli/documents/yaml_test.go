// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// decode reads JSON with its numbers as float64: what both conversions agree on.
func decode(t interface{ Fatalf(string, ...any) }, data []byte) any {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}

// TestResolvePlain_IsKubectls compares each spelling with the library that
// kubectl reads manifests with.
func TestResolvePlain_IsKubectls(t *testing.T) {
	alphabet := rapid.SampledFrom([]rune("01789+-._eExXoObBaAfFnNyYtTrRuUsSlLiIkK~:TZ "))
	rapid.Check(t, func(t *rapid.T) {
		plain := strings.TrimSpace(rapid.StringOfN(alphabet, 1, 12, -1).Draw(t, "plain"))
		if strings.HasPrefix(plain, "0b-") || strings.HasPrefix(plain, "0b+") || plain == "-" || plain == "---" || plain == "..." {
			t.Skip("the library reads a sign inside a binary number, and dashes as structure")
		}
		if s := resolvePlain(plain); plain != "" && s.kind == scalarDecimal {
			if _, err := strconv.ParseFloat(s.text, 64); err != nil {
				t.Skip("a decimal beyond float64 is a string to the library; here it hashes like its JSON")
			}
		}
		input := []byte("k: " + plain + "\n")
		want, err := yaml.YAMLToJSON(input)
		if err != nil {
			t.Skip("no valid YAML")
		}
		docs, err := Parse("x", input)
		if err != nil {
			if strings.Contains(err.Error(), "has no JSON form") {
				return // .inf and .nan become null there, an error here
			}
			t.Fatalf("%q: %v, kubectl has %s", input, err, want)
		}
		if diff := cmp.Diff(decode(t, want), decode(t, docs[0].Body)); diff != "" {
			t.Fatalf("%q (-kubectl +ours):\n%s", input, diff)
		}
	})
}

// TestReadYAML_IsKubectls generates documents from nested values and compares
// the conversion of their YAML with the values.
func TestReadYAML_IsKubectls(t *testing.T) {
	scalar := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return invocation.Printable(strings.ToValidUTF8(s, "")) }), // the library cannot write control characters
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
		rapid.SampledFrom([]any{"yes", "0x10", "1e3", "~", "2001-01-01", "- a", "a: b", "#", "<<", "\u2028", "é\n\tü"}),
	)
	value := scalar
	for range 3 {
		inner := value
		value = rapid.OneOf(
			scalar,
			rapid.Map(rapid.SliceOfN(inner, 0, 4), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-zé0-9.:/ -]{1,8}`), inner, 0, 4), func(m map[string]any) any { return m }),
		)
	}
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), value, 1, 4).Draw(t, "object")
		written, err := yaml.Marshal(object)
		if err != nil {
			t.Fatalf("writing: %v", err)
		}
		docs, err := Parse("x", written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		asJSON, err := json.Marshal(object)
		if err != nil {
			t.Fatalf("writing: %v", err)
		}
		want, err := canon.HashBody(asJSON, canon.GVK{})
		if err != nil {
			t.Fatalf("%s: %v", asJSON, err)
		}
		if got, err := canon.HashBody(docs[0].Body, canon.GVK{}); err != nil || got != want {
			t.Fatalf("YAML\n%sbecame %s, want %s (%v)", written, docs[0].Body, asJSON, err)
		}
	})
}

func TestReadYAML_KeysAndMergesAreKubectls(t *testing.T) {
	cases := map[string]string{
		"integer, decimal and boolean keys":     "1: a\n1.50: b\ntrue: c\n0x10: d\n-7: e\n",
		"quoted keys stay as they are":          "\"1\": a\n'yes': b\n",
		"explicit keys win over merged ones":    "b: &b {x: 1, y: 2}\nc: {<<: *b, x: 3}\n",
		"a merge may follow other keys":         "b: &b {x: 1}\nc: {w: 3, <<: *b}\n",
		"of several merges the first wins":      "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b], z: 3}\n",
		"merges merge what they merge":          "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}\n",
		"a quoted << is a key":                  "a: {\"<<\": 1}\n",
		"aliases stand for what they point to":  "a: &a [1, {b: &b two}]\nc: *a\nd: *b\n",
		"an anchored key":                       "? &k key\n: 1\nother: *k\n",
		"block scalars keep and strip newlines": "a: |+\n  x\n\nb: >\n  x\n  y\nc: |-\n  x\n",
		"an empty value":                        "a:\nb: {}\nc: []\n",
	}
	for name, input := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := yaml.YAMLToJSON([]byte(input))
			if err != nil {
				t.Fatal(err)
			}
			docs, err := Parse("x", []byte(input))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, want), decode(t, docs[0].Body)); diff != "" {
				t.Errorf("(-kubectl +ours):\n%s", diff)
			}
		})
	}
}

func TestJSONDecimal_KeepsEveryDigit(t *testing.T) {
	cases := map[string]string{
		"0.1000000000000000055511151231257827": "0.1000000000000000055511151231257827",
		"+.50":                                 "0.50", "-.5": "-0.5", "1.": "1", "1.e3": "1e3", "007.5": "7.5", "-0.0": "-0.0", "1E+05": "1E+05", "000": "0",
	}
	for yamlText, want := range cases {
		got := jsonDecimal(yamlText)
		if got != want || !json.Valid([]byte(got)) {
			t.Errorf("%s became %s, want %s", yamlText, got, want)
		}
	}
}

func TestPlaces_CountsBytesInLinesOfAllKinds(t *testing.T) {
	const text = "é: 1\r\nb: 2\rc: ü\u2028d: 4\u0085f: [1, é, x]\n"
	docs, err := readYAML("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	// Each key of the JSON form leads back to its value in the text.
	for _, value := range []string{"1", "2", "ü", "4"} {
		at := bytes.Index(docs[0].Body, []byte(":"+strings.TrimSuffix(string(resolvePlain(value).json()), "\n"))) + 1
		if got := docs[0].Locate(at); !strings.HasPrefix(text[got:], value) {
			t.Errorf("the value %s at %d of %s leads to %q", value, at, docs[0].Body, text[got:])
		}
	}
}
