// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// standbyRights gives the executor what the chart gives it beside a mesh, and what the owner of the
// namespace gives it for standbys.
func (w *world) standbyRights() {
	w.t.Helper()
	meshRights(w.t)
	helm, err := rendered.Find(w.t.Context())
	w.Must(err)
	objects, err := apiserver.Render(w.t.Context(), helm, "--values", "testdata/values.yaml", "--set", "mesh.enabled=true")
	w.Must(err)
	found := 0
	for _, o := range objects {
		if o.GetName() != "plumbline-executor-standbys" {
			continue
		}
		found++
		if err := admin.Create(w.t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			w.t.Fatal(err)
		}
	}
	if found != 3 {
		w.t.Fatalf("the chart has %d objects of the name plumbline-executor-standbys", found)
	}
	binding := w.Binding()
	binding.Name = "plumbline-executor-standbys"
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plumbline-executor-standbys"}
	w.Must(admin.Create(w.t.Context(), binding))
}

// behind makes the managed Service front with these Deployments behind it, each with a ready pod.
func (w *world) behind(deployments ...string) {
	w.t.Helper()
	http := "http"
	w.Must(admin.Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "front", Labels: map[string]string{ir.Managed: "true"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"tier": "front"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, AppProtocol: &http}}},
	}))
	for i, name := range deployments {
		w.pod(name, fmt.Sprintf("10.9.1.%d", i+1))
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: name + "-abc-x"}}
		w.Must(admin.Patch(w.t.Context(), p, patchOf(map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "front"}}})))
	}
}

// discoveryServer decides about the ABReleases of standbys, and has all proxies acknowledge, until the
// test ends.
func (w *world) discoveryServer() {
	w.t.Helper()
	live, err := client.NewWithWatch(config, client.Options{Scheme: admin.Scheme()})
	w.Must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-done })
	watch, err := live.Watch(ctx, &v1alpha1.ABReleaseList{}, client.InNamespace(w.Name))
	w.Must(err)
	go func() {
		defer close(done)
		defer watch.Stop()
		for event := range watch.ResultChan() {
			r, is := event.Object.(*v1alpha1.ABRelease)
			if !is || r.DeletionTimestamp != nil || r.Status.ObservedGeneration == r.Generation {
				continue
			}
			terms, err := release.TermsOf(r)
			if err != nil {
				continue // the status stays as it was, and the test ends for that
			}
			ready := map[string]int{string(v1alpha1.VariationTarget): 3, string(v1alpha1.VariationStandby): 3}
			release.Decide(release.Facts{Terms: &terms, Before: release.StateOf(r), Ready: ready, Now: time.Now()}).After.Write(&r.Status)
			r.Status.ObservedGeneration = r.Generation
			r.Status.Acknowledged = &v1alpha1.SplitAcknowledgment{Count: "2/2", Sequence: r.Status.Effective.Sequence, Knowledge: v1alpha1.AcknowledgedProven, Proxies: 2, AcknowledgedProxies: 2}
			_ = live.Status().Update(ctx, r) // after a conflict there is another event
		}
	}()
}

// blueGreen has a policy repair while standbys serve.
func blueGreen(s *v1alpha1.RemediationPolicySpec) {
	s.Strategy = v1alpha1.StrategyBlueGreen
	s.Standby = &v1alpha1.StandbyTemplate{PodLabels: map[string]v1alpha1.LabelValue{"app": "standby", "tier": "standby"}}
}

// planned has a plan by hand be one of blueGreen.
func planned(p *v1alpha1.PlannedRemediation) {
	p.Strategy = v1alpha1.StrategyBlueGreen
	p.Standby = &v1alpha1.StandbyTemplate{PodLabels: map[string]v1alpha1.LabelValue{"app": "standby", "tier": "standby"}}
}

// untilStandby waits until the standby of a plan has come to a phase.
func (w *world) untilStandby(plan *v1alpha1.RemediationPlan, phase v1alpha1.StandbyPhase) *v1alpha1.StepStandby {
	w.t.Helper()
	return w.UntilPlan(plan, "its standby is "+string(phase), func(p *v1alpha1.RemediationPlan) bool {
		return len(p.Status.Steps) == 1 && p.Status.Steps[0].Standby != nil && p.Status.Steps[0].Standby.Phase == phase
	}).Status.Steps[0].Standby
}

