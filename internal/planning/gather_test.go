// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func TestEverythingThatIsKnownOfADrift(t *testing.T) {
	c := newCluster(t)
	c.Baselines["web"].Status.LastReady = &v1alpha1.ReadyRevision{Revision: "older", Hash: "pl1:older"}
	g := c.gather()
	b := c.Baselines["web"]
	want := planner.Input{
		Policy: planner.Policy{
			PlanPolicy: v1alpha1.PlanPolicy{Name: "auto", UID: "policy-uid", Generation: 2, Digest: planner.Digest(&c.Policy.Spec)},
			Spec:       c.Policy.Spec,
		},
		Drifts: []planner.Drift{{
			Namespace: "shop", Baseline: "deployments.apps.web", Target: b.Spec.Target, UID: "uid-web", DriftedHash: b.Status.Observed.Hash,
			State: v1alpha1.StateDrifted, Findings: b.Status.Findings, Severity: *b.Status.Severity, FirstSeen: b.Status.FirstSeenTime.Time,
			Authorized: &planner.Repair{Revision: b.Spec.Authorized.Revision, RevisionHash: b.Spec.Authorized.Hash, DesiredHash: b.Spec.Authorized.Hash},
			Ready:      &planner.Repair{Revision: "older", RevisionHash: "pl1:older", DesiredHash: "pl1:older"},
			Component:  "web", Managed: true, Attributed: true,
		}},
		Scope:        planner.Scope{Selected: 3, Healthy: 2},
		Dependencies: c.Environment.Spec.Dependencies,
		Opening:      planner.Opening{Open: true, Why: "may act at any time"},
		InitiatedBy:  planner.InitiatedByItself, Now: epoch,
	}
	for i := range g.Input.Drifts { // a stored time has no location
		g.Input.Drifts[i].FirstSeen = g.Input.Drifts[i].FirstSeen.UTC()
		for j := range g.Input.Drifts[i].Findings {
			g.Input.Drifts[i].Findings[j].FirstSeenTime = metav1.NewTime(g.Input.Drifts[i].Findings[j].FirstSeenTime.UTC())
		}
	}
	if diff := cmp.Diff(want, g.Input); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
	if g.InEnvironment != 3 || g.Environment == nil || len(g.Problems) != 0 {
		t.Errorf("gathered %+v", g)
	}
	if out := planner.Make(&g.Input); len(out.Plans) != 1 {
		t.Errorf("left out: %+v", out.LeftOut)
	}
}

func TestWhatIsGone(t *testing.T) {
	resync := func(c *cluster) { c.Guard.Spec.ResyncPeriod = &metav1.Duration{Duration: time.Hour} }
	tests := map[string]struct {
		change func(*cluster)
		want   planner.Recreation
	}{
		"created, and checked": {resync, planner.Recreation{Allowed: true, Reason: "DeletedOutOfBand"}},
		"without checks":       {func(*cluster) {}, planner.Recreation{Reason: "ResyncOff"}},
		"imported":             {func(c *cluster) { resync(c); c.Baselines["web"].Spec.Authorized.Origin = v1alpha1.OriginImported }, planner.Recreation{Reason: "Imported"}},
		"unmanaged":            {func(c *cluster) { resync(c); c.Guard.Spec.ManagementPolicy = v1alpha1.Unmanaged }, planner.Recreation{Reason: "Unmanaged"}},
		"nobody knows who": {func(c *cluster) {
			resync(c)
			c.Baselines["web"].Status.Findings[0].Actor = v1alpha1.Actor{Class: v1alpha1.ActorUnknown}
		}, planner.Recreation{Reason: "Unattributed"}},
		"its namespace goes too": {func(c *cluster) {
			resync(c)
			c.Namespace.DeletionTimestamp, c.Namespace.Finalizers = &metav1.Time{Time: epoch}, []string{"kubernetes"}
		}, planner.Recreation{Reason: "NamespaceTerminating"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Gone("web")
			tc.change(c)
			g := c.gather()
			if len(g.Input.Drifts) != 1 {
				t.Fatalf("%d drifts", len(g.Input.Drifts))
			}
			d := g.Input.Drifts[0]
			if diff := cmp.Diff(tc.want, d.Recreation); diff != "" {
				t.Errorf("recreation (-want +got):\n%s", diff)
			}
			if d.State != v1alpha1.StateMissing || d.UID != "uid-web" || d.DriftedHash != specguard.HashAbsent {
				t.Errorf("the drift is %+v", d)
			}
		})
	}
	t.Run("what is there again is not gone", func(t *testing.T) {
		c := newCluster(t)
		again := c.Objects["web"]
		c.Gone("web")
		c.Objects["web"] = again
		if d := c.gather().Input.Drifts[0]; d.State != v1alpha1.StateUnknown {
			t.Errorf("it is %s", d.State)
		}
	})
	t.Run("a policy with a selector is not about it, for nobody knows its labels", func(t *testing.T) {
		c := newCluster(t)
		c.Gone("web")
		c.Policy.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		if g := c.gather(); len(g.Input.Drifts) != 0 {
			t.Errorf("%+v", g.Input.Drifts)
		}
	})
}

