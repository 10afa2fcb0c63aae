// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/drift"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// platformGuard is a guard of the platform, made a day before noon.
func platformGuard(n *v1alpha1.GuardNotifications) *v1alpha1.ClusterSpecGuard {
	g := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "g", CreationTimestamp: metav1.NewTime(noon.Add(-24 * time.Hour))}}
	g.Spec.Notifications = n
	return g
}

// each has a channel and an interval of a minute.
func each() *v1alpha1.GuardNotifications {
	return &v1alpha1.GuardNotifications{
		GroupInterval: &metav1.Duration{Duration: time.Minute}, Channels: []v1alpha1.NotificationChannel{hook("hook")},
	}
}

// baselineOf is the Baseline of a Deployment that drifted so many seconds after noon.
func baselineOf(name string, level v1alpha1.SeverityLevel, seconds int) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	b.Status.Guards = []string{"ClusterSpecGuard/all"}
	setDrift(b, level, seconds)
	return b
}

func setDrift(b *v1alpha1.Baseline, level v1alpha1.SeverityLevel, seconds int) {
	b.Status.State, b.Status.FirstSeenTime, b.Status.Severity = v1alpha1.StateInSync, nil, nil
	if level != "" {
		b.Status.State, b.Status.Severity = v1alpha1.StateDrifted, &v1alpha1.Severity{Level: level}
		b.Status.FirstSeenTime = new(metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)))
	}
}

// driftWorld is a process that tells of drift, and began at noon.
type driftWorld struct {
	*world
	drifts *Drifts
	now    *clocktesting.FakePassiveClock
	group  group
}

func newDriftWorld(t *testing.T, r *receiver, objects ...client.Object) *driftWorld {
	t.Helper()
	w := &driftWorld{world: newWorld(t, trusting(r), append(objects, secret(r.URL))...), now: clocktesting.NewFakePassiveClock(noon)}
	w.group = group{guard: specguard.GuardRef{Name: "all"}, namespace: "shop"}
	w.restart()
	return w
}

// restart is another process.
func (w *driftWorld) restart() {
	w.drifts = &Drifts{People: w.Notifier, Environments: &assigned{environment: &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}}}, Clock: w.now}
}

func (w *driftWorld) look(wantAgain time.Duration) {
	w.t.Helper()
	result, err := w.drifts.reconcileGroup(w.t.Context(), w.group)
	if err != nil || result.RequeueAfter != wantAgain {
		w.t.Fatalf("the next look is after %s, want %s; %v", result.RequeueAfter, wantAgain, err)
	}
}

