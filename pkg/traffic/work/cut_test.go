// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestNext_EndsAlikeWhereverItIsCut ends the executor at a write after another, has another writer
// move resourceVersions in between, and compares the end with that of an executor that lived.
func TestNext_EndsAlikeWhereverItIsCut(t *testing.T) {
	cuts := 0
	rapid.Check(t, func(t *rapid.T) {
		verb := rapid.SampledFrom([]v1alpha1.ReleaseWorkVerb{v1alpha1.WorkCreateClone, v1alpha1.WorkScale, v1alpha1.WorkUpdateBaseline, v1alpha1.WorkHoldMinReplicas}).Draw(t, "verb")
		replicas := rapid.Int32Range(0, 4).Draw(t, "replicas")
		before := rapid.Int32Range(-1, 4).Draw(t, "replicas of the clone before; below zero there is none")
		isGroup := verb == v1alpha1.WorkScale && rapid.Bool().Draw(t, "of a group")
		begin := func() *world {
			if isGroup {
				return newGroups(t, "canary", replicas, 4, 0)
			}
			w := newWorld(t, verb, replicas)
			if verb == v1alpha1.WorkHoldMinReplicas && before > 0 { // an earlier work has raised the minimum from 1
				w.facts.Holding = holding(1, before)
			}
			if before >= 0 {
				w.withClone(t, before)
			}
			return w
		}
		alive := begin()
		alive.carry(t)
		hurt := begin()
		for n := range rapid.IntRange(1, 6).Draw(t, "cuts") {
			hurt.cut = hurt.sent + rapid.IntRange(1, 3).Draw(t, fmt.Sprint("cut ", n))
			hurt.early = rapid.Bool().Draw(t, "early")
			if _, cut := hurt.carry(t); cut {
				cuts++
			}
			if rapid.Bool().Draw(t, "a controller writes the status") {
				hurt.touch()
			}
		}
		hurt.cut = 0
		hurt.carry(t)
		if hurt.writes > 1 || hurt.writes != alive.writes {
			t.Fatalf("%d writes of the target, and %d of an executor that lived", hurt.writes, alive.writes)
		}
		ignored := cmpopts.IgnoreMapEntries(func(key string, _ any) bool { return key == "uid" || key == "resourceVersion" })
		for name, pair := range map[string][2]*unstructured.Unstructured{"baseline": {alive.baseline, hurt.baseline}, "clone": {alive.clone, hurt.clone}, "autoscaler": {alive.autoscaler(), hurt.autoscaler()}} {
			if diff := cmp.Diff(pair[0], pair[1], ignored); diff != "" {
				t.Fatalf("the %s (-alive +hurt):\n%s", name, diff)
			}
		}
		if a, h := alive.work.Status, hurt.work.Status; a.Phase != h.Phase || a.Reason != h.Reason || a.TemplateHash != h.TemplateHash || cmp.Diff(a.Held, h.Held) != "" {
			t.Fatalf("the end: %+v, and of an executor that lived %+v", h, a)
		}
	})
	if cuts == 0 {
		t.Fatal("the executor was never cut, so this proves nothing")
	}
}

// touch moves resourceVersions, as controllers do that write a status.
func (w *world) touch() {
	for _, object := range []*unstructured.Unstructured{w.baseline, w.clone, w.autoscaler()} {
		if object != nil {
			w.version++
			object.SetResourceVersion(fmt.Sprint(w.version))
		}
	}
}
