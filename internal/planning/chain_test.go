// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// undone are plans that put the drift of web back, one each ten minutes, and that a bot undid.
func undone(c *cluster, n int) []*v1alpha1.RemediationPlan {
	var plans []*v1alpha1.RemediationPlan
	for i := range n {
		p := c.Ended(fmt.Sprint("auto-", i), v1alpha1.PlanSucceeded, v1alpha1.StepVerified, "")
		at := metav1.NewTime(epoch.Add(-time.Duration(n-i) * 10 * time.Minute))
		p.Spec.Plan.Targets[0].FirstSeenTime = metav1.NewTime(at.Add(-time.Second)) // each is a drift of its own
		p.Spec.Plan.Targets[0].Action = v1alpha1.ActionReconcile
		p.Status.CompletionTime = &at
		p.Status.Steps[0].Result = &v1alpha1.StepResult{Hash: c.Baselines["web"].Spec.Authorized.Hash, RecordTime: at}
		p.Status.Steps[0].Effect = &v1alpha1.StepEffect{Verdict: v1alpha1.VerdictInvalidated, AssessmentName: p.Name + "-0"}
		plans = append(plans, p)
	}
	return plans
}

func TestRepairsThatDoNotHelpHoldADrift(t *testing.T) {
	forgive := func(c *cluster, at time.Time) {
		c.Policy.Annotations = map[string]string{v1alpha1.AnnotationChainsForgiven: at.Format(time.RFC3339)}
	}
	tests := map[string]struct {
		cluster func(*cluster)
		want    effect.ChainRule
	}{
		"two repairs that were undone are no chain": {func(c *cluster) { undone(c, 2) }, ""},
		"three are":                                        {func(c *cluster) { undone(c, 3) }, effect.ChainRegressions},
		"also of two policies":                             {func(c *cluster) { undone(c, 3)[1].Spec.Plan.Policy.UID = "another" }, effect.ChainRegressions},
		"not of two actions":                               {func(c *cluster) { undone(c, 3)[1].Spec.Plan.Targets[0].Action = v1alpha1.ActionScale }, ""},
		"not of two objects of one name":                   {func(c *cluster) { undone(c, 3)[1].Spec.Plan.Targets[0].UID = "another" }, ""},
		"a step that was skipped is no repair":             {func(c *cluster) { undone(c, 3)[1].Status.Steps[0].Result = nil }, ""},
		"a step of which the write is not known breaks it": {func(c *cluster) { unknown(undone(c, 3)[2]) }, ""},
		"five of which one is not known are too many":      {func(c *cluster) { unknown(undone(c, 5)[4]) }, effect.ChainTooMany},
		"a policy that was changed has been looked at": {func(c *cluster) {
			undone(c, 3)
			c.Policy.Spec.Strategy = v1alpha1.StrategyStaged
		}, ""},
		"a person has looked":                      {func(c *cluster) { undone(c, 3); forgive(c, epoch.Add(-time.Minute)) }, ""},
		"a person has looked at the first of them": {func(c *cluster) { undone(c, 4); forgive(c, epoch.Add(-35*time.Minute)) }, effect.ChainRegressions},
		"no person looks at what is to come":       {func(c *cluster) { undone(c, 3); forgive(c, epoch.Add(time.Hour)) }, effect.ChainRegressions},
		"a time that is none forgives nothing": {func(c *cluster) {
			undone(c, 3)
			c.Policy.Annotations = map[string]string{v1alpha1.AnnotationChainsForgiven: "yesterday"}
		}, effect.ChainRegressions},
		"where no effect is assessed nothing is held": {func(c *cluster) {
			for _, p := range undone(c, 5) {
				p.Status.Steps[0].Effect = nil
			}
		}, ""},
		"a status with a step too many is read": {func(c *cluster) { undone(c, 3)[0].Status.Steps[0].Index = 7 }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			tc.cluster(c)
			in := &c.gather().Input
			d := &in.Drifts[0]
			if d.Chain.Rule != tc.want {
				t.Fatalf("the chain is %q of %+v, want %q", d.Chain.Rule, d.Chain.Repairs, tc.want)
			}
			o := planner.ObstacleTo(in, d)
			if (o.Reason == planner.ReasonChain) != (tc.want != "") {
				t.Errorf("the obstacle is %q: %s", o.Reason, o.Message)
			}
			if tc.want != "" && (!strings.Contains(o.Message, "assess forgive auto") || o.Until.IsZero()) {
				t.Errorf("people read %q, until %s", o.Message, o.Until)
			}
		})
	}
}

