// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	rules "github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

const assessmentsPath = "/apis/plumbline.dev/v1alpha1/namespaces/" + namespace + "/effectivenessassessments"

// verdictAims are worlds in which effects are assessed, and breakers wait for verdicts.
func verdictAims() []Aim {
	return []Aim{{"verdicts", []string{"probe", "breaker that waits for a verdict", "verdict that turns a breaker", "verdict in a plan"}, withVerdicts}}
}

// withVerdicts has a breaker that is open, and an assessor that says of each step whether it helped.
func withVerdicts(c *scenario, _ *rand.Rand) {
	c.verdicts, c.breaks = true, true
	c.limits.CircuitBreaker = v1alpha1.CircuitBreakerSettings{FailureThreshold: 1, OpenDuration: &metav1.Duration{Duration: time.Minute}}
	c.second, c.batches, c.limits.MaxConcurrent = "other", [][]int32{{0}}, 1
}

// opens stores a ledger whose breaker is open.
func (w *World) opens() {
	opened := metav1.NewTime(w.epoch.Add(-2 * time.Minute))
	w.storeOwn("remediationledgers", namespaceOfPlumbline, &v1alpha1.RemediationLedger{
		TypeMeta: typeMeta("RemediationLedger"), ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfPlumbline, Name: environment},
		Spec: v1alpha1.RemediationLedgerSpec{Scope: "Environment"},
		Status: v1alpha1.RemediationLedgerStatus{
			Sequence: 1, Breakers: []v1alpha1.LedgerBreaker{{PolicyUID: string(w.policyUID), State: v1alpha1.BreakerOpen, Failures: 1, LastOpenTime: &opened}},
		},
	})
}

// windows of a policy whose effects are assessed: the worlds are short.
func (w *World) assessesSoon() {
	w.policy.Spec.Effectiveness = v1alpha1.RemediationEffectiveness{Stabilization: &metav1.Duration{Duration: 10 * time.Second}, Validity: &metav1.Duration{Duration: time.Minute}}
}

// judgeEffects is the body of an assessor that says of each step that has ended whether it helped. The
// verdict is any, comes late, and one in five never comes.
func (w *World) judgeEffects(l *schedule.Life) {
	p := w.person(l, Assessor)
	changed := w.watch(func(c apiserver.Commit) bool { return c.Resource.Resource == "remediationplans" })
	for {
		patience := time.Hour
		for _, name := range w.plans.names() {
			o := w.Server.Look(group, "remediationplans", namespace, name)
			if o == nil {
				continue
			}
			plan := typedOf[v1alpha1.RemediationPlan](w, o)
			for i := range plan.Status.Steps {
				if plan.Status.Steps[i].Settled == v1alpha1.Enabled && !p.judgesStep(plan, int32(i)) { //nolint:gosec // few
					patience = 5 * time.Second
				}
			}
		}
		l.Await(changed, patience)
	}
}

// judgesStep stores the verdict on a step, and says whether nothing is left to do for it.
func (p *person) judgesStep(plan *v1alpha1.RemediationPlan, step int32) bool {
	name := rules.NameOf(plan.Name, step)
	verdict, known := p.w.verdictOn(plan, step)
	if !known {
		verdict = pick(p.Rand(), v1alpha1.VerdictEffective, v1alpha1.VerdictEffective, v1alpha1.VerdictIneffective, v1alpha1.VerdictInvalidated, v1alpha1.VerdictInconclusive, "")
		p.w.decided.Store(stepKey{plan.UID, step}, verdict)
		p.Sleep(time.Duration(p.Rand().Int64N(int64(2 * time.Minute))))
	}
	stored := p.w.Server.Look(group, "effectivenessassessments", namespace, name)
	if stored == nil {
		p.ask(http.MethodPost, assessmentsPath, plain, object(&v1alpha1.EffectivenessAssessment{
			TypeMeta: typeMeta("EffectivenessAssessment"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.EffectivenessAssessmentSpec{Subject: v1alpha1.AssessmentSubject{Plan: &v1alpha1.AssessedStep{Name: plan.Name, UID: string(plan.UID), Step: step}}},
		}))
		stored = p.w.Server.Look(group, "effectivenessassessments", namespace, name)
	}
	if stored == nil {
		return p.w.cannotAssess(name)
	}
	a := typedOf[v1alpha1.EffectivenessAssessment](p.w, stored).DeepCopy()
	if a.Spec.Subject.Plan.UID != string(plan.UID) { // the plan before had the name
		p.ask(http.MethodDelete, assessmentsPath+"/"+name, plain, nil)
		return false
	}
	if verdict == "" || a.Status.Verdict != "" {
		return true
	}
	a.Status.Phase, a.Status.Verdict = v1alpha1.AssessmentCompleted, verdict
	return p.ask(http.MethodPut, assessmentsPath+"/"+name+"/status", plain, object(a)) != nil
}

// stepKey names a step of a plan.
type stepKey struct {
	plan types.UID
	step int32
}

// verdictOn is the verdict that the assessor of effects has decided on, empty for one that never comes.
func (w *World) verdictOn(plan *v1alpha1.RemediationPlan, step int32) (verdict v1alpha1.EffectVerdict, known bool) {
	decided, known := w.decided.Load(stepKey{plan.UID, step})
	verdict, _ = decided.(v1alpha1.EffectVerdict)
	return verdict, known
}

// cannotAssess says that the API server takes no assessment of a name: the namespace is being deleted.
func (w *World) cannotAssess(name string) bool {
	return w.terminating() && w.Server.Look(group, "effectivenessassessments", namespace, name) == nil
}

// copied says that each plan has the verdicts on its steps.
func (w *World) copied() bool {
	for _, name := range w.plans.names() {
		o := w.Server.Look(group, "remediationplans", namespace, name)
		if o == nil {
			continue
		}
		plan := typedOf[v1alpha1.RemediationPlan](w, o)
		if !protocol.Final(plan.Status.Phase) {
			return false
		}
		for i := range plan.Status.Steps {
			step := int32(i) //nolint:gosec // few
			verdict, known := w.verdictOn(plan, step)
			isCopied := known && (verdict == "" || plan.Status.Steps[i].Effect != nil)
			if !isCopied && !w.cannotAssess(rules.NameOf(plan.Name, step)) {
				return false
			}
		}
	}
	return true
}

// verdictMutants take every verdict for an Effective one.
func verdictMutants() []Mutant {
	return []Mutant{{
		Name: "every assessment is taken for an effective one", Breaks: "I35", in: func(c *scenario) { withVerdicts(c, nil) },
		take: func(p *process, _ clock.PassiveClock) { p.executor.Assessments = hopeful{p.executor.Assessments} },
	}}
}

// hopeful reads of each assessment that has ended that the write helped.
type hopeful struct{ client.Reader }

// Get implements client.Reader.
func (h hopeful) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := h.Reader.Get(ctx, key, o, options...)
	if a, ok := o.(*v1alpha1.EffectivenessAssessment); ok && a.Status.Verdict != "" {
		a.Status.Verdict = v1alpha1.VerdictEffective
	}
	return err //nolint:wrapcheck // it stands for the reader
}
