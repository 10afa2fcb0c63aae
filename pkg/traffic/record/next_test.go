// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/traffic/record"
)

var all = []evidence.Kind{
	evidence.KindReleaseDecision, evidence.KindWorkIntended, evidence.KindWorkEnded, evidence.KindHistoryGap, evidence.KindHistorySetBack, evidence.KindReleaseGone,
}

// TestNext tells what a chain holds after looks at a release.
func TestNext(t *testing.T) {
	cases := map[string]struct {
		story func(*world, func(...func(*record.Facts)))
		want  []string
	}{
		"a release without a rollout": {func(w *world, look func(...func(*record.Facts))) { w.release.Status.Rollout = nil; look() }, nil},
		"each line once, with the percentage before": {func(w *world, look func(...func(*record.Facts))) {
			w.decide("ab.started", 0)
			look()
			w.decide("canary.stage_started", 10)
			w.decide("canary.stage_started", 50)
			look()
			look()
		}, []string{"ReleaseDecision 1 ab.started >0", "ReleaseDecision 2 canary.stage_started 0>10", "ReleaseDecision 3 canary.stage_started 10>50"}},
		"lines that were lost before they were recorded": {func(w *world, look func(...func(*record.Facts))) {
			w.decide("ab.started", 0)
			look()
			for range 70 {
				w.decide("canary.stage_started", 10)
			}
			w.release.Status.Rollout.History = w.release.Status.Rollout.History[62:]
			look()
		}, []string{"ReleaseDecision 1 ab.started >0", "HistoryGap 2-69", "ReleaseDecision 70 canary.stage_started >10", "ReleaseDecision 71 canary.stage_started 10>10"}},
		"a status that was restored": {func(w *world, look func(...func(*record.Facts))) {
			w.decide("ab.started", 0)
			before := w.release.DeepCopy()
			w.decide("canary.stage_started", 10)
			look()
			w.release = before
			look()
			w.decide("canary.stage_failed", 10)
			look()
		}, []string{
			"ReleaseDecision 1 ab.started >0", "ReleaseDecision 2 canary.stage_started 0>10", "HistorySetBack 2-1", "ReleaseDecision 1 ab.started >0",
			"ReleaseDecision 2 canary.stage_failed 0>10",
		}},
		"a status that was restored and has gone on to the same number": {func(w *world, look func(...func(*record.Facts))) {
			w.decide("ab.started", 0)
			before := w.release.DeepCopy()
			w.decide("canary.stage_started", 10)
			look()
			w.release = before
			w.decide("canary.stage_failed", 10)
			look()
		}, []string{
			"ReleaseDecision 1 ab.started >0", "ReleaseDecision 2 canary.stage_started 0>10", "HistorySetBack 2-2", "ReleaseDecision 1 ab.started >0",
			"ReleaseDecision 2 canary.stage_failed 0>10",
		}},
		"a rollout that is removed and comes back": {func(w *world, look func(...func(*record.Facts))) {
			w.decide("ab.started", 0)
			look()
			w.release.Status.Rollout = nil
			look()
			look()
			w.release.Status.Rollout = &v1alpha1.RolloutStatus{}
			w.decide("ab.created", 0)
			look()
		}, []string{"ReleaseDecision 1 ab.started >0", "HistorySetBack 1-0", "ReleaseDecision 1 ab.created >0"}},
		"a message that the status shortens later": {func(w *world, look func(...func(*record.Facts))) {
			w.decide("ab.started", 0)
			look()
			w.release.Status.Rollout.History[0].Message = ""
			look()
		}, []string{"ReleaseDecision 1 ab.started >0"}},
		"a work, its intents and its end": {func(w *world, look func(...func(*record.Facts))) {
			made := w.ask(v1alpha1.WorkCreateClone, 2)
			look()
			w.intend(made, "5")
			look()
			w.intend(made, "6")
			look()
			look()
			w.end(made, v1alpha1.WorkSucceeded)
			look()
			look()
		}, []string{"WorkIntended web-1-1", "WorkIntended web-1-1", "WorkEnded web-1-1 Succeeded"}},
		"a scale to 0 has no record of its intent": {func(w *world, look func(...func(*record.Facts))) {
			made := w.ask(v1alpha1.WorkScale, 0)
			w.intend(made, "5")
			look()
			w.end(made, v1alpha1.WorkSucceeded)
			look()
		}, []string{"WorkEnded web-1-1 Succeeded"}},
		"the put-back of a minimum has none either": {func(w *world, look func(...func(*record.Facts))) {
			made := w.ask(v1alpha1.WorkHoldMinReplicas, 0)
			w.intend(made, "5")
			look()
		}, nil},
		"a work of another release": {func(w *world, look func(...func(*record.Facts))) {
			made := w.ask(v1alpha1.WorkCreateClone, 2)
			made.Spec.ReleaseUID = "r-0"
			w.end(made, v1alpha1.WorkRefused)
			look()
		}, nil},
		"more works than a cursor names": {func(w *world, look func(...func(*record.Facts))) {
			for range 50 {
				w.end(w.ask(v1alpha1.WorkScale, 0), v1alpha1.WorkSucceeded)
			}
			look()
			look()
		}, fiftyEnds()},
		"a release that is gone, with a line that no look saw": {func(w *world, look func(...func(*record.Facts))) {
			w.decide("ab.started", 0)
			look()
			w.decide("ab.rolled_back", 0)
			look(func(f *record.Facts) { f.Gone = true })
			look(func(f *record.Facts) { f.Gone, f.Release.Status.Rollout = true, nil })
		}, []string{"ReleaseDecision 1 ab.started >0", "ReleaseDecision 2 ab.rolled_back 0>0", "ReleaseGone 2-2"}},
		"a release that is gone, and of which an old state is known": {func(w *world, look func(...func(*record.Facts))) {
			w.decide("ab.started", 0)
			old := w.release.DeepCopy()
			w.decide("ab.rolled_back", 0)
			look()
			look(func(f *record.Facts) { f.Gone, f.Release = true, old })
		}, []string{"ReleaseDecision 1 ab.started >0", "ReleaseDecision 2 ab.rolled_back 0>0", "ReleaseGone 2-2"}},
		"a release that nothing was recorded of is gone": {func(_ *world, look func(...func(*record.Facts))) { look(func(f *record.Facts) { f.Gone = true }) }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, c := newWorld(), &chain{bodies: map[string][]byte{}}
			tc.story(w, func(changes ...func(*record.Facts)) {
				f := w.facts()
				for _, change := range changes {
					change(&f)
				}
				if err := c.look(t, f); err != nil {
					t.Fatal(err)
				}
			})
			if diff := cmp.Diff(tc.want, c.told(all...)); diff != "" {
				t.Errorf("the chain (-want +got):\n%s", diff)
			}
			unique(t, c)
		})
	}
}