// unknown makes a plan one whose write may have been stored.
func unknown(p *v1alpha1.RemediationPlan) {
	step := &p.Status.Steps[0]
	step.Intent = &v1alpha1.StepIntentRecord{StorageTime: step.Result.RecordTime}
	step.State, step.Result = v1alpha1.StepFailed, nil
}

// assessing is a Source of an installation that assesses effects.
type assessing struct{ *Live }

func (s assessing) World(ctx context.Context, now time.Time) (*World, error) {
	w, err := s.Live.World(ctx, now)
	if err == nil {
		w.BeginsAssessments = true
	}
	return w, err
}

// An executor that is away copies no verdict. The assessment has it, and an assessment that is gone leaves the
// history unknown.
func TestVerdictsThatNoExecutorHasCopied(t *testing.T) {
	assessed := func(phase v1alpha1.AssessmentPhase, verdict v1alpha1.EffectVerdict) func(*cluster, *v1alpha1.RemediationPlan) {
		return func(c *cluster, p *v1alpha1.RemediationPlan) {
			a := assessmentOf(c, "web", time.Hour, phase)
			a.Name, a.Spec.Subject.Plan, a.Status.Verdict = p.Name+"-0", &v1alpha1.AssessedStep{Name: p.Name, UID: string(p.UID)}, verdict
			c.Further = append(c.Further, &a)
		}
	}
	tests := map[string]struct {
		each  func(*cluster, *v1alpha1.RemediationPlan)
		never bool
		want  effect.ChainRule
	}{
		"the assessments are gone":      {func(*cluster, *v1alpha1.RemediationPlan) {}, false, effect.ChainUnknown},
		"they have the verdict":         {assessed(v1alpha1.AssessmentCompleted, v1alpha1.VerdictInvalidated), false, effect.ChainRegressions},
		"they could not be carried out": {assessed(v1alpha1.AssessmentFailed, ""), false, effect.ChainRegressions},
		"they go on":                    {assessed(v1alpha1.AssessmentStabilizing, ""), false, ""},
		"they are about to begin": {func(_ *cluster, p *v1alpha1.RemediationPlan) {
			p.Status.Steps[0].CompletionTime = &metav1.Time{Time: epoch}
		}, false, ""},
		"they are of a plan that had this name": {func(c *cluster, p *v1alpha1.RemediationPlan) {
			assessed(v1alpha1.AssessmentCompleted, v1alpha1.VerdictEffective)(c, p)
			p.UID = "another"
		}, false, effect.ChainUnknown},
		"the installation has never assessed effects": {func(*cluster, *v1alpha1.RemediationPlan) {}, true, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			for _, p := range undone(c, 3) {
				step := &p.Status.Steps[0]
				step.Effect, step.CompletionTime = nil, &step.Result.RecordTime
				tc.each(c, p)
			}
			source := Source(assessing{c.live()})
			if tc.never {
				source = c.live()
			}
			g, err := Gather(t.Context(), source, c.question())
			if err != nil {
				t.Fatal(err)
			}
			d := &g.Input.Drifts[0]
			if d.Chain.Rule != tc.want {
				t.Fatalf("the chain is %q of %+v, want %q", d.Chain.Rule, d.Chain.Repairs, tc.want)
			}
			if o := planner.ObstacleTo(&g.Input, d); tc.want == effect.ChainUnknown && (o.Reason != planner.ReasonChain || !strings.Contains(o.Message, "no verdict")) {
				t.Errorf("the obstacle is %q: %s", o.Reason, o.Message)
			}
		})
	}
}

// Nothing is planned by half of the history.
func TestAssessmentsThatCannotBeReadHoldEachDrift(t *testing.T) {
	c, away := newCluster(t), errors.New("the API server is away")
	live := c.live()
	live.Reader = interceptor.NewClient(c.Reader().(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake client
		List: func(ctx context.Context, next client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*v1alpha1.EffectivenessAssessmentList); is {
				return away
			}
			return next.List(ctx, list, options...)
		},
	})
	if _, err := Gather(t.Context(), live, c.question()); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}
