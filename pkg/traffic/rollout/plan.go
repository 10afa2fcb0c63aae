// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// PlanOf reads what a release asks for. named is the strategy that the release names; nil if the
// strategy is not there. The error names the field that cannot be carried out, and the remedy.
func PlanOf(r *v1alpha1.ABRelease, named *v1alpha1.RolloutStrategySpec, has Installation) (*Plan, error) {
	in := r.Spec.Rollout
	spec := in.Strategy
	if in.StrategyName != "" {
		if spec = named; spec == nil {
			return nil, fmt.Errorf("spec.rollout.strategyName: RolloutStrategy %s is not there: create it, or name another", in.StrategyName)
		}
	}
	if spec == nil {
		return nil, errors.New("spec.rollout: name a RolloutStrategy, or give a strategy")
	}
	strategy := strategyOf(spec)
	if err := strategy.Validate(); err != nil {
		return nil, fmt.Errorf("the strategy of spec.rollout: %w", err)
	}
	if cloned := CloneOf(r); cloned != nil && in.Promotion != v1alpha1.PromotionUpdateBaseline && in.Promotion != v1alpha1.PromotionAwaitBaseline {
		return nil, fmt.Errorf("spec.rollout.promotion: variation %s is a clone: set UpdateBaseline or AwaitBaseline", cloned.Name)
	}
	if err := has.permit(r, len(strategy.Queries) > 0); err != nil {
		return nil, err
	}
	plan := &Plan{
		StrategyName: in.StrategyName, Strategy: strategy, Start: StartMode(in.Start), OnUndecided: UndecidedPolicy(in.OnUndecided), Promotion: Promotion(cmp.Or(in.Promotion, v1alpha1.PromotionKeepVariation)),
		Fallback: Fallback(cmp.Or(in.Fallback, v1alpha1.FallbackWait)), Supersede: Supersede(cmp.Or(in.Supersede, v1alpha1.SupersedeRestart)),
		HeadroomPercent: has.headroomPercent(), Deadlines: deadlinesOf(r), CohortCheck: cohortCheckOf(r),
		Control: controlOf(r), Warmup: WarmupOf(r),
	}
	if err := plan.settleGroups(r); err != nil {
		return nil, err
	}
	if err := plan.demandComparison(); err != nil {
		return nil, err
	}
	return plan, nil
}

// controlOf a release.
func controlOf(r *v1alpha1.ABRelease) ControlMode {
	if r.Spec.HasFreshControl() {
		return ControlFresh
	}
	return ControlStable
}

// hasCompared tells whether a stage can be compared with a fresh control.
func (s Strategy) hasCompared() bool {
	return slices.ContainsFunc(s.Stages, func(s Stage) bool { return s.Weight > 0 && s.Weight <= release.MaxControl })
}

// demandComparison refuses a fresh control that no stage would be compared with.
func (p *Plan) demandComparison() error {
	if p.Control != ControlFresh || p.Strategy.hasCompared() {
		return nil
	}
	return fmt.Errorf("spec.rollout.analysis.control: a fresh control gets as many requests as the canary, up to %s%%, and no stage of the strategy is between 0%% and that. Add one, or set Stable", percent(release.MaxControl))
}

// settleGroups takes away what needs requests or an autoscaler: the API server refuses both beside groups, unless
// the release is older than that.
func (p *Plan) settleGroups(r *v1alpha1.ABRelease) error {
	if !r.Spec.HasGroups() {
		return nil
	}
	if p.Fallback, p.Control = FallbackWait, ControlStable; !r.Spec.HasRequests() {
		p.CohortCheck = 0
	}
	for i := range r.Spec.Variations {
		if v := &r.Spec.Variations[i]; v.Group == nil {
			return fmt.Errorf("spec.variations: with the model %s %s needs a group: name its Deployment", r.Spec.Rollout.Model, v.Name)
		}
	}
	return nil
}

func (has Installation) headroomPercent() int {
	if has.HeadroomPercent == nil {
		return DefaultHeadroomPercent
	}
	return *has.HeadroomPercent
}

// CloneOf returns the variation of a release that is a clone; nil if none is.
func CloneOf(r *v1alpha1.ABRelease) *v1alpha1.Variation {
	for i := range r.Spec.Variations {
		if r.Spec.Variations[i].Clone != nil {
			return &r.Spec.Variations[i]
		}
	}
	return nil
}

func strategyOf(in *v1alpha1.RolloutStrategySpec) Strategy {
	s := Strategy{AutoAdvance: in.AutoAdvance != v1alpha1.Disabled, RollbackOnFailure: in.RollbackOnFailure != v1alpha1.Disabled, Interval: durationOf(in.HealthCheckInterval, 30*time.Second)}
	s.Queries = readQueries(in.Queries)
	for i := range in.Stages {
		stage := &in.Stages[i]
		threshold := cmp.Or(stage.HealthThreshold, new(v1alpha1.Percent(95)))
		s.Stages = append(s.Stages, Stage{
			Weight: weightOf(stage.TrafficPercentage), Duration: durationOf(stage.Duration, 0),
			HealthThreshold: int(weightOf(threshold)), RequireApproval: stage.RequireApproval == v1alpha1.Enabled,
		})
	}
	return s
}

func deadlinesOf(r *v1alpha1.ABRelease) Deadlines {
	d := defaultDeadlines
	if in := r.Spec.Rollout.Deadlines; in != nil {
		d.Deployment, d.Approval, d.Extension = durationOf(in.Deployment, d.Deployment), durationOf(in.Approval, d.Approval), durationOf(in.Extension, d.Extension)
	}
	d.Acknowledgment = release.PolicyOf(r.Spec.Acknowledgment).Deadline
	return d
}

func durationOf(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}
