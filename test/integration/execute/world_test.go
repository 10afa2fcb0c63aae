// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// The users of the tests.
const (
	ci       = guarded.CI
	mallory  = "mallory"
	platform = "platform"
)

// world is a guarded namespace in an Environment of its own, where the executor
// may write, and whose rollouts succeed.
type world struct {
	*guarded.Namespace
	t           testing.TB
	environment string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	n := cluster.NewNamespace(t)
	w := &world{Namespace: n, t: t, environment: n.Name}
	w.Must(admin.Create(t.Context(), &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: w.environment},
		Spec: v1alpha1.EnvironmentSpec{
			Criticality:       v1alpha1.CriticalityProduction,
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": n.Name}},
		},
	}))
	t.Cleanup(func() {
		w.removed(&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: w.environment}})
	})
	w.mayWrite()
	return w
}

func (w *world) removed(o client.Object) {
	if err := admin.Delete(context.WithoutCancel(w.t.Context()), o); client.IgnoreNotFound(err) != nil {
		w.t.Errorf("removing %s: %v", o.GetName(), err)
	}
}

// mayWrite binds the executor's rights in the namespace, as its owner would.
func (w *world) mayWrite() {
	w.t.Helper()
	w.Must(admin.Create(w.t.Context(), roleBinding(w.Name)))
}

func roleBinding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "plumbline-executor-targets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plumbline-executor-targets"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "plumbline-executor", Namespace: "plumbline-system"}},
	}
}

// rollouts does what the deployment controller and the kubelet do for Deployments
// whose image does not begin with "broken".
func (w *world) rollouts() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			w.rollOut(ctx)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
}

func (w *world) rollOut(ctx context.Context) {
	var all appsv1.DeploymentList
	if admin.List(ctx, &all, client.InNamespace(w.Name)) != nil {
		return
	}
	for i := range all.Items {
		d := &all.Items[i]
		if d.Status.ObservedGeneration == d.Generation {
			continue
		}
		works := !strings.HasPrefix(d.Spec.Template.Spec.Containers[0].Image, "broken")
		d.Status = statusOf(d, works)
		_ = admin.Status().Update(ctx, d) // a conflict is tried again at the next tick
	}
}

func statusOf(d *appsv1.Deployment, works bool) appsv1.DeploymentStatus {
	s := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas}
	available := corev1.ConditionFalse
	if works {
		s.ReadyReplicas, s.AvailableReplicas, available = s.Replicas, s.Replicas, corev1.ConditionTrue
	} else {
		s.UnavailableReplicas = s.Replicas
	}
	s.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: available, Reason: "Test"},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
	}
	return s
}

// policy makes an active policy of the world's Environment.
func (w *world) policy(changes ...func(*v1alpha1.RemediationPolicySpec)) *v1alpha1.RemediationPolicy {
	w.t.Helper()
	p := &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name},
		Spec: v1alpha1.RemediationPolicySpec{
			Environment: w.environment, Mode: v1alpha1.PolicyModeActive, RequestedBy: platform, RequestedByGroups: []string{people},
			Trigger: v1alpha1.TriggerImmediate, MinimumSeverity: v1alpha1.SeverityInfo, Action: v1alpha1.ActionReconcile,
			Safety: v1alpha1.RemediationSafety{Cooldown: &metav1.Duration{Duration: 0}},
			Health: v1alpha1.RemediationHealth{
				Stabilisation: &metav1.Duration{Duration: time.Second}, Timeout: &metav1.Duration{Duration: 10 * time.Second},
			},
		},
	}
	for _, change := range changes {
		change(&p.Spec)
	}
	w.Must(w.As(platform).Create(w.t.Context(), p))
	w.t.Cleanup(func() { w.removed(&v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}) })
	return p
}

