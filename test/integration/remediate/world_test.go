// SPDX-License-Identifier: Apache-2.0

//go:build integration

package remediate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/controller/assess"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// The users of the tests.
const (
	ci       = guarded.CI
	alice    = "alice"
	platform = "platform"
	// executor is who may say what became of a plan.
	executor = "system:serviceaccount:plumbline-system:plumbline-executor"
)

// evil is the image of a drift.
const evil = "registry.example/evil:1"

// world is a guarded namespace that is an Environment of its own, of the same name.
type world struct {
	*guarded.Namespace
	t testing.TB
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{cluster.NewNamespace(t), t}
	e := &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name},
		Spec: v1alpha1.EnvironmentSpec{
			Criticality:       v1alpha1.CriticalityProduction,
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Name}},
		},
	}
	w.Must(admin.Create(w.Ctx(), e))
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), e); err != nil {
			t.Errorf("removing the environment: %v", err)
		}
	})
	return w
}

// policy makes an active policy that puts everything back at once, with changes.
func (w *world) policy(changes ...func(*v1alpha1.RemediationPolicySpec)) *v1alpha1.RemediationPolicy {
	w.t.Helper()
	p := &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name},
		Spec: v1alpha1.RemediationPolicySpec{
			Environment: w.Name, Mode: v1alpha1.PolicyModeActive, RequestedBy: platform,
			Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile,
			// What was just deployed counts as being worked on, for two minutes.
			Exceptions: v1alpha1.RemediationExceptions{ActiveWriter: v1alpha1.Allowed},
		},
	}
	for _, change := range changes {
		change(&p.Spec)
	}
	w.Must(w.As(platform).Create(w.Ctx(), p))
	w.t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(w.t.Context()), p); err != nil {
			w.t.Errorf("removing the policy: %v", err)
		}
	})
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
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
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
		if p.Status.Targets != want {
			return fmt.Errorf("the counts are %+v, want %+v", p.Status.Targets, want)
		}
		return nil
	}
}

// end writes what the executor writes when a plan has ended.
func (w *world) end(plan *v1alpha1.RemediationPlan, phase v1alpha1.PlanPhase, state v1alpha1.StepState, reason v1alpha1.StepReason) {
	w.t.Helper()
	now := metav1.Now()
	plan.Status.Phase, plan.Status.CompletedAt, plan.Status.Epoch = phase, &now, 1
	for i := range plan.Spec.Plan.Targets {
		plan.Status.Steps = append(plan.Status.Steps, v1alpha1.PlanStep{
			Index: int32(i), State: state, Reason: reason, //nolint:gosec // at most ten
			Evidence: &v1alpha1.StepEvidence{Sequence: int64(i + 1), Digest: "sha256:test"},
		})
	}
	w.Must(w.As(executor).Status().Update(w.Ctx(), plan))
}

// process is an assessor that runs as the binary does, within the test.
type process struct {
	stop context.CancelFunc
	done chan error
}

// start runs an assessor until the test ends or it is stopped.
func start(t testing.TB, options ...func(*assess.Setup)) *process {
	t.Helper()
	p := &process{done: make(chan error, 1)}
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: assessorUser}
	ready := make(chan struct{})
	setup := assess.Setup{
		Config: own, Namespace: rendered.Namespace, Retention: time.Hour,
		Rules:    specguard.Config{Key: []byte("a key of the tests"), Grace: 200 * time.Millisecond},
		Registry: prometheus.NewRegistry(), Log: testLog(t), Clock: clock.RealClock{},
		Ready: func() { close(ready) },
	}
	for _, o := range options {
		o(&setup)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() { p.done <- assess.Run(ctx, setup) }()
	t.Cleanup(func() { p.halt(t) })
	select {
	case <-ready:
	case err := <-p.done:
		p.done <- err
		t.Fatalf("the assessor ended at once: %v", err)
	case <-time.After(patience):
		t.Fatal("the assessor's caches did not sync")
	}
	return p
}

// halt stops the assessor and waits for its end; a second call does nothing.
func (p *process) halt(t testing.TB) {
	t.Helper()
	p.stop()
	select {
	case err := <-p.done:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the assessor ended with an error: %v", err)
		}
		p.done <- nil
	case <-time.After(patience):
		t.Error("the assessor does not end")
	}
}

func testLog(t testing.TB) logr.Logger {
	if !testing.Verbose() {
		return logr.Discard()
	}
	return testr.NewWithInterface(safeT{t}, testr.Options{})
}

// safeT drops what is logged while the test is ending.
type safeT struct{ testing.TB }

// Log implements testr.TestingT.
func (s safeT) Log(args ...any) {
	select {
	case <-s.Context().Done():
	default:
		s.TB.Log(args...)
	}
}
