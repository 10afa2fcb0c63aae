// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func TestAnObjectIsPutBackButForWhatIsMaskedOrIgnored(t *testing.T) {
	const (
		authorized = `{"spec":{"replicas":3,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"shop:1"}]}}}}`
		head       = `{"metadata":{"name":"web","labels":{"team":"shop"}},"spec":{"replicas":`
		tail       = `,"template":{"metadata":{"annotations":{"mesh":"on","extra":"1"},"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"evil:1"}]}}}}`
		drifted    = head + `7,"revisionHistoryLimit":5` + tail
	)
	w := newWorld(t)
	spec := testGuardSpec()
	spec.Ignore = []string{"/spec/revisionHistoryLimit"}
	spec.ExpectedWriters = append(spec.ExpectedWriters, v1alpha1.ExpectedWriter{
		Name: "mesh", Paths: []string{"/spec/template/metadata/annotations/mesh"}, Writers: v1alpha1.Writers{Users: []string{"mesh"}},
	})
	w.guard("shop", spec, testNow)
	for name, tc := range map[string]struct {
		masks []string
		want  string // the object afterwards
	}{
		"all of it, and a map that was not there goes whole": {nil,
			head + `3,"revisionHistoryLimit":5,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"shop:1"}]}}}}`},
		"seven replicas of an autoscaler stay seven": {[]string{"/spec/replicas"},
			head + `7,"revisionHistoryLimit":5,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"shop:1"}]}}}}`},
		"of a map the masked entry stays": {[]string{"/spec/template/metadata/annotations/mesh"},
			head + `3,"revisionHistoryLimit":5,"template":{"metadata":{"annotations":{"mesh":"on"},"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"shop:1"}]}}}}`},
		"a mask of another place keeps nothing": {[]string{"/spec/paused", "/spec/template/metadata/annotations"},
			head + `3,"revisionHistoryLimit":5,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"shop:1"}]}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var masks []v1alpha1.Mask
			for _, path := range tc.masks {
				masks = append(masks, v1alpha1.Mask{Path: path})
			}
			changes, err := PutBack([]byte(drifted), []byte(authorized), w.gvk, w.rules, masks)
			if err != nil {
				t.Fatal(err)
			}
			got, skipped, err := diff.Apply([]byte(drifted), w.gvk, changes)
			if err != nil || len(skipped) > 0 {
				t.Fatalf("applying %v: skipped %v: %v", changes, skipped, err)
			}
			if diff := cmp.Diff(string(w.parse([]byte(tc.want)).AppendCanonical(nil)), string(w.parse(got).AppendCanonical(nil))); diff != "" {
				t.Errorf("the object (-want +got):\n%s", diff)
			}
			if !strings.Contains(string(got), `"team":"shop"`) {
				t.Errorf("the metadata is another one: %s", got)
			}
		})
	}
}

func TestWhatCannotBeReadIsNotPutBack(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct{ object, authorized, want string }{
		"the object":          {"{", "{}", "reading the object: "},
		"the authorized body": {"{}", "{", "reading the authorized body: "},
	} {
		t.Run(name, func(t *testing.T) {
			changes, err := PutBack([]byte(tc.object), []byte(tc.authorized), w.gvk, w.rules, nil)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || len(changes) > 0 {
				t.Errorf("the changes are %v and the error is %v", changes, err)
			}
		})
	}
}