func (w *driftWorld) set(name string, level v1alpha1.SeverityLevel, seconds int) {
	w.t.Helper()
	b := &v1alpha1.Baseline{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, b); err != nil {
		w.t.Fatal(err)
	}
	setDrift(b, level, seconds)
	if err := w.client.Update(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

func (w *driftWorld) edit(change func(*v1alpha1.ClusterSpecGuard)) {
	w.t.Helper()
	g := &v1alpha1.ClusterSpecGuard{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: "all"}, g); err != nil {
		w.t.Fatal(err)
	}
	change(g)
	if err := w.client.Update(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
}

// idOf is the id of the event about Deployments, as the process makes it.
func idOf(kind notify.EventType, baselines ...*v1alpha1.Baseline) string {
	var objects []drift.Object
	for _, b := range baselines {
		objects = append(objects, driftOf(b))
	}
	return drift.BuildEvent(kind, notify.GuardRef{UID: "g", ObjectNamespace: "shop"}, objects, noon).ID()
}

func TestDriftsOfANamespaceAreToldTogetherAndTheirEndToo(t *testing.T) {
	r := receive(t)
	w := newDriftWorld(t, r, platformGuard(each()), baselineOf("web", v1alpha1.SeverityHigh, -10), baselineOf("cart", v1alpha1.SeverityLow, -5), baselineOf("api", "", 0))
	w.look(0)
	w.look(time.Minute)
	first := idOf(notify.DriftDetected, baselineOf("web", v1alpha1.SeverityHigh, -10), baselineOf("cart", v1alpha1.SeverityLow, -5))
	r.until(t, first)
	w.now.SetTime(noon.Add(20 * time.Second))
	w.set("api", v1alpha1.SeverityLow, 15)
	w.set("web", "", 0)
	w.look(40 * time.Second) // the interval is not over
	w.now.SetTime(noon.Add(time.Minute))
	w.look(0)
	r.until(t, first, idOf(notify.DriftDetected, baselineOf("api", v1alpha1.SeverityLow, 15)), idOf(notify.DriftResolved, baselineOf("web", v1alpha1.SeverityHigh, -10)))
	w.now.SetTime(noon.Add(5 * time.Minute))
	w.look(0)
	r.until(t, r.ids()...)
	if n := len(r.ids()); n != 3 {
		t.Errorf("people were told %d times, want 3", n)
	}
}

func TestAGuardSaysOfWhatPeopleAreTold(t *testing.T) {
	r := receive(t)
	quiet := each()
	quiet.OnDetected = v1alpha1.Disabled
	w := newDriftWorld(t, r, platformGuard(quiet), baselineOf("web", v1alpha1.SeverityHigh, -10))
	w.look(0)
	w.now.SetTime(noon.Add(time.Minute))
	w.set("web", "", 0)
	w.look(0)
	r.until(t, idOf(notify.DriftResolved, baselineOf("web", v1alpha1.SeverityHigh, -10)))
}

func TestAProcessThatBeginsTellsOfRecentDriftAlone(t *testing.T) {
	r := receive(t)
	old, fresh := baselineOf("old", v1alpha1.SeverityHigh, -600), baselineOf("fresh", v1alpha1.SeverityHigh, -60)
	w := newDriftWorld(t, r, platformGuard(each()), old, fresh)
	w.now.SetTime(noon.Add(-72 * time.Hour)) // it waits for the lease
	w.now.SetTime(noon)
	w.look(0)
	first := idOf(notify.DriftDetected, baselineOf("fresh", v1alpha1.SeverityHigh, -60))
	r.until(t, first)
	w.now.SetTime(noon.Add(time.Minute))
	w.set("old", "", 0)
	w.look(0)
	end := idOf(notify.DriftResolved, baselineOf("old", v1alpha1.SeverityHigh, -600))
	r.until(t, first, end)
	w.restart()
	w.look(0) // the same event, which the notifier knows
	w.Close(t.Context())
	r.until(t, first, end)
}

func TestChannelsThatAreAddedHearOfTheDriftThatIsThere(t *testing.T) {
	r := receive(t)
	w := newDriftWorld(t, r, platformGuard(nil), baselineOf("web", v1alpha1.SeverityHigh, -7200))
	w.look(0)
	w.edit(func(g *v1alpha1.ClusterSpecGuard) { g.Spec.Notifications = each() })
	w.look(0)
	r.until(t, idOf(notify.DriftDetected, baselineOf("web", v1alpha1.SeverityHigh, -7200)))
}

func TestASilenceHoldsNotificationsBack(t *testing.T) {
	r := receive(t)
	silent := each()
	silent.Silences = []v1alpha1.NotificationSilence{{Namespaces: []string{"shop"}, Reason: "work", EndTime: metav1.NewTime(noon.Add(time.Hour))}}
	w := newDriftWorld(t, r, platformGuard(silent), baselineOf("web", v1alpha1.SeverityHigh, -7200), baselineOf("cart", v1alpha1.SeverityHigh, -10))
	w.look(time.Hour)
	w.restart()
	w.look(time.Hour)
	w.set("cart", "", 0)
	w.now.SetTime(noon.Add(time.Hour))
	w.look(0)
	r.until(t, idOf(notify.DriftDetected, baselineOf("web", v1alpha1.SeverityHigh, -7200)))
	w.edit(func(g *v1alpha1.ClusterSpecGuard) {
		g.Spec.Notifications.Silences[0].EndTime = metav1.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)
	})
	w.look(silenceAgain)
}

func TestTheChannelsOfAGuardGoWithIt(t *testing.T) {
	w := newDriftWorld(t, receive(t), platformGuard(each()), baselineOf("web", v1alpha1.SeverityHigh, -10))
	learn := func() {
		t.Helper()
		if _, err := w.drifts.learnGuard(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}); err != nil {
			t.Fatal(err)
		}
	}
	learn()
	w.look(0)
	if known := len(w.bySource["ClusterSpecGuard/all"]); known != 1 || len(w.drifts.groups) != 1 {
		t.Errorf("the guard has %d channels and %d groups", known, len(w.drifts.groups))
	}
	if err := w.client.Delete(t.Context(), platformGuard(nil)); err != nil {
		t.Fatal(err)
	}
	learn()
	w.look(0)
	if _, known := w.bySource["ClusterSpecGuard/all"]; known || len(w.drifts.groups)+len(w.drifts.enabled)+len(w.drifts.untold) > 0 {
		t.Errorf("something of the guard is left: %+v", w.drifts)
	}
}