// plan makes a plan that puts these Deployments back, one after the other, as the
// assessor would. Besides names it takes changes of its targets, and of itself.
func (w *world) plan(policy *v1alpha1.RemediationPolicy, of ...any) *v1alpha1.RemediationPlan {
	w.t.Helper()
	var names []string
	var ofTargets []func(*v1alpha1.PlanTarget)
	var ofPlan []func(*v1alpha1.PlannedRemediation)
	for _, o := range of {
		switch x := o.(type) {
		case string:
			names = append(names, x)
		case func(*v1alpha1.PlanTarget):
			ofTargets = append(ofTargets, x)
		case func(*v1alpha1.PlannedRemediation):
			ofPlan = append(ofPlan, x)
		}
	}
	p := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, GenerateName: "plan-"}}
	p.Spec.Plan = v1alpha1.PlannedRemediation{
		Policy: v1alpha1.PlanPolicy{
			Name: policy.Name, UID: string(policy.UID), Generation: policy.Generation, Digest: planner.Digest(&policy.Spec),
		},
		Environment: w.environment, Trigger: policy.Spec.Trigger, Strategy: v1alpha1.StrategyRolling,
		InitiatedBy: planner.InitiatedByItself, Requester: policy.Spec.RequestedBy, RequesterGroups: policy.Spec.RequestedByGroups,
		CorrelationID: "correlation", Deadline: metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second)),
	}
	for i, name := range names {
		target := w.target(name, policy.Spec.Action)
		for _, change := range ofTargets {
			change(&target)
		}
		p.Spec.Plan.Targets = append(p.Spec.Plan.Targets, target)
		p.Spec.Plan.Batches = append(p.Spec.Plan.Batches, v1alpha1.PlanBatch{
			Order: int32(i), Steps: []int32{int32(i)}, RequiresHealthCheck: v1alpha1.Enabled, //nolint:gosec // few
		})
	}
	for _, change := range ofPlan {
		change(&p.Spec.Plan)
	}
	assessor, err := client.New(as(assessorUser), client.Options{Scheme: admin.Scheme()})
	w.Must(err)
	w.Must(assessor.Create(w.t.Context(), p))
	return p
}

func (w *world) target(name string, action v1alpha1.RemediationAction) v1alpha1.PlanTarget {
	w.t.Helper()
	b, err := w.Baseline(name)
	w.Must(err)
	t := v1alpha1.PlanTarget{
		BaselineTarget: b.Spec.Target, Baseline: b.Name, UID: b.Status.Observed.UID,
		DriftedHash: b.Status.Observed.Hash, DesiredHash: b.Spec.Authorised.Hash,
		Revision: b.Spec.Authorised.Revision, RevisionHash: b.Spec.Authorised.Hash,
		Action: action, Severity: *b.Status.Severity, DriftType: v1alpha1.DriftOther, FirstSeen: *b.Status.FirstSeen,
	}
	for i := range b.Status.Findings {
		t.DriftType = b.Status.Findings[i].Type
		if path := b.Status.Findings[i].Path; path != "" {
			t.Paths = append(t.Paths, path)
		}
	}
	return t
}

// drifted deploys, has somebody change the image, and waits until that is told.
func (w *world) drifted(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.Deploy(ci, name)
		w.Until(name, "it is in sync", guarded.Reads("InSync"))
	}
	for _, name := range names {
		w.SetImage(mallory, name, "registry.example/evil:1")
		w.Until(name, "the drift is told", func(b *v1alpha1.Baseline) error {
			if b.Status.State != v1alpha1.StateDrifted || b.Status.Severity == nil {
				return fmt.Errorf("it is %s", b.Status.State)
			}
			return nil
		})
	}
}

// ended waits until a plan has ended.
func (w *world) ended(plan *v1alpha1.RemediationPlan) *v1alpha1.RemediationPlan {
	w.t.Helper()
	return w.untilPlan(plan, "the plan has ended", func(p *v1alpha1.RemediationPlan) bool { return protocol.Final(p.Status.Phase) })
}

func (w *world) untilPlan(plan *v1alpha1.RemediationPlan, what string, check func(*v1alpha1.RemediationPlan) bool) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := &v1alpha1.RemediationPlan{}
	w.Eventually(what, func() error {
		if err := admin.Get(w.t.Context(), client.ObjectKeyFromObject(plan), p); err != nil {
			return err
		}
		if !check(p) {
			return fmt.Errorf("it is %s", describe(p))
		}
		return nil
	})
	return p
}

// describe is a plan in one line: "Running (waits for …): Verified, Intent, Planned".
func describe(p *v1alpha1.RemediationPlan) string {
	var steps []string
	for i := range p.Status.Steps {
		s := &p.Status.Steps[i]
		text := string(s.State)
		if s.Reason != "" {
			text += " " + string(s.Reason)
		}
		if s.Message != "" {
			text += " (" + s.Message + ")"
		}
		steps = append(steps, text)
	}
	phase := string(p.Status.Phase)
	if p.Status.DeferralReason != "" {
		phase += " (" + p.Status.DeferralReason + ")"
	}
	return phase + ": " + strings.Join(steps, ", ")
}
