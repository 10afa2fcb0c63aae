// SPDX-License-Identifier: Apache-2.0

package releaserecord

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/traffic/record"
)

func TestEachEnvironmentHasAChainAndTheRestHasOne(t *testing.T) {
	w := newWorld(t)
	w.release(web, "r-1", 2)
	w.release(lone, "r-2", 3)
	r := w.start()
	w.look(r, web)
	w.look(r, lone)
	w.wants("uid-of-production", "2 ReleaseDecision")
	w.wants("uid-of-"+system, "3 ReleaseDecision")
}

func TestAReleaseWithoutAHistoryBeginsNoChain(t *testing.T) {
	w := newWorld(t)
	w.release(web, "r-1", 0)
	r := w.start()
	w.look(r, web)
	w.look(r, types.NamespacedName{Namespace: "shop", Name: "none"})
	w.look(r, types.NamespacedName{Namespace: "none", Name: "none"})
	w.look(r, surveyKey)
	if len(w.asked) > 0 || len(w.store.Names()) > 0 {
		t.Errorf("it asks for %v and writes %v", w.asked, w.store.Names())
	}
}

func TestAReleaseThatWentWhileNoExecutorWasThereIsTold(t *testing.T) {
	w := newWorld(t)
	release := w.release(web, "r-1", 2)
	w.look(w.start(), web)
	if err := w.api.Delete(t.Context(), release); err != nil {
		t.Fatal(err)
	}
	next := w.start()
	w.look(next, surveyKey)
	w.look(next, surveyKey)
	w.look(next, web)
	w.wants("uid-of-production", "2 ReleaseDecision", "1 ReleaseGone")
}

// TestALastStateIsToldOfAReleaseThatWent: the last lines came with the deletion, or before the first look.
func TestALastStateIsToldOfAReleaseThatWent(t *testing.T) {
	for name, seen := range map[string]bool{"the release was recorded before": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			release := w.release(web, "r-1", 2)
			r := w.start()
			if seen {
				w.look(r, web)
			}
			if err := w.api.Delete(t.Context(), release); err != nil {
				t.Fatal(err)
			}
			release.Status.Rollout.History = append(release.Status.Rollout.History, v1alpha1.RolloutEvent{Number: 3, EventTime: metav1.NewTime(now), Event: "ab.rolled_back"})
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			r.followReleases().Delete(t.Context(), event.DeleteEvent{Object: release}, queue)
			if queue.Len() != 1 {
				t.Fatalf("%d looks are due", queue.Len())
			}
			w.release(web, "r-2", 1) // another one has the name already
			w.look(r, web)
			w.look(r, web)
			w.wants("uid-of-production", "3 ReleaseDecision", "1 ReleaseGone", "1 ReleaseDecision")
		})
	}
}

func TestANewProcessTellsNothingAgain(t *testing.T) {
	for name, lose := range map[string]bool{"by the snapshot": false, "by all records, since the snapshots are lost": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			release := w.release(web, "r-1", 0)
			r := w.start()
			for n := range 200 {
				in := release.Status.Rollout
				in.History = append(in.History, v1alpha1.RolloutEvent{Number: int64(n + 1), EventTime: metav1.NewTime(now), Event: "canary.stage_started"})
				in.History = in.History[max(0, len(in.History)-64):]
				if n%3 > 0 {
					continue
				}
				live := &v1alpha1.ABRelease{}
				if err := w.api.Get(t.Context(), web, live); err != nil {
					t.Fatal(err)
				}
				live.Status = release.Status
				if err := w.api.Update(t.Context(), live); err != nil {
					t.Fatal(err)
				}
				w.look(r, web)
			}
			bodies := 0
			for _, name := range w.store.Names() {
				if _, _, is := evidence.ParseBodyName(name); is {
					bodies++
					if lose {
						w.store.Remove(name)
					}
				}
			}
			if bodies < 2 {
				t.Fatalf("there are %d snapshots, so this proves little", bodies)
			}
			w.look(w.start(), web)
			w.wants("uid-of-production", "199 ReleaseDecision")
		})
	}
}

// TestAnotherNamespaceHasItsTurnWithinALongHistory: one look writes 16 records, and asks for the next look.
// Records of a release that is gone have the same bound.
func TestAnotherNamespaceHasItsTurnWithinALongHistory(t *testing.T) {
	w := newWorld(t)
	release := w.release(web, "r-1", 40)
	w.release(lone, "r-2", 1)
	r := w.start()
	more := func(want string) {
		t.Helper()
		got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: web})
		if err != nil || got.RequeueAfter != soon {
			t.Errorf("%+v, %v, want another look soon", got, err)
		}
		w.wants("uid-of-production", want)
	}
	more("16 ReleaseDecision")
	w.look(r, lone)
	w.wants("uid-of-"+system, "1 ReleaseDecision")
	more("32 ReleaseDecision")
	// The release goes, and its last 20 lines are told from its last state.
	if err := w.api.Delete(t.Context(), release.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	for n := range 12 {
		release.Status.Rollout.History = append(release.Status.Rollout.History, v1alpha1.RolloutEvent{Number: int64(41 + n), EventTime: metav1.NewTime(now), Event: "ab.rolled_back"})
	}
	r.last[web] = []*v1alpha1.ABRelease{release}
	more("48 ReleaseDecision")
	w.look(r, web)
	w.wants("uid-of-production", "52 ReleaseDecision", "1 ReleaseGone")
	if len(r.last) > 0 {
		t.Errorf("the last states %v are kept after their records", r.last)
	}
}

