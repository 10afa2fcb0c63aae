// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// world has one release, whose endpoints and router say what a test wants.
type world struct {
	*testing.T
	*Reconciler
	clock  *clocktesting.FakeClock
	router routertest.Recorder
	ready  map[string]int
	absent bool // the Service
	// problems are those of the mesh.
	problems []ir.Problem
	events   *events.FakeRecorder
	writes   int
	// labeled is when the Service was given its label; zero if it has none.
	labeled time.Time
}

// Router implements Routers.
func (w *world) Router(types.NamespacedName) traffic.Router { return &w.router }

// Count implements Endpoints.
func (w *world) Count(context.Context, traffic.Split) (map[string]traffic.Endpoints, bool, error) {
	of := map[string]traffic.Endpoints{}
	for variation, n := range w.ready {
		of[variation] = traffic.Endpoints{Ready: n, Targets: n}
	}
	return of, !w.absent, nil
}

// Prospect implements Mesh.
func (w *world) Prospect(_ context.Context, split traffic.Split) (ir.Mesh, error) {
	if w.absent {
		return ir.Mesh{Problems: []ir.Problem{ir.NoService(split)}}, nil
	}
	return ir.Mesh{Problems: w.problems, Services: []ir.Service{{Namespace: split.Namespace, Name: split.Service, Routing: &split.Routing, LabeledSince: w.labeled}}}, nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	release := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Generation: 1}}
	release.Spec = v1alpha1.ABReleaseSpec{
		ServiceName: "web", Stable: "stable",
		Variations: []v1alpha1.Variation{
			{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: "web"}},
			{Name: "canary", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: "canary"}},
		},
		TrafficSplit: v1alpha1.TrafficSplit{Type: "Percentage", Percentages: map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(90), "canary": v1alpha1.Percent(10)}},
	}
	c := fakeclient.NewBuilder(kinds).WithObjects(release).WithStatusSubresource(release).Build()
	w := &world{T: t, clock: clocktesting.NewFakeClock(noon), ready: map[string]int{"stable": 1, "canary": 1}, events: events.NewFakeRecorder(100)}
	w.Reconciler = &Reconciler{
		Client: c, Endpoints: w, Mesh: w, Routers: w, Recorder: w.events, Clock: w.clock, Log: logr.Discard(),
		Sequences: &Ledger{Live: c, Client: c, Namespace: "plumbline-system", Clock: w.clock},
	}
	return w
}

// M6: after a restore of etcd proxies had a later sequence than the release, whose decisions they
// ignored, each of which was told as proven.
func TestTheSequenceIsRaisedAboveThatOfProxies(t *testing.T) {
	for name, ahead := range map[string]func(*world){
		"that say so": func(w *world) {
			w.router.Say(traffic.Observation{Knowledge: traffic.Contradicted, Ahead: 2_500, Wanted: 1, OutOfSync: []traffic.OutOfSync{{Name: "shop/front-0", Why: "has 2500.x"}}})
		},
		"that this process has told": func(w *world) { w.router.Break(&traffic.LaterError{Sequence: 2_500}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if first := w.look().Status.Effective.Sequence; first != 1 {
				t.Fatalf("the first sequence is %d", first)
			}
			ahead(w)
			if is := w.look().Status.Effective.Sequence; is != 2_501 {
				t.Errorf("in force is %d, want 2501", is)
			}
			w.router.Break(nil)
			w.router.Say(traffic.Observation{Sequence: 2_501, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1})
			r := w.look()
			if is := r.Status.Effective.Sequence; is != 2_501 || !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionAcknowledged) {
				t.Errorf("in force is %d, and the conditions are %v", is, r.Status.Conditions)
			}
		})
	}
}

// The receiver of a TrafficRouter answered with the highest number, and no later decision could be above that.
func TestAProgramThatReportsAnyNumberMovesNoSequence(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.router.Say(traffic.Observation{Knowledge: traffic.Contradicted, Ahead: math.MaxUint64, Wanted: 1, OutOfSync: []traffic.OutOfSync{{Name: "edge", Why: "has a later sequence"}}})
	for range 3 {
		if r := w.look(); r.Status.Effective.Sequence != 1 || meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionAcknowledged) {
			t.Fatalf("in force is %d, and the conditions are %v", r.Status.Effective.Sequence, r.Status.Conditions)
		}
	}
	w.router.Say(traffic.Observation{Sequence: 1, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1})
	if r := w.look(); r.Status.Effective.Sequence != 1 || !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionAcknowledged) {
		t.Errorf("in force is %d, and the conditions are %v", r.Status.Effective.Sequence, r.Status.Conditions)
	}
}

