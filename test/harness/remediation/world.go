// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// The users of the tests, beside [guarded.CI].
const (
	Mallory  = "mallory"
	Platform = "platform"
)

// EvilImage is what Mallory has Deployments run.
const EvilImage = "registry.example/evil:1"

// World is a guarded namespace in an Environment of its own, which has its name,
// where the executor may write. What cannot be done ends the test.
type World struct {
	*guarded.Namespace
	cluster *guarded.Cluster
	audit   *AuditLog
	t       testing.TB
}

// NewWorld makes one; its Environment and policy go away with the test.
func NewWorld(tb testing.TB, cluster *guarded.Cluster, audit *AuditLog) *World {
	tb.Helper()
	n := cluster.NewNamespace(tb)
	w := &World{n, cluster, audit, tb}
	w.Must(cluster.Admin.Create(tb.Context(), &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name},
		Spec: v1alpha1.EnvironmentSpec{
			Criticality:       v1alpha1.CriticalityProduction,
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": n.Name}},
		},
	}))
	tb.Cleanup(func() { w.removed(&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}) })
	w.Must(cluster.Admin.Create(tb.Context(), w.Binding()))
	return w
}

// Within is the world in a test within the test.
func (w *World) Within(tb testing.TB) *World { return &World{w.In(tb), w.cluster, w.audit, tb} }

func (w *World) removed(o client.Object) {
	if err := w.cluster.Admin.Delete(context.WithoutCancel(w.t.Context()), o); client.IgnoreNotFound(err) != nil {
		w.t.Errorf("removing %s: %v", o.GetName(), err)
	}
}

// Forget removes the ledgers, and the Environment that remembers its own, as if
// nothing had ever been remediated.
func (w *World) Forget() {
	w.t.Helper()
	w.removed(&v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: w.Name}})
	w.Must(w.cluster.Admin.DeleteAllOf(context.WithoutCancel(w.t.Context()), &v1alpha1.RemediationLedger{}, client.InNamespace(rendered.Namespace)))
}

// Binding is how the owner of the namespace lets the executor write in it.
func (w *World) Binding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "plumbline-executor-targets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plumbline-executor-targets"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "plumbline-executor", Namespace: rendered.Namespace}},
	}
}

// byHand selects nothing, so that the assessor makes no plans beside those of the
// test.
func byHand() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"planned-by": "hand"}}
}

// Policy makes an active policy of the world's Environment, with changes. What it
// puts back counts as healthy once it is ready.
func (w *World) Policy(changes ...func(*v1alpha1.RemediationPolicySpec)) *v1alpha1.RemediationPolicy {
	w.t.Helper()
	return w.PolicyBy(Platform, w.Name, changes...)
}

// PolicyBy is Policy by somebody, under a name of its own.
func (w *World) PolicyBy(author, name string, changes ...func(*v1alpha1.RemediationPolicySpec)) *v1alpha1.RemediationPolicy {
	w.t.Helper()
	p := &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RemediationPolicySpec{
			EnvironmentName: w.Name, Selector: byHand(), Mode: v1alpha1.PolicyModeActive, RequestedBy: author, RequestedByGroups: []string{w.cluster.People},
			Trigger: v1alpha1.TriggerImmediate, MinimumSeverity: v1alpha1.SeverityInfo, Action: v1alpha1.ActionReconcile,
			Safety: v1alpha1.RemediationSafety{Cooldown: &metav1.Duration{Duration: 0}},
			Health: v1alpha1.RemediationHealth{Stabilization: &metav1.Duration{Duration: 0}, Timeout: &metav1.Duration{Duration: 20 * time.Second}},
		},
	}
	for _, change := range changes {
		change(&p.Spec)
	}
	w.Made(author, p)
	return p
}

// Made creates a policy as somebody; it goes away with the test.
func (w *World) Made(author string, p *v1alpha1.RemediationPolicy) {
	w.t.Helper()
	w.Must(w.As(author).Create(w.t.Context(), p))
	w.t.Cleanup(func() { w.removed(&v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}) })
}

// UnderGuards waits until the guards of worlds are in force, and the second they
// were made in is over.
func UnderGuards(worlds []*World) {
	for _, w := range worlds {
		w.t.Helper()
		g := guarded.Guard(w.Name)
		w.Active(g)
		w.SecondOver(g.CreationTimestamp.Time)
	}
}

// Drifted deploys, has somebody change the images, and waits until that is told.
func (w *World) Drifted(names ...string) { Drifted([]*World{w}, names...) }

// Drifted prepares the same Deployments in several worlds at once.
func Drifted(worlds []*World, names ...string) {
	each := func(do func(w *World, name string)) {
		for _, w := range worlds {
			w.t.Helper()
			for _, name := range names {
				do(w, name)
			}
		}
	}
	each(func(w *World, name string) { w.Deploy(guarded.CI, name) })
	each(func(w *World, name string) { w.Until(name, "it is in sync", guarded.Reads("InSync")) })
	each(func(w *World, name string) { w.SetImage(Mallory, name, EvilImage) })
	each(func(w *World, name string) {
		w.Until(name, "the drift is told", func(b *v1alpha1.Baseline) error {
			if b.Status.State != v1alpha1.StateDrifted || b.Status.Severity == nil {
				return fmt.Errorf("it is %s", b.Status.State)
			}
			return nil
		})
	})
}