// TestAFailureIsToldToTheWorksThatWait: of the store, or of the ledger.
func TestAFailureIsToldToTheWorksThatWait(t *testing.T) {
	for name, fail := range map[string]func(*world, error){
		"the store": func(w *world, err error) {
			w.store.Fault = func(string) error { return err }
		},
		"the ledger": func(w *world, err error) { w.unkept = err },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.release(web, "r-1", 1)
			made := w.carried()
			r := w.start()
			if recorded, problem := r.Recorded(made); recorded || problem != "" {
				t.Errorf("before the first look: %t, %q", recorded, problem)
			}
			fail(w, errors.New("no room"))
			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: web})
			if err != nil || got.RequeueAfter != again {
				t.Fatalf("%+v, %v", got, err)
			}
			if _, problem := r.Recorded(made); !strings.Contains(problem, "no room") {
				t.Errorf("the problem is %q", problem)
			}
			fail(w, nil)
			w.look(r, web)
			if recorded, problem := r.Recorded(made); !recorded || problem != "" {
				t.Errorf("with its record: %t, %q", recorded, problem)
			}
			select {
			case e := <-r.Woken():
				if e.Object.UID != made.UID {
					t.Errorf("woken is %s", e.Object.Name)
				}
			default:
				t.Error("the work is not woken")
			}
			if r.HasEnd(made) {
				t.Error("the work has not ended")
			}
			w.wants("uid-of-production", "1 ReleaseDecision", "1 WorkIntended")
		})
	}
}

func TestAChainThatCannotBeReadKeepsNoOtherFromGoingOn(t *testing.T) {
	w := newWorld(t)
	w.release(web, "r-1", 1)
	w.release(lone, "r-2", 1)
	w.look(w.start(), web)
	w.look(w.start(), lone)
	w.store.Put(evidence.Name("uid-of-production", 1), []byte("{}"))
	r := w.start()
	if got, _ := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: surveyKey}); got.RequeueAfter != again {
		t.Errorf("the survey is %+v", got)
	}
	w.look(r, lone)
	if got, _ := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: web}); got.RequeueAfter != again {
		t.Errorf("the release of the damaged chain is %+v", got)
	}
}

// TestTrim_LeavesWhatIsRecorded: the cached release gives the same records as the whole one.
func TestTrim_LeavesWhatIsRecorded(t *testing.T) {
	w := newWorld(t)
	release := w.release(web, "r-1", 2)
	release.Annotations = map[string]string{"long": "text"}
	release.Status.Effective = &v1alpha1.EffectiveSplit{Sequence: 7}
	in := release.Status.Rollout
	in.Run = &v1alpha1.RolloutRun{Number: 1, State: "RolledBack", Reason: "StageFailed", Message: "long"}
	in.Handled = &v1alpha1.HandledControl{RolloutControl: v1alpha1.RolloutControl{RequestedBy: "bob"}}
	in.History[0].Event, in.History[1].Event = "ab.verb_answered", "ab.rolled_back"
	in.Analysis = &v1alpha1.RolloutAnalysis{}
	trimmed, err := Trim(release.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	of := func(r *v1alpha1.ABRelease) []evidence.Record {
		return record.Next(record.Cursors{}, &record.Facts{Chain: "c", Release: r, Now: now})
	}
	if diff := cmp.Diff(of(release), of(trimmed.(*v1alpha1.ABRelease))); diff != "" {
		t.Errorf("records (-whole +trimmed):\n%s", diff)
	}
	if left := trimmed.(*v1alpha1.ABRelease); left.Annotations != nil || left.Status.Rollout.Analysis != nil {
		t.Errorf("left is %+v", left)
	}
	if other, err := Trim("else"); err != nil || other != "else" {
		t.Errorf("%v, %v", other, err)
	}
}

func TestPredicates_PassWhatIsToBeRecorded(t *testing.T) {
	w := newWorld(t)
	before := w.release(web, "r-1", 1)
	checkpoint, decision := before.DeepCopy(), before.DeepCopy()
	checkpoint.Status.Rollout.Analysis = &v1alpha1.RolloutAnalysis{}
	decision.Status.Rollout.History = nil
	passes := func(now *v1alpha1.ABRelease) bool {
		return decided().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now})
	}
	if passes(checkpoint) || !passes(decision) {
		t.Error("a checkpoint is looked at, or a decision is not")
	}
	running := w.carried()
	pending, ended := running.DeepCopy(), running.DeepCopy()
	pending.Status = v1alpha1.ReleaseWorkStatus{}
	ended.Status.Phase, ended.Status.EndTime = v1alpha1.WorkSucceeded, new(metav1.NewTime(now))
	follow := func(old, now *v1alpha1.ReleaseWork) bool {
		return carried().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now})
	}
	if !follow(pending, running) || !follow(running, ended) || follow(ended, ended) {
		t.Error("an intent or an end is not looked at, or one is twice")
	}
	if carried().Create(event.CreateEvent{Object: pending}) || !carried().Create(event.CreateEvent{Object: ended}) || carried().Delete(event.DeleteEvent{Object: ended}) {
		t.Error("a work is looked at that has nothing to record, or one is not that has")
	}
	want := []reconcile.Request{{NamespacedName: web}}
	if diff := cmp.Diff(want, releaseOf(t.Context(), running)); diff != "" || releaseOf(t.Context(), before) != nil {
		t.Errorf("the release of a work (-want +got):\n%s", diff)
	}
}