func TestWhatAPolicyIsAbout(t *testing.T) {
	tests := map[string]struct {
		change                  func(*cluster)
		selected, drifts, among int
	}{
		"all of its Environment": {func(*cluster) {}, 3, 1, 3},
		"another kind": {func(c *cluster) {
			c.Policy.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "StatefulSet"}}
		}, 0, 0, 3},
		"its kind in another version": {func(c *cluster) {
			c.Policy.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v2", Kind: "Deployment"}}
		}, 3, 1, 3},
		"some labels": {func(c *cluster) {
			c.Policy.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		}, 1, 0, 3},
		"another Environment's":       {func(c *cluster) { c.Namespace.Labels["tier"] = "staging" }, 0, 0, 0},
		"what nobody guards any more": {func(c *cluster) { c.Baselines["web"].Status.RetirementTime = &metav1.Time{Time: epoch} }, 2, 0, 2},
		"a more critical Environment's": {func(c *cluster) {
			c.Environment.Spec.Criticality = v1alpha1.CriticalityStaging
			c.Further = append(c.Further, &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: v1alpha1.EnvironmentSpec{
				Criticality: v1alpha1.CriticalityProduction, NamespaceSelector: c.Environment.Spec.NamespaceSelector,
			}})
		}, 0, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			tc.change(c)
			g := c.gather()
			if g.Input.Scope.Selected != tc.selected || len(g.Input.Drifts) != tc.drifts || g.InEnvironment != tc.among {
				t.Errorf("%d selected of %d, %d drifts", g.Input.Scope.Selected, g.InEnvironment, len(g.Input.Drifts))
			}
		})
	}
}

func TestAnObjectThatAPlanPutsBackIsNoneOfTheOthers(t *testing.T) {
	c := newCluster(t)
	plan := c.Ended("a", v1alpha1.PlanRunning, v1alpha1.StepApplied, "")
	plan.Spec.Plan.Targets[0].BaselineName = c.Baselines["db"].Name
	c.Objects["db"].Status = appsv1.DeploymentStatus{}
	if diff := cmp.Diff(planner.Scope{Selected: 3, Healthy: 1}, c.gather().Input.Scope); diff != "" {
		t.Errorf("scope (-want +got):\n%s", diff)
	}
}

func TestHealthIsThatOfWhatDidNotDrift(t *testing.T) {
	c := newCluster(t)
	c.Objects["db"].Status = appsv1.DeploymentStatus{}
	c.Baselines["cache"].Status.State = v1alpha1.StateUnknown
	c.Objects["web"].Status = appsv1.DeploymentStatus{} // it drifted, and does not count
	if diff := cmp.Diff(planner.Scope{Selected: 3, Unhealthy: 1}, c.gather().Input.Scope); diff != "" {
		t.Errorf("scope (-want +got):\n%s", diff)
	}
}