// collected checks that the garbage collector would remove a standby, and does so.
func (w *world) collected(name string) {
	w.t.Helper()
	left := w.Live(name)
	owner := metav1.GetControllerOf(left)
	if owner == nil || owner.Kind != "ABRelease" || owner.Name != name {
		w.t.Errorf("the standby belongs to %v", owner)
	}
	err := admin.Get(w.t.Context(), client.ObjectKeyFromObject(left), &v1alpha1.ABRelease{})
	if !apierrors.IsNotFound(err) {
		w.t.Errorf("the ABRelease of the standby: %v", err)
	}
	w.Must(admin.Delete(w.t.Context(), left))
}

// forgesStandby has a tenant copy the label of a standby, and change the standby itself.
func (w *world) forgesStandby(name string) {
	w.t.Helper()
	copied := guarded.Deployment(w.Name, "copied")
	copied.Labels = map[string]string{"app": "copied", v1alpha1.LabelStandby: w.Live(name).Labels[v1alpha1.LabelStandby]}
	w.Must(w.As(mallory).Create(w.t.Context(), copied))
	w.Until("copied", "it is unexpected", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Findings) != 1 || b.Status.Findings[0].Class != v1alpha1.ClassObjectUnexpected {
			return fmt.Errorf("it is %s, with %v", b.Status.State, b.Status.Findings)
		}
		return nil
	})
	w.Scale(mallory, name, 7)
	w.Until(name, "its change is drift", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
}

func TestATargetIsRepairedWhileItsStandbyServes(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.standbyRights()
	var gate remediation.Gate
	w.RolloutsThrough(&gate)
	w.UnderGuard()
	w.Drifted("web")
	w.behind("web")
	w.discoveryServer()
	gate.Shut()
	records, now := newEvidence(t), &inprocess.Ahead{}
	startExecutor(t, records, withMesh, func(s *executor.Setup) { s.Clock = now; now.Dates(s.Config) })
	w.policy(busyWriters, blueGreen)
	plan := w.onlyPlan()
	made := w.untilStandby(plan, v1alpha1.StandbyPreparing)
	w.Eventually("the standby is made", func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: w.Name, Name: made.Name}, &appsv1.Deployment{})
	})
	if imageOf(w.Live("web")) != remediation.EvilImage {
		t.Errorf("web was written before its standby serves: %s", imageOf(w.Live("web")))
	}
	gate.Open()
	w.untilStandby(plan, v1alpha1.StandbyDraining)
	if imageOf(w.Live("web")) != guarded.Image || imageOf(w.Live(made.Name)) != guarded.Image {
		t.Errorf("web runs %s, and its standby %s", imageOf(w.Live("web")), imageOf(w.Live(made.Name)))
	}
	w.UntilIs(made.Name, "InSync")
	w.forgesStandby(made.Name)
	now.Set(time.Now().Add(2 * time.Minute))
	w.wake(plan)
	plan = w.succeeded()
	if s := plan.Status.Steps[0].Standby; s.Phase != v1alpha1.StandbyRemoved || s.Number != 1 || s.Evidence == nil {
		t.Errorf("the standby is %+v", s)
	}
	w.collected(made.Name)
	w.settled(1)
	w.proven(records, plan)
}

func TestATargetWithoutAStandbyIsLeftAlone(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	records := newEvidence(t)
	startExecutor(t, records, withMesh)
	for name, tc := range map[string]struct {
		prepare func(*world)
		change  func(*v1alpha1.PlannedRemediation)
		want    string
	}{
		"no Service serves it":                     {prepare: func(w *world) { w.standbyRights() }, want: "NoService: "},
		"others are behind its Service":            {prepare: func(w *world) { w.standbyRights(); w.behind("web", "api") }, want: "SharedService: "},
		"the owner of the namespace did not bind":  {prepare: func(w *world) { meshRights(w.t); w.behind("web") }, want: "NotAllowed: the executor may make no standby in namespace "},
		"its labels leave the pods in the Service": {func(w *world) { w.standbyRights(); w.behind("web") }, func(p *v1alpha1.PlannedRemediation) { p.Standby.PodLabels = map[string]v1alpha1.LabelValue{"x": "y"} }, "PodLabels: "},
		"an autoscaler scales it": {prepare: func(w *world) {
			w.standbyRights()
			w.behind("web")
			w.Must(admin.Create(w.t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "web"},
				Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
					ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 3,
				},
			}))
		}, want: "HasAutoscaler: "},
		"an ABRelease divides its requests": {prepare: func(w *world) {
			w.standbyRights()
			w.behind("web")
			w.Must(admin.Create(w.t.Context(), &v1alpha1.ABRelease{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "pay"},
				Spec: v1alpha1.ABReleaseSpec{
					ServiceName: "front", Stable: "a",
					Variations: []v1alpha1.Variation{
						{Name: "a", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}},
						{Name: "b", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web-b"}},
					},
					TrafficSplit: v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{"a": v1alpha1.Percent(100), "b": v1alpha1.Percent(0)}},
				},
			}))
		}, want: "ServiceHasRelease: ABRelease pay"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.prepare(w)
			w.Rollouts()
			w.UnderGuard()
			w.Drifted("web")
			change := tc.change
			if change == nil {
				change = func(*v1alpha1.PlannedRemediation) {}
			}
			plan := w.Ended(w.plan(w.policy(selectsNothing, blueGreen), "web", planned, change))
			step := plan.Status.Steps[0]
			if plan.Status.Phase != v1alpha1.PlanSkipped || step.Reason != v1alpha1.ReasonNoStandby || !strings.HasPrefix(step.Message, tc.want) {
				t.Errorf("the plan is %s: %s", remediation.Describe(plan), step.Message)
			}
			if step.Standby != nil || imageOf(w.Live("web")) != remediation.EvilImage {
				t.Errorf("its standby is %+v, and web runs %s", step.Standby, imageOf(w.Live("web")))
			}
			w.settled(0)
			w.proven(records, plan)
		})
	}
}