// A proxy had sequence 2 when the store was put back to sequence 1, before another look of the leader. The leader
// gave a later split the same sequence.
func TestAStoreThatIsPutBackRightAfterADecisionGetsAHigherSequence(t *testing.T) {
	w := newWorld(t)
	once := w.look()
	r := once.DeepCopy()
	r.Generation++
	r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(50), "canary": v1alpha1.Percent(50)}
	if err := w.Client.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if r = w.look(); r.Status.Effective.Sequence != 2 {
		t.Fatalf("in force is %d", r.Status.Effective.Sequence)
	}
	r.Spec = once.Spec
	if err := w.Client.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Status = once.Status
	if err := w.Client.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if is := w.look().Status.Effective.Sequence; is != 3 {
		t.Errorf("in force is %d, want 3", is)
	}
}

// The store was put back to sequence 1 while the spec asked for another split. The leader gave the sequences 2 and 3 a
// second time, to other splits, and a proxy had 3 of before.
func TestAStoreThatIsPutBackBetweenTwoWritesGetsNoSequenceTwice(t *testing.T) {
	w := newWorld(t)
	once := w.look()
	split := func(canary int32) *v1alpha1.ABRelease {
		r := w.look()
		r.Generation++
		r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(100 - canary), "canary": v1alpha1.Percent(canary)}
		if err := w.Client.Update(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return w.look()
	}
	split(50)
	r := split(100)
	if is := r.Status.Effective.Sequence; is != 3 {
		t.Fatalf("in force is %d", is)
	}
	r.Status = *once.Status.DeepCopy()
	if err := w.Client.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if is := w.look().Status.Effective.Sequence; is != 4 {
		t.Errorf("in force is %d, want 4: proxies have had 2 and 3 with other splits", is)
	}
	if is := split(0).Status.Effective.Sequence; is != 5 {
		t.Errorf("in force is %d, want 5", is)
	}
}

func TestAProxyWithAnotherSplitIsNamedAndContradicts(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.router.Say(traffic.Observation{Knowledge: traffic.Contradicted, Wanted: 1, OutOfSync: []traffic.OutOfSync{{Name: "shop/front-0", Why: "has 1.x, and that sequence is 1.y"}}})
	r := w.look()
	c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionDegraded)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonContradicted || !strings.Contains(c.Message, "shop/front-0 (has 1.x") {
		t.Errorf("the condition is %+v", c)
	}
	if r.Status.Acknowledged.Knowledge != v1alpha1.AcknowledgedContradicted || meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionAcknowledged) {
		t.Errorf("it is acknowledged: %+v", r.Status.Acknowledged)
	}
}

// look once, and return the release.
func (w *world) look() *v1alpha1.ABRelease {
	w.Helper()
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	var before, after v1alpha1.ABRelease
	if err := w.Client.Get(w.Context(), name, &before); err != nil {
		w.Fatal(err)
	}
	if _, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: name}); err != nil {
		w.Fatal(err)
	}
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(&before), &after); err != nil {
		w.Fatal(err)
	}
	if before.ResourceVersion != after.ResourceVersion {
		w.writes++
	}
	return &after
}

func (w *world) said() (all []string) {
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func state(r *v1alpha1.ABRelease, kind string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

// degradedFor is the reason of Degraded, empty where it is not True.
func degradedFor(r *v1alpha1.ABRelease) string {
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionDegraded); c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

func TestWhatIsNotObservedIsNeverReady(t *testing.T) {
	w := newWorld(t)
	w.router.Deafen(errors.New("nobody answers"))
	for range 3 {
		r := w.look()
		if c := state(r, v1alpha1.ConditionAcknowledged); c != metav1.ConditionUnknown || state(r, v1alpha1.ConditionReady) == metav1.ConditionTrue {
			t.Fatalf("Acknowledged is %s, Ready %s", c, state(r, v1alpha1.ConditionReady))
		}
	}
	w.router.Deafen(nil)
	if r := w.look(); state(r, v1alpha1.ConditionReady) != metav1.ConditionTrue || r.Status.Acknowledged.Count != "1/1" {
		t.Errorf("the status is %+v", r.Status)
	}
	if all := w.said(); !slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, "Acknowledged") }) {
		t.Errorf("events are %q", all)
	}
}