func TestWhatTheSchemaCannotCheck(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.RemediationPolicySpec)
		want   string
	}{
		"an unknown zone": {func(s *v1alpha1.RemediationPolicySpec) {
			s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00", TimeZone: "Mars/Olympus"}
		}, "spec.schedule.maintenanceWindow.timeZone"},
		"an Environment that is not there": {func(s *v1alpha1.RemediationPolicySpec) { s.EnvironmentName = "nowhere" }, "spec.environmentName"},
		"a selector that is none": {func(s *v1alpha1.RemediationPolicySpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, "spec.selector"},
		"times that never meet": {func(s *v1alpha1.RemediationPolicySpec) {
			s.Schedule = v1alpha1.RemediationSchedule{MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00"}, AllowedStart: "10:00", AllowedEnd: "12:00"}
		}, "spec.schedule.allowedStart"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			tc.change(&c.Policy.Spec)
			g := c.gather()
			if len(g.Problems) != 1 || g.Problems[0].Field != tc.want || len(g.Input.Drifts) != 0 {
				t.Errorf("problems %v, %d drifts", g.Problems, len(g.Input.Drifts))
			}
		})
	}
}

func TestTheSchedule(t *testing.T) {
	c := newCluster(t)
	c.Policy.Spec.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00", TimeZone: "UTC"}
	in := c.gather().Input
	if in.Opening.Open || !in.Opening.Next.Equal(time.Date(2026, 3, 3, 2, 0, 0, 0, time.UTC)) || in.Opening.Why == "" {
		t.Errorf("at ten it is %+v", in.Opening)
	}
	q := c.question()
	q.Now, q.Skew = time.Date(2026, 3, 3, 3, 0, 0, 0, time.UTC), time.Minute
	g, err := Gather(t.Context(), c.live(), q)
	if err != nil || g.Input.Opening.Open || !g.Input.Opening.Next.IsZero() {
		t.Errorf("with a clock that is off it is %+v (%v)", g.Input.Opening, err)
	}
}