// Plan makes a plan that puts these Deployments back, one after the other, as the
// assessor would.
func (w *World) Plan(policy *v1alpha1.RemediationPolicy, names ...string) *v1alpha1.RemediationPlan {
	w.t.Helper()
	return w.PlanWith(policy, func(*v1alpha1.PlanTarget) {}, names...)
}

// PlanWith is Plan with a change of every target.
func (w *World) PlanWith(policy *v1alpha1.RemediationPolicy, change func(*v1alpha1.PlanTarget), names ...string) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := w.PlanOf(policy, names...)
	for i := range p.Spec.Plan.Targets {
		change(&p.Spec.Plan.Targets[i])
	}
	w.Store(p)
	return p
}

// PlanOf is such a plan before it is stored.
func (w *World) PlanOf(policy *v1alpha1.RemediationPolicy, names ...string) *v1alpha1.RemediationPlan {
	w.t.Helper()
	principal := planner.PrincipalOf(&policy.Spec)
	p := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, GenerateName: "plan-"}}
	p.Spec.Plan = v1alpha1.PlannedRemediation{
		Policy: v1alpha1.PlanPolicy{
			Name: policy.Name, UID: string(policy.UID), Generation: policy.Generation, Digest: planner.Digest(&policy.Spec),
		},
		EnvironmentName: w.Name, Trigger: policy.Spec.Trigger, Strategy: v1alpha1.StrategyRolling,
		InitiatedBy: planner.InitiatedByItself, Requester: principal.User, RequesterGroups: principal.Groups,
		CorrelationID: "correlation", DeadlineTime: metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second)),
	}
	for i, name := range names {
		p.Spec.Plan.Targets = append(p.Spec.Plan.Targets, w.target(name, policy.Spec.Action))
		p.Spec.Plan.Batches = append(p.Spec.Plan.Batches, v1alpha1.PlanBatch{
			Order: int32(i), Steps: []int32{int32(i)}, RequiresHealthCheck: v1alpha1.Enabled, //nolint:gosec // few
		})
	}
	return p
}

// Store creates a plan as the assessor.
func (w *World) Store(p *v1alpha1.RemediationPlan) {
	w.t.Helper()
	assessor, err := apiserver.As(w.cluster.Config, AssessorUser)
	w.Must(err)
	w.Must(assessor.Create(w.t.Context(), p))
}

func (w *World) target(name string, action v1alpha1.RemediationAction) v1alpha1.PlanTarget {
	w.t.Helper()
	b, err := w.Baseline(name)
	w.Must(err)
	t := v1alpha1.PlanTarget{
		BaselineTarget: b.Spec.Target, BaselineName: b.Name, UID: b.Status.Observed.UID,
		DriftedHash: b.Status.Observed.Hash, DesiredHash: b.Spec.Authorized.Hash,
		Revision: b.Spec.Authorized.Revision, RevisionHash: b.Spec.Authorized.Hash,
		Action: action, Severity: *b.Status.Severity, DriftType: v1alpha1.DriftOther, FirstSeenTime: *b.Status.FirstSeenTime,
	}
	for i := range b.Status.Findings {
		t.DriftType = b.Status.Findings[0].Type
		if path := b.Status.Findings[i].Path; path != "" { // of an object that is gone there is none
			t.Paths = append(t.Paths, path)
		}
	}
	return t
}

// Control has a person ask something of a plan.
func (w *World) Control(plan *v1alpha1.RemediationPlan, verb v1alpha1.PlanVerb) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"control":{"verb":%q,"requestedBy":%q}}}`, verb, Platform)
	if verb == "" {
		patch = fmt.Appendf(nil, `{"spec":{"control":{"verb":null,"requestedBy":%q}}}`, Platform)
	}
	w.Must(w.As(Platform).Patch(w.t.Context(), plan.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)))
}

// Ended waits until a plan has ended.
func (w *World) Ended(plan *v1alpha1.RemediationPlan) *v1alpha1.RemediationPlan {
	w.t.Helper()
	return w.UntilPlan(plan, "the plan has ended", func(p *v1alpha1.RemediationPlan) bool { return protocol.Final(p.Status.Phase) })
}

// UntilPlan waits until a plan is as the check wants it.
func (w *World) UntilPlan(plan *v1alpha1.RemediationPlan, what string, check func(*v1alpha1.RemediationPlan) bool) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := &v1alpha1.RemediationPlan{}
	w.Eventually(what, func() error {
		if err := w.cluster.Admin.Get(w.t.Context(), client.ObjectKeyFromObject(plan), p); err != nil {
			return err
		}
		if !check(p) {
			return fmt.Errorf("it is %s", Describe(p))
		}
		return nil
	})
	return p
}

// Describe is a plan in one line: "Running (waits for …): Verified, Intent, Planned".
func Describe(p *v1alpha1.RemediationPlan) string {
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
	if p.Status.EndedReason != "" {
		phase += " (" + p.Status.EndedReason + ")"
	}
	return phase + ": " + strings.Join(steps, ", ")
}
