// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// carryVerdict makes the calls that are about the effect of a step.
func (r *run) carryVerdict(ctx context.Context, next protocol.Effect) {
	switch x := next.(type) {
	case protocol.ReadAssessment:
		a := r.readAssessment(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Assessment = &a })
	case protocol.RecordAssessment:
		answer, stored := r.recordAssessment(ctx, x.Step)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.AssessmentRecorded, f.AssessmentEvidence = answer, stored })
	case protocol.ApplyVerdict:
		turned, err := r.applyVerdict(ctx, x.Step, x.Verdict)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Judged, f.Turned = known(err), turned })
	case protocol.AnnounceEffect:
		r.Observer.Assessed(r.plan, x.Step, &x.Effect)
		r.learn(x.Step, func(f *protocol.StepFacts) { f.Told = true })
	}
}

// readAssessment reads what the assessor says about a step. A cache may be behind, and what it has
// of an assessment that has ended stays so.
func (r *run) readAssessment(ctx context.Context, step int32) protocol.Assessment {
	name := effect.NameOf(r.plan.Name, step)
	a := &v1alpha1.EffectivenessAssessment{}
	err := r.Assessments.Get(ctx, types.NamespacedName{Namespace: r.plan.Namespace, Name: name}, a)
	switch subject := a.Spec.Subject.Plan; {
	case apierrors.IsNotFound(err):
		return protocol.Assessment{Read: protocol.Yes}
	case err != nil:
		return protocol.Assessment{Read: protocol.Unknown}
	case subject == nil || subject.UID != string(r.plan.UID) || subject.Step != step: // of a plan that had this name before
		return protocol.Assessment{Read: protocol.Yes}
	case !effect.Phase(a.Status.Phase).Ended():
		return protocol.Assessment{Read: protocol.Yes}
	}
	r.material(step).assessment = a
	return protocol.Assessment{Read: protocol.Yes, Effect: &v1alpha1.StepEffect{
		Verdict: verdictOf(a), Score: a.Status.Score, AssessmentName: name,
	}}
}

// applyVerdict tells the ledger of the Environment, which alone has breakers, and returns what the
// verdict turned the breaker to; empty if it turned none. It makes no ledger: one that is gone has no
// breaker that waits.
func (r *run) applyVerdict(ctx context.Context, step int32, verdict v1alpha1.EffectVerdict) (turned v1alpha1.BreakerState, err error) {
	name := r.plan.Spec.Plan.EnvironmentName
	l, err := r.peek(ctx, r.Client, name)
	if err != nil {
		return "", err
	}
	how := func(s *ledger.Status) *ledger.Status {
		next, _ := ledger.ApplyVerdict(s, r.reference(step), effect.Verdict(verdict), r.Time.Now())
		turned = ledger.TurnedBy(next, r.reference(step))
		return next
	}
	if how(&l.Status) == &l.Status {
		return turned, nil // it was told before, or no breaker waits for it
	}
	if err := r.changePlaces(ctx, name, how); err != nil {
		return "", fmt.Errorf("telling the verdict on step %d: %w", step, err)
	}
	return turned, nil
}

// verdictMargin is how long after its deadline an assessment may take to be stored.
const verdictMargin = 5 * time.Minute

// verdictTimeout is how long after the end of a step its verdict is waited for; 0 where no effect
// is assessed.
func (e *Executor) verdictTimeout(policy *v1alpha1.RemediationPolicySpec) time.Duration {
	if e.Assessments == nil {
		return 0
	}
	written := time.Time{}
	return effect.WindowsOfPolicy(policy).Schedule(written).Deadline.Sub(written) + verdictMargin
}