// A tenant took the places of all channels with guards of its own.
func TestATenantTakesNoPlacesOfOthers(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 80 {
		ref := specguard.GuardRef{Namespace: "shop", Name: strconv.Itoa(i)}
		view := &guardView{ref: ref, notifications: &v1alpha1.GuardNotifications{}}
		for j := range 8 {
			view.notifications.Channels = append(view.notifications.Channels, hook(strconv.Itoa(j)))
		}
		w.learn(guardSource(ref), view.channels())
	}
	w.learn("zzz", Channels(policyWith(hook("hook"))))
	if got := testutil.ToFloat64(w.metrics.channels.WithLabelValues(stateActive)); got != maxTenantChannels+1 {
		t.Errorf("%v channels are active, want %d of the tenant and one of the policy", got, maxTenantChannels)
	}
	if !strings.Contains(w.said(), "the SpecGuards of a namespace together have more than 16 channels") {
		t.Error("the log does not say why a channel is left out")
	}
}

func TestWhichChangesOfABaselineAreLookedAt(t *testing.T) {
	w := newDriftWorld(t, receive(t), platformGuard(each()))
	w.drifts.GroupWait = time.Nanosecond
	before := baselineOf("web", v1alpha1.SeverityLow, 0)
	cases := map[string]struct {
		change func(*v1alpha1.Baseline)
		want   []string
	}{
		"a check":                {func(b *v1alpha1.Baseline) { b.Status.LastCheckTime = new(metav1.NewTime(noon)) }, nil},
		"another state":          {func(b *v1alpha1.Baseline) { setDrift(b, "", 0) }, []string{"all"}},
		"another severity":       {func(b *v1alpha1.Baseline) { setDrift(b, v1alpha1.SeverityHigh, 0) }, []string{"all"}},
		"another drift":          {func(b *v1alpha1.Baseline) { setDrift(b, v1alpha1.SeverityLow, 9) }, []string{"all"}},
		"a further guard":        {func(b *v1alpha1.Baseline) { b.Status.Guards = append(b.Status.Guards, "SpecGuard/own") }, []string{"all", "shop/own"}},
		"a guard that is no one": {func(b *v1alpha1.Baseline) { b.Status.Guards = nil }, []string{"all"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[group]())
			defer q.ShutDown()
			after := before.DeepCopy()
			tc.change(after)
			w.drifts.enqueueUpdated(t.Context(), crevent.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
			var got []string
			for range tc.want {
				g, _ := q.Get()
				got = append(got, strings.TrimPrefix(g.guard.Namespace+"/"+g.guard.Name, "/"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || q.Len() > 0 {
				t.Errorf("%d more are queued; (-want +got):\n%s", q.Len(), diff)
			}
		})
	}
}