func TestProxiesOutOfSyncAreNamed(t *testing.T) {
	w := newWorld(t)
	w.look()
	seen := traffic.Observation{Knowledge: traffic.Unknown, Wanted: 42, Acknowledged: 30}
	for i := range 12 {
		seen.OutOfSync = append(seen.OutOfSync, traffic.OutOfSync{Name: "shop/front-" + string(rune('a'+i)), Why: "it does not answer", Since: noon})
	}
	w.router.Say(seen)
	r := w.look()
	if r.Status.Acknowledged.Count != "30/42" || len(r.Status.Acknowledged.OutOfSync) != maxOutOfSync || state(r, v1alpha1.ConditionAcknowledged) != metav1.ConditionFalse {
		t.Errorf("it is %+v, Acknowledged %s", r.Status.Acknowledged, state(r, v1alpha1.ConditionAcknowledged))
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReconciling); c == nil || !strings.Contains(c.Message, "shop/front-a (it does not answer)") {
		t.Errorf("Reconciling is %+v", c)
	}
}

// M4 of the review of the mesh: all proxies acknowledge, and connections that are older go past the
// split. What is stored of it outlives the process that leads.
func TestAReleaseIsNotReadyOverConnectionsThatAreOlderThanTheManagement(t *testing.T) {
	w := newWorld(t)
	first := w.look()
	if s := first.Status.ManagementStartTime; s == nil || !s.Time.Equal(noon) {
		t.Fatalf("the Service is managed since %v, want %s", s, noon)
	}
	all := traffic.Observation{Knowledge: traffic.Unknown, Wanted: 5, Acknowledged: 5, Sequence: uint64(first.Status.Effective.Sequence), RedirectedAt: noon.Add(10 * time.Minute)} //nolint:gosec // it is 1
	for _, pod := range []string{"a", "b", "c", "d"} {
		all.NotYetRedirected = append(all.NotYetRedirected, "shop/"+pod)
	}
	w.router.Say(all)
	r := w.look()
	const text = "connections that pods have kept since before Service web was managed (2026-03-02T12:00:00Z) bypass the split; pods that old: 4: restart shop/a, shop/b, shop/c, ..., or wait until 2026-03-02T12:10:00Z"
	for kind, want := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionDegraded: metav1.ConditionTrue, v1alpha1.ConditionAcknowledged: metav1.ConditionFalse, v1alpha1.ConditionReady: metav1.ConditionFalse,
	} {
		if c := meta.FindStatusCondition(r.Status.Conditions, kind); c == nil || c.Status != want || c.Reason != v1alpha1.ReasonNotYetRedirected || c.Message != text {
			t.Errorf("%s is %+v, want %s: %s", kind, c, want, text)
		}
	}
	all.Knowledge, all.NotYetRedirected = traffic.Proven, nil
	w.router.Say(all)
	w.clock.Step(11 * time.Minute)
	r = w.look()
	if state(r, v1alpha1.ConditionDegraded) != metav1.ConditionFalse || state(r, v1alpha1.ConditionReady) != metav1.ConditionTrue || !r.Status.ManagementStartTime.Time.Equal(noon) {
		t.Errorf("afterwards the status is %+v", r.Status)
	}
}

func TestAServiceThatHadItsLabelIsManagedSinceThen(t *testing.T) {
	w := newWorld(t)
	w.labeled = noon.Add(-time.Hour)
	if s := w.look().Status.ManagementStartTime; s == nil || !s.Time.Equal(w.labeled) {
		t.Errorf("the Service is managed since %v, want %s", s, w.labeled)
	}
}

