// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
)

var drawnKinds = map[string]canon.GVK{"Pod": pod, "Deployment": deployment, "Service": service, "Widget": custom}

func drawBody(t *rapid.T) (canontest.Members, canon.GVK) {
	kind := rapid.SampledFrom([]string{"Deployment", "Pod", "Service", "Widget"}).Draw(t, "object")
	return canontest.Body(t, kind), drawnKinds[kind]
}

var drawnExclusions = []string{
	"/spec/replicas", "/spec/template/spec/containers/[name=app]", "/spec/template/spec/containers/*/env/[name=a]/value",
	"/spec/containers/*/env", "/spec/*", "/data/a", "/spec/template/metadata/*/b", "/spec/ports/*/name", "/nosuch", "",
	"/spec/initContainers/*", "/spec/template/spec/volumes/[name=b]/secret/*", "/spec/*/*", "/spec/a/y~1y",
}

func TestHashesEqualTheNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object, gvk := drawBody(t)
		body := canontest.Write(t, object)
		texts := rapid.SliceOfN(rapid.SampledFrom(drawnExclusions), 0, 3).Draw(t, "exclude")
		want, err := naiveCanonical(body, gvk, texts...)
		if err != nil {
			t.Fatal(err)
		}
		d, err := canon.Parse(body, gvk)
		if err != nil {
			t.Fatal(err)
		}
		paths := make([]canon.Path, len(texts))
		for i := range texts {
			if paths[i], err = canon.ParsePath(texts[i]); err != nil {
				t.Fatal(err)
			}
		}
		got := d.AppendCanonical(nil, paths...)
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("canonical form of %s without %q (-want +got):\n%s", body, texts, diff)
		}
		if hash := d.Hash(paths...); string(hash) != naiveHash(want, gvk) {
			t.Errorf("hash is %s, that of the canonical bytes is %s", hash, naiveHash(want, gvk))
		}
		d.Release()
	})
}

func TestTheStyleOfABodyDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object, gvk := drawBody(t)
		a, err := canon.Parse(canontest.Write(t, object), gvk)
		if err != nil {
			t.Fatal(err)
		}
		b, err := canon.Parse(canontest.Write(t, object), gvk)
		if err != nil {
			t.Fatal(err)
		}
		if a.Hash() != b.Hash() {
			t.Errorf("hashes are %s and %s of\n%s\n%s", a.Hash(), b.Hash(), a.Root().Raw(), b.Root().Raw())
		}
		for _, name := range []string{"spec", "data", "metadata"} {
			if !a.Root().Get(name).Equal(b.Root().Get(name)) {
				t.Errorf("%s is not Equal of\n%s\n%s", name, a.Root().Raw(), b.Root().Raw())
			}
		}
	})
}

func TestCanonicalFormIsAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object, gvk := drawBody(t)
		d, err := canon.Parse(canontest.Write(t, object), gvk)
		if err != nil {
			t.Fatal(err)
		}
		once := d.AppendCanonical(nil)
		if !json.Valid(once) {
			t.Fatalf("canonical form is no JSON: %s", once)
		}
		again, err := canon.Parse(once, gvk)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(once), string(again.AppendCanonical(nil))); diff != "" {
			t.Errorf("canonical form of the canonical form (-want +got):\n%s", diff)
		}
	})
}

func TestEqualValuesHaveEqualCanonicalForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(0, 2).Draw(t, "depth")
		body := canontest.Write(t, canontest.Members{
			{Key: "a", Value: canontest.Value(t, depth)}, {Key: "b", Value: canontest.Value(t, depth)},
		})
		d, err := canon.Parse(body, custom)
		if err != nil {
			t.Fatal(err)
		}
		a, b := d.Root().Get("a"), d.Root().Get("b")
		want := bytes.Equal(a.AppendCanonical(nil), b.AppendCanonical(nil))
		if got := a.Equal(b); got != want {
			t.Errorf("Equal is %v, want %v: %s", got, want, body)
		}
	})
}

// The two sides are seen through exclusions of their own.
func TestEqualSeesWhatIsExcluded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object, gvk := drawBody(t)
		d, err := canon.Parse(canontest.Write(t, object), gvk)
		if err != nil {
			t.Fatal(err)
		}
		view := func(name string) canon.Value {
			p, err := canon.ParsePath(rapid.SampledFrom(drawnExclusions).Draw(t, name))
			if err != nil {
				t.Fatal(err)
			}
			return d.RootWithout(p).Get("spec")
		}
		a, b := view("a"), view("b")
		want := bytes.Equal(a.AppendCanonical(nil), b.AppendCanonical(nil))
		if got := a.Equal(b); got != want {
			t.Errorf("Equal is %v, want %v:\n%s\n%s", got, want, a.AppendCanonical(nil), b.AppendCanonical(nil))
		}
	})
}

