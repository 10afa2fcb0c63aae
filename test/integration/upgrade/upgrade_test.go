// SPDX-License-Identifier: Apache-2.0

//go:build integration

package upgrade

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// each is how many objects of each kind there are, half of them imported; 506 in all.
const each = 22

// newDefaults are the defaults of Kubernetes 1.37 that 1.30 lacks, by kind.
var newDefaults = map[string][]string{
	"StatefulSet": {"/spec/updateStrategy/rollingUpdate/maxUnavailable"},
}

func TestAnUpgradeOfTheAPIServerIsNoDrift(t *testing.T) {
	for name, away := range map[string]bool{
		"while the assessor runs":                           false,
		"of which the assessor learns when it starts again": true,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.coversAllKinds()
			objects := w.populate()
			before := w.served()
			if away {
				must(t, w.assessor.Stop())
			}
			w.upgrade()
			if away {
				w.startAssessor()
			}
			w.logDifferences(before)
			w.staysInSync(objects)
			w.findsDrift("imported-0")
			must(t, w.assessor.Stop())
			w.startAssessor()
			w.findsDrift("imported-1")
			w.staysInSync(slices.DeleteFunc(objects, func(o object) bool { return o.name == "imported-0" || o.name == "imported-1" }))
		})
	}
}

// coversAllKinds checks that the test has an object of each kind that can be guarded.
func (w *world) coversAllKinds() {
	w.t.Helper()
	var have, want []string
	for i := range kinds {
		if !strings.HasPrefix(kinds[i].apiVersion, "example.org/") {
			have = append(have, kinds[i].gvk().GroupKind().String())
		}
	}
	for _, k := range w.guardable() {
		if k.Group != "example.org" {
			want = append(want, k.String())
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if diff := cmp.Diff(want, have); diff != "" {
		w.t.Fatalf("the kinds that can be guarded on %s, and those of this test (-guardable +test):\n%s", w.version(), diff)
	}
}

// populate makes objects of each kind, some of them before the guard, and waits until
// all are in sync.
func (w *world) populate() []object {
	w.t.Helper()
	stamped := func(k *kind) bool { return !k.unstamped }
	imported := append(objectsOf("imported", each/2, stamped), objectsOf("imported", each, func(k *kind) bool { return k.unstamped })...)
	created := objectsOf("created", each/2, stamped)
	w.create(imported)
	w.guardAll()
	w.stamps()
	w.create(created)
	all := slices.Concat(imported, created)
	w.allAre("all objects are in sync on the old API server", all, authorizes(1))
	w.t.Logf("%d objects of %d kinds are in sync on %s", len(all), len(kinds), w.version())
	return all
}

// logDifferences tells in which form the upgraded API server serves unchanged objects.
func (w *world) logDifferences(before map[string]map[string]any) {
	w.t.Helper()
	after, seen := w.served(), map[string]int{}
	for name := range before {
		kind, _, _ := strings.Cut(name, " ")
		for _, d := range differences("", before[name], after[name]) {
			seen[kind+" "+d]++
		}
	}
	for _, d := range slices.Sorted(maps.Keys(seen)) {
		w.t.Logf("%d objects are served otherwise: %s", seen[d], d)
	}
}

// staysInSync waits until all Baselines are in sync with what the upgraded API server
// serves, and checks that new defaults, and no writers, are told.
func (w *world) staysInSync(objects []object) {
	w.t.Helper()
	w.allAre("all objects are in sync on the new API server", objects, func(o object, b *v1alpha1.Baseline) error {
		if len(newDefaults[o.kind.name]) == 0 {
			return authorizes(1)(o, b)
		}
		if by := b.Spec.Authorized.By; by != "system:apiserver" {
			return fmt.Errorf("the revision is authorized by %s", by)
		}
		return authorizes(2)(o, b)
	})
	want := map[string]int{}
	for kind, paths := range newDefaults {
		for _, path := range paths {
			want[kind+" "+path] = 1
		}
	}
	got := map[string]int{}
	w.Eventually("the new defaults are told", func() error { // events are written beside the status
		if got = w.toldDefaults(); len(got) < len(want) {
			return fmt.Errorf("told are %v", got)
		}
		return nil
	})
	w.t.Logf("%d events ServerDefault: %v", len(got), got)
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("events about new defaults, by kind and path (-want +got):\n%s", diff)
	}
	names := map[string]bool{}
	for _, o := range objects {
		names[o.baseline()] = true
	}
	for _, e := range w.events() {
		if e.Type == "Warning" && names[e.Related.Name] {
			w.t.Errorf("%s of %s: %s", e.Reason, e.Related.Name, e.Note)
		}
	}
}

// events are those about objects that have Baselines.
func (w *world) events() []eventsv1.Event {
	w.t.Helper()
	var list eventsv1.EventList
	w.Must(w.cluster.Admin.List(w.Ctx(), &list, client.InNamespace(w.Name)))
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Related == nil || e.Related.Kind != "Baseline" })
}

// toldDefaults counts the events about new defaults, by kind and path.
func (w *world) toldDefaults() map[string]int {
	w.t.Helper()
	told := map[string]int{}
	for _, e := range w.events() {
		if e.Reason != string(specguard.ReasonServerDefault) {
			continue
		}
		_, path, _ := strings.Cut(e.Note, "now serves another ")
		path, _, _ = strings.Cut(path, ": it is authorized")
		told[e.Regarding.Kind+" "+path]++
	}
	return told
}

// findsDrift has mallory change one object of each kind that can be changed, and waits
// until each is drift.
func (w *world) findsDrift(name string) {
	w.t.Helper()
	var drifted []object
	for i := range kinds {
		k := &kinds[i]
		if k.path == "" {
			continue
		}
		drifted = append(drifted, object{k, name})
		w.Must(w.As(mallory).Patch(w.Ctx(), k.named(w.Name, name), client.RawPatch(types.JSONPatchType, k.drift())))
	}
	w.allAre("each change by mallory is drift", drifted, func(o object, b *v1alpha1.Baseline) error {
		switch text := guarded.Describe(b); {
		case len(b.Status.Findings) != 1:
			return fmt.Errorf("it has %d findings", len(b.Status.Findings))
		case !o.unstamped && !strings.Contains(text, "by mallory (Untrusted"):
			return errors.New("the finding does not name mallory")
		}
		return nil
	})
}