func TestCountsAloneAreStoredNowAndThen(t *testing.T) {
	w := newWorld(t)
	w.look()
	for i := range uint64(20) {
		w.router.Say(traffic.Observation{Sequence: 1, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1, Arms: []traffic.Arm{
			{Variation: "stable", Outcomes: &traffic.Outcomes{Window: time.Minute, Completed: 9_000 + i}},
			{Variation: "canary", Outcomes: &traffic.Outcomes{Window: time.Minute, Completed: 1_000 - i}},
		}})
		w.look()
		w.clock.Step(time.Second)
	}
	if w.writes != 2 {
		t.Errorf("the status was written %d times in 20 s", w.writes)
	}
	w.clock.Step(Times{}.withDefaults().Counts)
	if r := w.look(); *r.Status.Observed[1].Requests != 981 || *r.Status.Observed[1].SharePercent != 10 {
		t.Errorf("observed is %+v", r.Status.Observed)
	}
}

// arms of which so many requests were answered.
func arms(stable, canary uint64) []traffic.Arm {
	return []traffic.Arm{
		{Variation: "stable", Outcomes: &traffic.Outcomes{Window: time.Minute, Completed: stable}},
		{Variation: "canary", Outcomes: &traffic.Outcomes{Window: time.Minute, Completed: canary}},
	}
}

func TestProxiesThatAreNotCountedAreInTheStatus(t *testing.T) {
	w := newWorld(t)
	w.look()
	seen := arms(90, 10)
	seen[1].Outcomes.Uncounted = 2
	w.router.Say(traffic.Observation{Sequence: 1, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1, Arms: seen})
	r := w.look()
	if stable, canary := r.Status.Observed[0].UncountedProxies, r.Status.Observed[1].UncountedProxies; stable != nil || canary == nil || *canary != 2 {
		t.Errorf("observed is %+v", r.Status.Observed)
	}
}

// A share is counted, too: of few requests it is another one at each look.
func TestASharePercentThatWaversIsNotWrittenEachTime(t *testing.T) {
	w := newWorld(t)
	w.look()
	for i := range uint64(20) {
		w.router.Say(traffic.Observation{Sequence: 1, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1, Arms: arms(90, 10+i)})
		w.look()
		w.clock.Step(time.Second)
	}
	if w.writes != 2 {
		t.Errorf("the status was written %d times in 20 s", w.writes)
	}
}

// How many requests contradict a split is another number at each look.
func TestAContradictionThatGoesOnIsNotWrittenEachTime(t *testing.T) {
	w := newWorld(t)
	w.ready["canary"] = 0
	for i := range uint64(3) {
		w.router.Say(traffic.Observation{Sequence: 1, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1, Arms: arms(900, 100+i)})
		w.look()
		w.clock.Step(10 * time.Minute)
	}
	if r := w.look(); state(r, v1alpha1.ConditionDegraded) != metav1.ConditionTrue {
		t.Fatalf("it is not contradicted: %+v", r.Status.Conditions)
	}
	w.writes = 0
	for i := range uint64(20) {
		w.router.Say(traffic.Observation{Sequence: 1, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1, Arms: arms(900, 200+i)})
		w.look()
		w.clock.Step(time.Second)
	}
	if w.writes > 1 {
		t.Errorf("the status was written %d times in 20 s", w.writes)
	}
}

// A proxy may tell any numbers. A share that the API server refuses would keep all else
// from being written: what is in force is in the same status.
func TestCountsThatAreALieDoNotKeepTheStatusFromBeingWritten(t *testing.T) {
	for name, all := range map[string][]traffic.Arm{
		"more in all than a number holds": arms(1<<63, 1<<63+5),
		"as many as a number holds":       arms(math.MaxUint64, math.MaxUint64),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.look()
			w.router.Say(traffic.Observation{Sequence: 1, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1, Arms: all})
			for _, o := range w.look().Status.Observed {
				if o.SharePercent == nil || *o.SharePercent != 50 || *o.Requests <= 0 {
					t.Errorf("observed is %+v", o)
				}
			}
		})
	}
}

func TestAShareIsClampedAndComesBack(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.ready["canary"] = 0
	if r := w.look(); r.Status.Split != "stable 100 / canary 0" || r.Status.Effective.Sequence != 2 || degradedFor(r) != "NoReadyEndpoints" {
		t.Errorf("the status is %+v", r.Status)
	}
	w.ready["canary"] = 1
	w.look()
	w.clock.Step(traffic.Returns)
	if r := w.look(); r.Status.Split != "stable 90 / canary 10" || r.Status.Effective.Sequence != 3 || degradedFor(r) != "" {
		t.Errorf("the status is %+v", r.Status)
	}
}