func TestScaling(t *testing.T) {
	scale := func(c *cluster) {
		c.Policy.Spec.Action = v1alpha1.ActionScale
		c.Drift("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
		c.Baselines["web"].Status.Findings[0].Path = "/spec/replicas"
	}
	c := newCluster(t)
	scale(c)
	d := c.gather().Input.Drifts[0]
	// What is left after the replicas are put back is the other image.
	left := c.Objects["web"].DeepCopy()
	left.Spec.Replicas = new(int32(2))
	if want := string(c.Decode(left).FullHash); d.Scaled == nil || d.Scaled.DesiredHash != want || d.Scaled.RevisionHash != d.Authorized.RevisionHash {
		t.Errorf("scaled is %+v, want %s", d.Scaled, want)
	}
	for name, change := range map[string]func(*cluster){
		"the replicas did not drift": func(c *cluster) { c.Baselines["web"].Status.Findings[0].Path = "/spec/paused" },
		"its body is lost":           func(c *cluster) { delete(c.Authorized, "web") },
		"it has changed since":       func(c *cluster) { c.Objects["web"].Spec.Replicas = new(int32(9)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			scale(c)
			change(c)
			d := c.gather().Input.Drifts[0]
			if d.Scaled != nil {
				t.Errorf("scaled is %+v", d.Scaled)
			}
			// A policy said that the number did not change where nobody knew the number.
			if lost := len(c.Authorized) < 3; d.BodyLost != lost {
				t.Errorf("its body is lost: %t, want %t", d.BodyLost, lost)
			}
		})
	}
}

func TestPlansThatWereReadLiveCount(t *testing.T) {
	c := newCluster(t)
	under := c.Ended("now", "", v1alpha1.StepPlanned, "")
	c.Plans = nil
	q := c.question()
	q.Plans = []v1alpha1.RemediationPlan{*under}
	g, err := Gather(t.Context(), c.live(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Input.UnderWay) != 1 || g.LastPlan != "shop/now" || len(planner.Make(&g.Input).Plans) != 0 {
		t.Errorf("under way are %+v", g.Input.UnderWay)
	}
	// What the cache has of a plan is older than what was read.
	stale := under.DeepCopy()
	c.Plans = []*v1alpha1.RemediationPlan{stale}
	under.Status.Phase = v1alpha1.PlanFailed
	q.Plans = []v1alpha1.RemediationPlan{*under}
	if g, err = Gather(t.Context(), c.live(), q); err != nil || len(g.Input.UnderWay) != 0 || g.Input.Drifts[0].Attempts != 1 {
		t.Errorf("under way are %+v, drifts %+v (%v)", g.Input.UnderWay, g.Input.Drifts, err)
	}
}

// views are what a watch knows.
type views map[kube.Key]kube.View

func (v views) View(key kube.Key) kube.View { return v[key] }

func TestFromTheCacheIsTheSameAsLive(t *testing.T) {
	c := newCluster(t)
	live := c.live()
	world, err := live.World(t.Context(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	v := views{}
	for name, d := range c.Objects {
		v[kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: name}] = kube.View{Current: c.Decode(d)}
	}
	reader := c.Reader()
	src := &FromCache{Cache: reader, Live: reader, Snapshot: func() *guards.Snapshot { return world.Guards }, Objects: v}
	cached, err := Gather(t.Context(), src, c.question())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.gather().Input, cached.Input); diff != "" {
		t.Errorf("(-live +cache):\n%s", diff)
	}
	// What the watch cannot tell is unknown, and neither healthy nor ill.
	for key := range v {
		v[key] = kube.View{Unknown: errors.New("not listed yet")}
	}
	blind, err := Gather(t.Context(), src, c.question())
	if err != nil || blind.Input.Drifts[0].State != v1alpha1.StateUnknown || blind.Input.Scope.Healthy+blind.Input.Scope.Unhealthy != 0 {
		t.Errorf("without a watch: %+v (%v)", blind.Input, err)
	}
	src.Snapshot = func() *guards.Snapshot { return nil }
	if _, err := Gather(t.Context(), src, c.question()); !errors.Is(err, ErrNotReady) {
		t.Errorf("before the guards are read: %v", err)
	}
}

// failing is a Source that cannot read some of it.
type failing struct {
	*Live
	object, plan error
}

func (f *failing) Object(ctx context.Context, key kube.Key) (*kube.Object, error) {
	if f.object != nil {
		return nil, f.object
	}
	return f.Live.Object(ctx, key)
}

func (f *failing) Plan(ctx context.Context, namespace, name string) (*v1alpha1.RemediationPlan, error) {
	if f.plan != nil {
		return nil, f.plan
	}
	return f.Live.Plan(ctx, namespace, name)
}

func TestWhatCannotBeReadIsNotGuessed(t *testing.T) {
	refused := errors.New("refused")
	c := newCluster(t)
	g, err := Gather(t.Context(), &failing{Live: c.live(), object: refused}, c.question())
	if err != nil || g.Input.Drifts[0].State != v1alpha1.StateUnknown {
		t.Errorf("an object that cannot be read: %+v (%v)", g, err)
	}
	c.Baselines["web"].Status.PlanName = "other"
	if _, err := Gather(t.Context(), &failing{Live: c.live(), plan: refused}, c.question()); !errors.Is(err, refused) {
		t.Errorf("a claim that cannot be read: %v", err)
	}
}

func TestKindsThatAreNeverWritten(t *testing.T) {
	c := newCluster(t)
	c.Baselines["web"].Spec.Target = v1alpha1.BaselineTarget{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Name: "web"}
	roles := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	world, err := c.live().World(t.Context(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	object := c.Decode(c.Objects["web"])
	src := &FromCache{
		Cache: c.Reader(), Live: c.Reader(), Snapshot: func() *guards.Snapshot { return world.Guards },
		Objects: views{kube.Key{GroupVersionKind: roles, Namespace: "shop", Name: "web"}: kube.View{Current: object}},
	}
	g, err := Gather(t.Context(), src, c.question())
	if err != nil || len(g.Input.Drifts) != 1 || !g.Input.Drifts[0].Forbidden {
		t.Errorf("%+v (%v)", g, err)
	}
}
