// SPDX-License-Identifier: Apache-2.0

//go:build integration

package remediate

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// The users of the tests.
const (
	ci       = guarded.CI
	alice    = "alice"
	platform = remediation.Platform
)

// evil is the image of a drift.
const evil = remediation.EvilImage

// world is a guarded namespace that is an Environment of its own, of the same name.
type world struct {
	*remediation.World
	t testing.TB
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{remediation.NewWorld(t, cluster, nil), t}
}

// policy makes an active policy that puts everything back at once, with changes.
func (w *world) policy(changes ...func(*v1alpha1.RemediationPolicySpec)) *v1alpha1.RemediationPolicy {
	w.t.Helper()
	p := &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name},
		Spec: v1alpha1.RemediationPolicySpec{
			EnvironmentName: w.Name, Mode: v1alpha1.PolicyModeActive, RequestedBy: platform,
			Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile,
			// What was just deployed counts as being worked on, for two minutes.
			Exceptions: v1alpha1.RemediationExceptions{ActiveWriter: v1alpha1.Allowed},
		},
	}
	for _, change := range changes {
		change(&p.Spec)
	}
	w.Made(platform, p)
	return p
}

// running deploys and does what the deployment controller would do.
func (w *world) running(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.Deploy(ci, name)
		w.UntilIs(name, "InSync")
		w.ready(name)
	}
}

// ready writes the status of a Deployment that is rolled out.
func (w *world) ready(name string) {
	w.t.Helper()
	d := w.Live(name)
	d.Status = remediation.RolledOut(d, true)
	w.Must(admin.Status().Update(w.Ctx(), d))
}

// plans of the policy, oldest first.
func (w *world) plans() []v1alpha1.RemediationPlan {
	w.t.Helper()
	var list v1alpha1.RemediationPlanList
	w.Must(admin.List(w.Ctx(), &list, client.MatchingLabels{planner.LabelPolicy: planner.PolicyLabel(w.Name)}))
	slices.SortFunc(list.Items, func(a, b v1alpha1.RemediationPlan) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list.Items
}

// targets are the names of all targets of all plans, sorted.
func (w *world) targets() []string {
	var out []string
	for _, p := range w.plans() {
		for i := range p.Spec.Plan.Targets {
			out = append(out, p.Spec.Plan.Targets[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

func (w *world) untilTargets(want ...string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("the targets are %v", want), func() error {
		if got := w.targets(); !slices.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

// untilPolicy waits until the status of the policy is as the check wants it.
func (w *world) untilPolicy(what string, check func(*v1alpha1.RemediationPolicy) error) *v1alpha1.RemediationPolicy {
	w.t.Helper()
	p := &v1alpha1.RemediationPolicy{}
	w.Eventually(what, func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKey{Name: w.Name}, p); err != nil {
			return err
		}
		if p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("it speaks of generation %d", p.Status.ObservedGeneration)
		}
		if err := check(p); err != nil {
			return fmt.Errorf("%w; the status is %+v", err, p.Status)
		}
		return nil
	})
	return p
}

// counts is a check of what a policy selects, what drifted, and what is eligible.
func counts(selected, drifted, eligible int32) func(*v1alpha1.RemediationPolicy) error {
	want := v1alpha1.PolicyTargets{Selected: selected, Drifted: drifted, Eligible: eligible}
	return func(p *v1alpha1.RemediationPolicy) error {
		got := p.Status.Targets
		got.Healthy, got.Unhealthy = 0, 0 // no controller runs that makes a Deployment ready
		if got != want {
			return fmt.Errorf("the counts are %+v, want %+v", p.Status.Targets, want)
		}
		return nil
	}
}

// end writes what the executor writes when a plan has ended.
func (w *world) end(plan *v1alpha1.RemediationPlan, phase v1alpha1.PlanPhase, state v1alpha1.StepState, reason v1alpha1.StepReason) {
	w.t.Helper()
	now := metav1.Now()
	plan.Status.Phase, plan.Status.CompletionTime, plan.Status.Epoch = phase, &now, 1
	for i := range plan.Spec.Plan.Targets {
		plan.Status.Steps = append(plan.Status.Steps, v1alpha1.PlanStep{
			Index: int32(i), State: state, Reason: reason, //nolint:gosec // at most ten
			Evidence: &v1alpha1.StepEvidence{Sequence: int64(i + 1), Digest: "sha256:test"},
		})
	}
	w.Must(w.As(remediation.ExecutorUser).Status().Update(w.Ctx(), plan))
}

// start runs an assessor, as the binary does, until the test ends or it is halted.
func start(t testing.TB, options ...func(*assessor.Setup)) *inprocess.Process {
	t.Helper()
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: remediation.AssessorUser}
	setup := assessor.Setup{
		Config: own, Namespace: rendered.Namespace, Retention: time.Hour,
		Rules:    specguard.Config{Key: []byte("a key of the tests"), Grace: 200 * time.Millisecond},
		Registry: prometheus.NewRegistry(), Log: inprocess.Log(t), Clock: clock.RealClock{},
	}
	for _, o := range options {
		o(&setup)
	}
	return inprocess.Start(t, "assessor", patience, func(ctx context.Context, ready func()) error {
		setup.Ready = ready
		return assessor.Run(ctx, setup)
	})
}