func fiftyEnds() []string {
	w := newWorld()
	var out []string
	for range 50 {
		out = append(out, "WorkEnded "+w.ask(v1alpha1.WorkScale, 0).Name+" Succeeded")
	}
	return out
}

// unique fails if a chain tells an event twice.
func unique(t tb, c *chain) {
	t.Helper()
	seen := map[string]int64{}
	for i := range c.records {
		id := c.records[i].ID()
		if before, told := seen[id]; told {
			t.Errorf("records %d and %d tell %s", before, c.records[i].Chain.Sequence, id)
		}
		seen[id] = c.records[i].Chain.Sequence
	}
}

func TestNext_TellsWhoAndWhy(t *testing.T) {
	w := newWorld()
	w.decide("ab.verb_answered", 10)
	w.decide("ab.rolled_back", 0)
	w.release.Status.Effective = &v1alpha1.EffectiveSplit{Sequence: 42}
	w.release.Status.Rollout.Run = &v1alpha1.RolloutRun{Number: 1, State: "RolledBack", Reason: "RollbackRequested"}
	w.release.Status.Rollout.Handled = &v1alpha1.HandledControl{RolloutControl: v1alpha1.RolloutControl{Verb: "Rollback", RequestedBy: "bob\n"}}
	f := w.facts()
	records := record.Next(record.Cursors{}, &f)
	if len(records) != 2 {
		t.Fatalf("%d records", len(records))
	}
	verb, end := &records[0], &records[1]
	if verb.Requester != "alice" || verb.Approver != "bob\uFFFD" || verb.Delivery.Decision.Sequence != 42 || verb.Delivery.Environment != "production" {
		t.Errorf("the answer to a person is %+v", verb)
	}
	if end.Result != (evidence.Result{State: "RolledBack", Reason: "RollbackRequested"}) || end.Approver != "" {
		t.Errorf("the end of the run is %+v", end)
	}
}

// TestNext_RecordsWhatIsForged: what only a foreign writer stores does not keep the chain from going on.
func TestNext_RecordsWhatIsForged(t *testing.T) {
	w, c := newWorld(), &chain{bodies: map[string][]byte{}}
	w.decide("not an event", 0)
	w.release.Status.Rollout.History[0].TrafficPercentage = nil
	made := w.ask(v1alpha1.WorkCreateClone, 2)
	made.Spec.ExpectedHash = "pl1:sha256:00"
	made.Status = v1alpha1.ReleaseWorkStatus{
		Phase: v1alpha1.WorkSucceeded, Intent: &v1alpha1.ReleaseWorkIntent{TemplateHash: "\x00", StorageTime: metav1.NewTime(now)},
		Result: &v1alpha1.ReleaseWorkResult{ResourceVersion: "1", Origin: "Else"},
	}
	made.CreationTimestamp = metav1.NewTime(now)
	if err := c.look(t, w.facts()); err != nil || len(c.records) != 2 {
		t.Fatalf("%v, %v", c.told(all...), err)
	}
}

func TestDecodeCursors_RefusesWhatIsNone(t *testing.T) {
	for name, data := range map[string]string{"no JSON": "{", "nothing": "", "another version": `{"version":2}`} {
		t.Run(name, func(t *testing.T) {
			if _, err := record.DecodeCursors([]byte(data)); err == nil {
				t.Error("it was decoded")
			}
		})
	}
}
