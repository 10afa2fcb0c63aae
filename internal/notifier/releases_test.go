// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// line of a history, so many seconds after noon.
func line(number, run int64, seconds int, event string) v1alpha1.RolloutEvent {
	return v1alpha1.RolloutEvent{
		Number: number, Run: run, EventTime: metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)), Event: event,
		TrafficPercentage: new(v1alpha1.Percent(25)), Message: "why " + event,
	}
}

func releaseWith(waiting *v1alpha1.RolloutWait, history ...v1alpha1.RolloutEvent) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pay", UID: "r"}, Spec: v1alpha1.ABReleaseSpec{ServiceName: "pay"}}
	r.Status.Rollout = &v1alpha1.RolloutStatus{Stage: 2, Run: &v1alpha1.RolloutRun{Number: 1}, Waiting: waiting, History: history}
	return r
}

func waitFor(reason string, seconds int) *v1alpha1.RolloutWait {
	return &v1alpha1.RolloutWait{Reason: reason, StartTime: metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)), Message: "a person"}
}

func TestReleaseEvents(t *testing.T) {
	cases := map[string]struct {
		release *v1alpha1.ABRelease
		after   int64
		since   time.Time
		want    []notify.EventType
		last    int64
	}{
		"a release without a run has none":         {release: &v1alpha1.ABRelease{}, after: 3, last: 3},
		"lines for people who look are left out":   {release: releaseWith(nil, line(1, 1, 0, "ab.created"), line(2, 1, 0, "ab.started"), line(3, 1, 0, "canary.stage_started"), line(4, 1, 9, "canary.stage_passed"), line(5, 1, 9, "ab.verb_answered")), want: []notify.EventType{notify.RunStarted}, last: 5},
		"lines before the number were told":        {release: releaseWith(nil, line(1, 1, 0, "ab.started"), line(2, 1, 9, "ab.promoted")), after: 1, want: []notify.EventType{notify.RunPromoted}, last: 2},
		"old lines are not told":                   {release: releaseWith(nil, line(1, 1, 0, "ab.started"), line(2, 1, 9, "ab.promoted")), since: noon.Add(5 * time.Second), want: []notify.EventType{notify.RunPromoted}, last: 2},
		"a rollback says that the stage failed":    {release: releaseWith(nil, line(1, 1, 9, "canary.stage_failed"), line(2, 1, 9, "ab.rolled_back")), want: []notify.EventType{notify.RunRolledBack}, last: 2},
		"a stage that failed and is held is told":  {release: releaseWith(waitFor("StageFailed", 9), line(1, 1, 9, "canary.stage_failed")), want: []notify.EventType{notify.StageFailed}, last: 1},
		"and one that is rolled back later is too": {release: releaseWith(nil, line(1, 1, 9, "canary.stage_failed"), line(2, 1, 60, "ab.rolled_back")), want: []notify.EventType{notify.StageFailed, notify.RunRolledBack}, last: 2},
		"an overdue wait is told":                  {release: releaseWith(waitFor("Capacity", 9), line(1, 1, 60, "ab.overdue")), want: []notify.EventType{notify.RunOverdue}, last: 1},
		"a wait for a person is told":              {release: releaseWith(waitFor("Approval", 9)), want: []notify.EventType{notify.RunWaiting}},
		"a wait for time is not":                   {release: releaseWith(waitFor("MinimumTime", 9))},
		"nor is one of tomorrow":                   {release: releaseWith(waitFor("Moonrise", 9), line(1, 1, 9, "ab.moon_rose")), last: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			events, last := ReleaseEvents(tc.release, tc.after, tc.since)
			var kinds []notify.EventType
			ids := map[string]bool{}
			for _, e := range events {
				kinds, ids[e.ID()] = append(kinds, e.Type), true
			}
			if diff := cmp.Diff(tc.want, kinds); diff != "" || last != tc.last || len(ids) != len(events) {
				t.Errorf("last is %d, want %d; %d ids; events (-want +got):\n%s", last, tc.last, len(ids), diff)
			}
		})
	}
}

func TestWantsRelease(t *testing.T) {
	on := v1alpha1.Enabled
	tests := map[notify.EventType]v1alpha1.ReleaseNotifications{
		notify.RunStarted: {OnStarted: on}, notify.StageAdvanced: {OnAdvanced: on}, notify.RunPromoted: {OnPromoted: on},
		notify.RunRolledBack: {OnFailed: on}, notify.RunWaiting: {OnWaiting: on},
	}
	for kind, only := range tests {
		for other := range tests {
			if got := WantsRelease(&only, other); got != (kind == other) {
				t.Errorf("with %s alone %s is told: %t", kind, other, got)
			}
		}
		if WantsRelease(nil, kind) || WantsRelease(&v1alpha1.ReleaseNotifications{}, kind) {
			t.Errorf("%s is told, and no Environment asks for it", kind)
		}
	}
	all := &v1alpha1.ReleaseNotifications{OnStarted: on, OnAdvanced: on, OnPromoted: on, OnFailed: on, OnWaiting: on}
	for kind, want := range map[notify.EventType]bool{notify.StageFailed: true, notify.RunOverdue: true, notify.PlanFailed: false, "RunBlessed": false} {
		if got := WantsRelease(all, kind); got != want {
			t.Errorf("%s is told: %t, want %t", kind, got, want)
		}
	}
}

