// SPDX-License-Identifier: Apache-2.0

package releaserecord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/traffic/record"
)

const (
	system = "plumbline-system"
	hash   = "pl1:sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

var (
	now  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	web  = types.NamespacedName{Namespace: "shop", Name: "web"}
	lone = types.NamespacedName{Namespace: "lone", Name: "web"}
)

// still is a clock that stands.
type still struct{}

func (still) Now() time.Time      { return now }
func (still) Skew() time.Duration { return 0 }

// heads are kept in memory, and in the ledgers that a survey lists.
type heads struct{ w *world }

func (h heads) Head(_ context.Context, _, chain string) (evidence.Head, error) {
	h.w.asked[chain] = true
	return h.w.heads[chain], nil
}

func (h heads) Keep(ctx context.Context, ledger, chain string, left ...evidence.Head) error {
	if h.w.unkept != nil {
		return h.w.unkept
	}
	head := left[len(left)-1]
	h.w.heads[chain] = head
	l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: ledger}}
	if err := h.w.api.Create(ctx, l.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := h.w.api.Get(ctx, client.ObjectKeyFromObject(l), l); err != nil {
		return err
	}
	l.Status.Chains = slices.DeleteFunc(l.Status.Chains, func(c v1alpha1.EvidenceChain) bool { return c.PolicyUID == chain })
	l.Status.Chains = append(l.Status.Chains, v1alpha1.EvidenceChain{PolicyUID: chain, Sequence: head.Sequence, Digest: head.Digest})
	return h.w.api.Update(ctx, l)
}

// world is an API server with an Environment, and a store.
type world struct {
	*testing.T
	api    client.Client
	store  *storetest.Memory
	key    *evidence.PrivateKey
	ring   *evidence.Keyring
	heads  map[string]evidence.Head
	asked  map[string]bool
	unkept error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, failed := evidence.ParsePrivateKey(private)
	ring, err := evidence.ParseKeyring(public)
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"name": name}}}
	}
	return &world{
		T: t, store: &storetest.Memory{}, key: key, ring: ring, heads: map[string]evidence.Head{}, asked: map[string]bool{},
		api: fake.NewClientBuilder().WithScheme(kinds).WithObjects(namespace("shop"), namespace("lone"), namespace(system), &v1alpha1.Environment{
			ObjectMeta: metav1.ObjectMeta{Name: "production", UID: "uid-of-production"},
			Spec:       v1alpha1.EnvironmentSpec{NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"name": "shop"}}},
		}).Build(),
	}
}

// start makes the reconciler of a new process.
func (w *world) start() *Reconciler {
	return New(Config{Live: w.api, Time: still{}, Namespace: system, Log: logr.Discard(), Chains: Recorder{&exec.Recorder{
		Writer: evidence.Writer{Store: w.store, Signer: w.key, Keys: w.ring}, Heads: heads{w}, Builder: evidence.Builder{Version: "test"}, Now: time.Now,
	}}})
}

// look has one release looked at, and fails unless all is recorded.
func (w *world) look(r *Reconciler, key types.NamespacedName) {
	w.Helper()
	got, err := r.Reconcile(w.Context(), reconcile.Request{NamespacedName: key})
	if err != nil || got != (reconcile.Result{}) {
		w.Fatalf("%+v, %v, %v", got, err, r.problems)
	}
}

// release makes one with a number of lines in its history.
func (w *world) release(key types.NamespacedName, uid string, lines int) *v1alpha1.ABRelease {
	w.Helper()
	release := &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(uid)},
		Spec:       v1alpha1.ABReleaseSpec{Rollout: &v1alpha1.Rollout{RequestedBy: "alice"}},
		Status:     v1alpha1.ABReleaseStatus{Rollout: &v1alpha1.RolloutStatus{}},
	}
	for n := range lines {
		release.Status.Rollout.History = append(release.Status.Rollout.History, v1alpha1.RolloutEvent{
			Number: int64(n + 1), EventTime: metav1.NewTime(now), Run: 1, Event: "canary.stage_started",
			TrafficPercentage: &v1alpha1.Percentage{IntOrString: intstr.FromInt32(10)},
		})
	}
	if err := w.api.Create(w.Context(), release.DeepCopy()); err != nil {
		w.Fatal(err)
	}
	return release
}

// told verifies all chains, and lists the kinds of the records of one, each with how often it follows itself.
func (w *world) told(chain string) []string {
	w.Helper()
	var kinds []evidence.Kind
	report, err := evidence.Verify(w.Context(), w.store, w.ring, evidence.Options{Heads: w.heads, Each: func(s evidence.Sealed) {
		if s.Record.Chain.UID == chain {
			kinds = append(kinds, s.Record.Kind)
		}
	}})
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range report.Problems {
		if p.Kind != evidence.ProblemBodyMissing {
			w.Errorf("%s: %s", p.Kind, p)
		}
	}
	var out []string
	for i := 0; i < len(kinds); {
		n := 0
		for ; i+n < len(kinds) && kinds[i+n] == kinds[i]; n++ {
		}
		out = append(out, fmt.Sprintf("%d %s", n, kinds[i]))
		i += n
	}
	return out
}

func (w *world) wants(chain string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.told(chain)); diff != "" {
		w.Errorf("the chain %s (-want +got):\n%s", chain, diff)
	}
}

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

// carried makes a work whose intent is stored.
func (w *world) carried() *v1alpha1.ReleaseWork {
	w.Helper()
	made := &v1alpha1.ReleaseWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1-1", UID: "w-1"},
		Spec:       v1alpha1.ReleaseWorkSpec{ReleaseName: "web", ReleaseUID: "r-1", Run: 1, Number: 1, Verb: v1alpha1.WorkScale, Variation: "canary", Replicas: new(int32(2)), ExpectedHash: hash},
		Status: v1alpha1.ReleaseWorkStatus{
			Phase: v1alpha1.WorkRunning, Intent: &v1alpha1.ReleaseWorkIntent{UID: "c-1", ResourceVersion: "5", TemplateHash: hash, StorageTime: metav1.NewTime(now)},
		},
	}
	if err := w.api.Create(w.Context(), made.DeepCopy()); err != nil {
		w.Fatal(err)
	}
	return made
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