// A cancellation stops forward work. It does not stop the return of requests.
func TestACancellationReturnsTheRequests(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.standbyRights()
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	w.behind("web")
	records, now := newEvidence(t), &inprocess.Ahead{}
	policy := w.policy(selectsNothing, blueGreen)
	plan := w.plan(policy, "web", planned)
	first := startExecutor(t, records, withMesh) // no proxy acknowledges, so it waits
	made := w.untilStandby(plan, v1alpha1.StandbyPreparing)
	w.Eventually("the ABRelease is made", func() error {
		r := &v1alpha1.ABRelease{}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: w.Name, Name: made.Name}, r); err != nil {
			return fmt.Errorf("reading it: %w", err)
		}
		if len(r.OwnerReferences) != 1 || r.OwnerReferences[0].UID != plan.UID {
			return errors.New("it does not belong to the plan")
		}
		return nil
	})
	first.Halt(t)
	w.Control(plan, v1alpha1.PlanCancel)
	now.Set(time.Now().Add(2 * time.Minute))
	startExecutor(t, records, withMesh, func(s *executor.Setup) { s.Clock = now; now.Dates(s.Config) })
	plan = w.Ended(plan)
	if s := plan.Status.Steps[0].Standby; plan.Status.Phase != v1alpha1.PlanCanceled || s.Phase != v1alpha1.StandbyRemoved {
		t.Errorf("the plan is %s, and its standby %+v", remediation.Describe(plan), s)
	}
	if imageOf(w.Live("web")) != remediation.EvilImage {
		t.Errorf("web runs %s", imageOf(w.Live("web")))
	}
	w.collected(made.Name)
	w.settled(0)
	w.proven(records, plan)
}

// The executor writes no ABRelease but those of standbys.
func TestTheExecutorWritesNoOtherABRelease(t *testing.T) {
	w := newWorld(t)
	w.standbyRights()
	r := &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "pay", Annotations: map[string]string{"plumbline.dev/not-after": "2126-01-01T00:00:00Z"}},
		Spec: v1alpha1.ABReleaseSpec{
			ServiceName: "front", Stable: "a",
			Variations: []v1alpha1.Variation{
				{Name: "a", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}},
				{Name: "b", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web-b"}},
			},
			TrafficSplit: v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{"a": v1alpha1.Percent(100), "b": v1alpha1.Percent(0)}},
		},
	}
	w.Eventually("the policy is in force", func() error {
		if err := w.As(remediation.ExecutorUser).Create(t.Context(), r.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only if it is that of a standby") {
			return fmt.Errorf("a creation by the executor: %w", errors.Join(err, errors.New("it has to be refused")))
		}
		return nil
	})
	w.Must(admin.Create(t.Context(), r))
	if err := w.As(remediation.ExecutorUser).Delete(t.Context(), r); !apierrors.IsForbidden(err) {
		t.Errorf("a deletion by the executor: %v", err)
	}
	r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{"a": v1alpha1.Percent(0), "b": v1alpha1.Percent(100)}
	if err := w.As(remediation.ExecutorUser).Update(t.Context(), r); !apierrors.IsForbidden(err) {
		t.Errorf("a change by the executor: %v", err)
	}
}
