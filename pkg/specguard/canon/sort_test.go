// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
)

// alikeName draws names that begin alike, so that what tells them apart lies
// before, in, and after the bytes that are compared as a number.
func alikeName(t *rapid.T) string {
	beginning := rapid.SampledFrom([]string{"", "S", "SETTING_", "SETTING_OF_THE_", "SETTINé", "T\""}).Draw(t, "beginning")
	return beginning + fmt.Sprint(rapid.IntRange(0, 199).Draw(t, "number"))
}

func checkAgainstTwin(t *rapid.T, object canontest.Members, gvk canon.GVK) {
	body := canontest.Write(t, object)
	want, err := naiveCanonical(body, gvk)
	if err != nil {
		t.Fatal(err)
	}
	d, err := canon.Parse(body, gvk)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(d.AppendCanonical(nil))); diff != "" {
		t.Errorf("canonical form of %s (-want +got):\n%s", body, diff)
	}
	d.Release()
}

// Small and large maps are sorted in two ways.
func TestMapsOfAnySizeAreSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, seen := members{}, map[string]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "members") {
			if name := alikeName(t); !seen[name] {
				seen[name] = true
				data = append(data, member{Key: name, Value: json.Number("1")})
			}
		}
		checkAgainstTwin(t, members{{Key: "data", Value: data}}, custom)
	})
}

// So are lists, and keys of all kinds occur in one.
func TestListsOfAnySizeAreSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := make([]any, rapid.IntRange(0, 60).Draw(t, "elements"))
		onlyNames := rapid.Bool().Draw(t, "only names")
		for i := range env {
			var name any = alikeName(t)
			if !onlyNames && rapid.IntRange(0, 4).Draw(t, "other kind") == 0 {
				name = rapid.SampledFrom([]any{nil, true, false, json.Number("10"), json.Number("9"), json.Number("1.50e1")}).Draw(t, "name")
			}
			env[i] = members{{Key: "name", Value: name}, {Key: "value", Value: fmt.Sprint(i)}}
		}
		container := members{{Key: "name", Value: "app"}, {Key: "env", Value: env}}
		spec := members{{Key: "containers", Value: []any{container}}}
		checkAgainstTwin(t, members{{Key: "spec", Value: spec}}, pod)
	})
}

// A key that comes twice is found wherever the two lie, in maps of any size.
func TestRepeatedKeysAreFoundInMapsOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.Custom(alikeName), 1, 60, rapid.ID).Draw(t, "names")
		repeated := rapid.SampledFrom(names).Draw(t, "repeated")
		names = rapid.Permutation(append(names, repeated)).Draw(t, "order")
		data := members{}
		for _, name := range names {
			data = append(data, member{Key: name})
		}
		_, err := canon.Parse(writeInOrder(data), custom)
		if syntax, ok := errors.AsType[*canon.SyntaxError](err); !ok || syntax.Reason != canon.ReasonDuplicateKey || syntax.Key != repeated {
			t.Errorf("error is %v, want %q twice", err, repeated)
		}
	})
}

func writeInOrder(data members) []byte {
	body := []byte(`{"data":{`)
	for i, m := range data {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(canon.AppendString(body, m.Key), `:1`...)
	}
	return append(body, "}}"...)
}
