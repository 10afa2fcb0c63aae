// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// ConditionTargetsSelected is False on a policy that selects no guarded object of its
// Environment. Its reason is AllObjects where a policy selects by kind or label, and selects
// all.
const ConditionTargetsSelected = "TargetsSelected"

// writeStatus tells what the policy does, unless that is told already. What only moves counts
// is told after a while, with the counts of then.
func (r *Reconciler) writeStatus(ctx context.Context, s *subject) error {
	next := s.policy.DeepCopy()
	s.fill(&next.Status)
	next.Status.Told, s.nextKept = r.told.kept(s.policy, s.now)
	conditions := condition.Set{Conditions: &next.Status.Conditions, Generation: next.Generation, Now: s.now}
	s.setReady(conditions)
	s.setScope(conditions)
	if err := r.setDegraded(ctx, s, conditions); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(next.Status, s.policy.Status) {
		r.lags.Forget(s.policy.Name)
		return nil
	}
	if sameButCounts(&s.policy.Spec.Safety, &next.Status, &s.policy.Status) {
		if s.lag = r.lags.Left(s.policy.Name, s.now); s.lag > 0 {
			return nil
		}
	}
	// Only a PUT of /status checks the uid beside the resourceVersion.
	if err := r.Client.Status().Update(ctx, next, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("writing the status of policy %s: %w", s.policy.Name, err)
	}
	s.lag = 0
	r.lags.Forget(s.policy.Name)
	return nil
}

func (s *subject) fill(status *v1alpha1.RemediationPolicyStatus) {
	in := &s.gathered.Input
	status.ObservedGeneration = s.policy.Generation
	status.Digest = in.Policy.Digest
	status.Targets = v1alpha1.PolicyTargets{
		Selected: int32(in.Scope.Selected), Drifted: int32(len(in.Drifts)), Eligible: int32(s.out.Eligible), //nolint:gosec // counts of objects
		Healthy: int32(in.Scope.Healthy), Unhealthy: int32(in.Scope.Unhealthy), //nolint:gosec // counts of objects
	}
	status.LastPlanName = s.gathered.LastPlan
	status.WaitingFor = s.waitingFor()
	status.NextEvaluationTime = nil
	if next := s.nextLook(); !next.IsZero() {
		// As it is stored, rounded up: it is no use to come too early.
		status.NextEvaluationTime = &metav1.Time{Time: next.Add(time.Second - 1).Truncate(time.Second)}
	}
}

func (s *subject) setReady(c condition.Set) {
	if len(s.gathered.Problems) > 0 {
		c.Stalled(problemReason(s.gathered.Problems[0]), s.gathered.Problems.ToAggregate().Error())
		return
	}
	in := &s.gathered.Input
	counts := fmt.Sprintf("%d of %s drifted, %d of them eligible", len(in.Drifts), plural.Of(in.Scope.Selected, "selected object"), s.out.Eligible)
	switch s.policy.Spec.Mode {
	case v1alpha1.PolicyModeActive:
		c.Ready("Active", counts)
	case v1alpha1.PolicyModeHalted:
		c.NotReady("Halted", "everything stops: "+counts)
	case v1alpha1.PolicyModeObserveOnly:
		c.Ready("ObserveOnly", fmt.Sprintf("%s; it would make %s now, and makes no plans", counts, plural.Of(len(s.out.Plans), "plan")))
	default:
		c.Stalled("UnknownMode", fmt.Sprintf("spec.mode: this version does not know %q", s.policy.Spec.Mode))
	}
}

// problemReason names by its field what is wrong.
func problemReason(err *field.Error) string {
	switch {
	case err.Type == field.ErrorTypeNotFound:
		return "UnknownEnvironment"
	case err.Field == "spec.selector":
		return "InvalidSelector"
	}
	return "InvalidSchedule"
}

// setScope tells of a choice that reads like a mistake, with the count.
func (s *subject) setScope(c condition.Set) {
	if len(s.gathered.Problems) > 0 {
		c.Put(ConditionTargetsSelected, metav1.ConditionUnknown, "InvalidSpec", "no object is selected before the problems of the spec are solved")
		return
	}
	in := &s.gathered.Input
	narrows := s.policy.Spec.Selector != nil || len(s.policy.Spec.Resources) > 0
	objects := fmt.Sprintf("%s of environment %s", plural.Of(s.gathered.InEnvironment, "guarded object"), in.Policy.Spec.EnvironmentName)
	switch selected := in.Scope.Selected; {
	case selected == 0:
		c.False(ConditionTargetsSelected, "NoObjects", "it selects 0 of the "+objects)
	case narrows && selected == s.gathered.InEnvironment:
		c.True(ConditionTargetsSelected, "AllObjects", "it selects by kind or label, and selects all "+objects)
	case narrows:
		c.True(ConditionTargetsSelected, "SomeObjects", fmt.Sprintf("it selects %d of %s", selected, objects))
	default:
		c.True(ConditionTargetsSelected, "WholeEnvironment", "it selects all "+objects)
	}
}

// count says how many drifts are left out for a reason, and what is said of the first.
func (s *subject) count(reason planner.Reason) (n int, example string) {
	for i := range s.out.LeftOut {
		if s.out.LeftOut[i].Reason != reason {
			continue
		}
		if n == 0 {
			example = s.out.LeftOut[i].Message
		}
		n++
	}
	return n, example
}

// setDegraded tells what holds the policy back: its circuit breaker, and mass drift.
func (r *Reconciler) setDegraded(ctx context.Context, s *subject, c condition.Set) error {
	known, err := r.readBreaker(ctx, s)
	if err != nil {
		return err
	}
	if frozen, example := s.count(planner.ReasonMassDrift); frozen > 0 {
		known = append(known, condition.Degradation{
			Reason:  v1alpha1.ReasonMassDrift,
			Message: fmt.Sprintf("%s %s left alone: %s", plural.Of(frozen, "drifted object"), plural.Verb(frozen, "is", "are"), example),
		})
	}
	if len(known) == 0 && len(s.gathered.Problems) > 0 {
		c.Put(v1alpha1.ConditionDegraded, metav1.ConditionUnknown, "InvalidSpec", "no object is selected before the problems of the spec are solved")
		return nil
	}
	c.Degraded("the circuit breaker is closed, and no guard reports mass drift", known...)
	return nil
}

// readBreaker reads the circuit breaker, which is in the Environment's ledger.
func (r *Reconciler) readBreaker(ctx context.Context, s *subject) ([]condition.Degradation, error) {
	l := &v1alpha1.RemediationLedger{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: s.policy.Spec.EnvironmentName}, l)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the ledger of environment %s: %w", s.policy.Spec.EnvironmentName, err)
	}
	switch state := ledger.Breaker(&l.Status, string(s.policy.UID)); state {
	case v1alpha1.BreakerOpen:
		return []condition.Degradation{{Reason: v1alpha1.ReasonBreakerOpen, Message: "too many remediations failed one after the other; one is tried when it has been open long enough"}}, nil
	case v1alpha1.BreakerHalfOpen:
		return []condition.Degradation{{Reason: v1alpha1.ReasonBreakerHalfOpen, Message: "one remediation is tried; if it succeeds, and helps where effects are assessed, the breaker closes"}}, nil
	case v1alpha1.BreakerClosed:
	}
	return nil, nil
}