func TestEqualOfOneTextWithAndWithoutExclusion(t *testing.T) {
	// Canonical as written, so that nothing but the exclusion tells them apart.
	d := parse(t, []byte(`{"spec":{"a":{"b":1,"c":2}}}`), custom)
	exclude := path(t, "/spec/a/b")
	whole, masked := d.Root().Get("spec"), d.RootWithout(exclude).Get("spec")
	if whole.Equal(masked) || masked.Equal(whole) || !masked.Equal(d.RootWithout(exclude).Get("spec")) {
		t.Error("an exclusion does not count in Equal")
	}
}

// Large parts go past the encoder's buffer; the order must hold all the same.
func TestLargePartsAreHashedInOrder(t *testing.T) {
	large := `{"k":"` + strings.Repeat("x", 40<<10) + `"}`
	for name, body := range map[string]string{
		"canonical as written": `{"a":{"n":1},"b":` + large + `,"c":2}`,
		"sorted first":         `{"c":2,"b":` + large + `,"a":{"n":1.0}}`,
		"a list of them":       `{"a":[` + large + "," + large + `],"b":[1,2.0,` + large + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			want, err := naiveCanonical([]byte(body), custom)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(bodyHash(t, body, custom)); got != naiveHash(want, custom) {
				t.Errorf("hash is %s, want %s", got, naiveHash(want, custom))
			}
		})
	}
}

func TestNumbersEqualTheNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		literal := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?`).Draw(t, "number")
		got := canonicalNumber(t, literal)
		if diff := cmp.Diff(naiveNumber(literal), got); diff != "" {
			t.Errorf("canonical form of %s (-want +got):\n%s", literal, diff)
		}
		a, _ := new(big.Rat).SetString(literal)
		b, ok := new(big.Rat).SetString(got)
		if !ok || a.Cmp(b) != 0 {
			t.Errorf("%s became %s, another number", literal, got)
		}
	})
}

type fataler interface{ Fatal(args ...any) }

func canonicalNumber(t fataler, literal string) string {
	d, err := canon.Parse([]byte(`{"n":`+literal+`}`), custom)
	if err != nil {
		t.Fatal(err)
	}
	return string(d.Root().Get("n").AppendCanonical(nil))
}

func TestCanonicalNumbers(t *testing.T) {
	for literal, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "0e5": "0", "-0E-5": "0",
		"1": "1", "1.0": "1", "1e0": "1", "10": "10", "-10.50": "-10.5", "1.50e1": "15",
		"100000000000000000000":    "100000000000000000000",
		"1e20":                     "100000000000000000000",
		"1e21":                     "1e21",
		"999999999999999999999":    "999999999999999999999",
		"1234567890123456789012":   "123456789012345678901" + "2e0",
		"12345678901234567890120":  "123456789012345678901" + "2e1",
		"0.000001":                 "0.000001",
		"0.0000012":                "0.0000012",
		"0.0000001":                "1e-7",
		"123456789012345678901.5":  "123456789012345678901.5",
		"1234567890123456789012.5": "12345678901234567890125e-1",
		"9007199254740993":         "9007199254740993",
		"1e999999999":              "1e999999999",
		"1e-999999999":             "1e-999999999",
		"0.001e-999999999":         "1e-1000000002",
		"-1.5E+0000000003":         "-1500",
	} {
		t.Run(literal, func(t *testing.T) {
			if got := canonicalNumber(t, literal); got != want {
				t.Errorf("canonical form is %s, want %s", got, want)
			}
		})
	}
}

func TestHashingIsSafeForConcurrentReaders(t *testing.T) {
	d := parse(t, canontest.Deployment(8<<10), deployment)
	exclude := []canon.Path{path(t, "/spec/replicas"), path(t, "/spec/template/spec/containers/*/env")}
	want, guarded := d.Hash(), d.Hash(exclude...)
	results := make(chan error)
	const readers = 8
	for range readers {
		go func() {
			var err error
			for range 50 {
				if a, b := d.Hash(), d.Hash(exclude...); a != want || b != guarded {
					err = fmt.Errorf("hashes are %s and %s, want %s and %s", a, b, want, guarded)
				}
			}
			results <- err
		}()
	}
	for range readers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestAllocationsOfAHash(t *testing.T) {
	const limit = 50 // the figure to reach is 150; with -race, pools forget on purpose
	body := canontest.Deployment(20 << 10)
	exclude := []canon.Path{path(t, "/spec/replicas"), path(t, "/spec/template/spec/containers/*/image")}
	for name, run := range map[string]func() (canon.Hash, error){
		"plain":   func() (canon.Hash, error) { return canon.HashBody(body, deployment) },
		"guarded": func() (canon.Hash, error) { return canon.HashBody(body, deployment, exclude...) },
	} {
		t.Run(name, func(t *testing.T) {
			got := testing.AllocsPerRun(50, func() {
				if _, err := run(); err != nil {
					t.Fatal(err)
				}
			})
			if got > limit {
				t.Errorf("%v allocations, want at most %d", got, limit)
			}
		})
	}
}

func TestANumberOfManyDigitsIsKept(t *testing.T) {
	digits := strings.Repeat("7", 100_000)
	if got := canonicalNumber(t, digits); got != digits+"e0" {
		t.Errorf("canonical form has %d bytes, want %d", len(got), len(digits)+2)
	}
}