// assigned gives all namespaces to one Environment.
type assigned struct {
	environment *v1alpha1.Environment
	known       bool
}

// Find implements Environments.
func (a *assigned) Find(string) (*v1alpha1.Environment, bool) { return a.environment, a.known }

func TestPeopleAreToldOfEachLineOnce(t *testing.T) {
	r := receive(t)
	release := releaseWith(nil, line(1, 1, 0, "ab.started"))
	environment := &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Spec: v1alpha1.EnvironmentSpec{ReleaseNotifications: &v1alpha1.ReleaseNotifications{
		OnStarted: v1alpha1.Enabled, OnFailed: v1alpha1.Enabled, OnWaiting: v1alpha1.Enabled, Channels: []v1alpha1.NotificationChannel{hook("hook")},
	}}}
	w := newWorld(t, trusting(r), secret(r.URL), release, environment)
	all := &assigned{environment: environment}
	releases := &Releases{People: w.Notifier, Environments: all, Clock: clocktesting.NewFakePassiveClock(noon)}
	name := types.NamespacedName{Namespace: "shop", Name: "pay"}
	look := func() reconcile.Result {
		t.Helper()
		result, err := releases.Reconcile(t.Context(), reconcile.Request{NamespacedName: name})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	change := func(waiting *v1alpha1.RolloutWait, lines ...v1alpha1.RolloutEvent) {
		t.Helper()
		if err := w.client.Get(t.Context(), name, release); err != nil {
			t.Fatal(err)
		}
		release.Status.Rollout.Waiting, release.Status.Rollout.History = waiting, append(release.Status.Rollout.History, lines...)
		if err := w.client.Update(t.Context(), release); err != nil {
			t.Fatal(err)
		}
		look()
		look() // as at a change that is no news
	}
	if result := look(); result.RequeueAfter == 0 {
		t.Error("while Environments are not known, the release is not looked at again")
	}
	all.known = true
	look()
	change(waitFor("Approval", 30))
	change(nil, line(2, 1, 40, "canary.stage_failed"), line(3, 1, 40, "ab.rolled_back"))
	change(waitFor("Approval", 90)) // another wait of the same reason
	var want []string
	for _, e := range []notify.Event{
		{Type: notify.RunStarted, Transition: "1"}, {Type: notify.RunWaiting, Transition: "1 Approval " + unix(30)},
		{Type: notify.RunRolledBack, Transition: "3"}, {Type: notify.RunWaiting, Transition: "1 Approval " + unix(90)},
	} {
		e.Release = &notify.ReleaseRef{UID: "r"}
		want = append(want, e.ID())
	}
	r.until(t, want...)

	// A release of the same name is another one.
	if err := w.client.Delete(t.Context(), release); err != nil {
		t.Fatal(err)
	}
	look()
	again := releaseWith(nil, line(1, 1, 100, "ab.started"))
	again.UID = "s"
	if err := w.client.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	look()
	r.until(t, append(want, notify.Event{Type: notify.RunStarted, Transition: "1", Release: &notify.ReleaseRef{UID: "s"}}.ID())...)
}

// A replica that had waited for the lease for days told people of all events of those days.
func TestAReplicaThatTakesOverTellsNoOldEvents(t *testing.T) {
	r := receive(t)
	release := releaseWith(nil, line(1, 1, 0, "ab.started"), line(2, 1, 600, "ab.promoted"))
	environment := &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Spec: v1alpha1.EnvironmentSpec{ReleaseNotifications: &v1alpha1.ReleaseNotifications{
		OnStarted: v1alpha1.Enabled, OnPromoted: v1alpha1.Enabled, Channels: []v1alpha1.NotificationChannel{hook("hook")},
	}}}
	w := newWorld(t, trusting(r), secret(r.URL), release, environment)
	now := clocktesting.NewFakePassiveClock(noon.Add(-72 * time.Hour))
	releases := &Releases{People: w.Notifier, Environments: &assigned{environment: environment, known: true}, Clock: now}
	now.SetTime(noon.Add(11 * time.Minute))
	if _, err := releases.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "pay"}}); err != nil {
		t.Fatal(err)
	}
	r.until(t, notify.Event{Type: notify.RunPromoted, Transition: "2", Release: &notify.ReleaseRef{UID: "r"}}.ID())
}

func unix(seconds int64) string { return strconv.FormatInt(noon.Unix()+seconds, 10) }

func TestTheChannelsOfAnEnvironmentGoWithIt(t *testing.T) {
	environment := &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Spec: v1alpha1.EnvironmentSpec{ReleaseNotifications: &v1alpha1.ReleaseNotifications{
		Channels: []v1alpha1.NotificationChannel{hook("hook")},
	}}}
	w := newWorld(t, nil, environment, policyWith(hook("hook")))
	releases := &Releases{People: w.Notifier}
	learn := func() {
		t.Helper()
		if _, err := releases.learnChannels(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "production"}}); err != nil {
			t.Fatal(err)
		}
	}
	w.Notify(event(notify.PlanStarted, "1")) // no channel of a policy is known yet
	learn()
	if known := len(w.bySource["environment:production"]); known != 1 {
		t.Errorf("the Environment has %d channels", known)
	}
	if err := w.client.Delete(t.Context(), client.Object(environment)); err != nil {
		t.Fatal(err)
	}
	learn()
	if _, known := w.bySource["environment:production"]; known {
		t.Error("the channels of an Environment that is gone are known")
	}
}
