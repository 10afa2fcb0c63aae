// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// readLeft reads what the run of a release, or the step of a plan, may have left in the observed version; nil
// unless the version may be of either.
func (r *Reconciler) readLeft(ctx context.Context, s *subject, state *specguard.State, look observed) (*specguard.Released, error) {
	left, err := r.readReleased(ctx, s, state, look)
	if left != nil || err != nil {
		return left, err
	}
	return r.readStandby(ctx, s, state, look)
}

// readStandby reads what the step of a plan may have made as its standby; nil unless the observed version
// may be that standby. All of it is read live, since it decides on what is authorized.
func (r *Reconciler) readStandby(ctx context.Context, s *subject, state *specguard.State, look observed) (*specguard.Released, error) {
	id := markOf(s, state, look, r.Config.Executor, v1alpha1.LabelStandby)
	if id == "" {
		return nil, nil
	}
	plan, step, err := r.findStandby(ctx, s, id)
	if err != nil || plan == nil {
		return nil, err
	}
	body, err := r.standbyBody(ctx, s, plan, step, id)
	if err != nil || body == nil {
		return nil, err
	}
	of := &plan.Spec.Plan
	return &specguard.Released{
		Requester: specguard.Identity{User: of.Requester, Groups: of.RequesterGroups}, Standby: plan.Name, Creates: true,
		Bodies: func([]byte) [][]byte { return [][]byte{body} },
	}, nil
}

// findStandby finds the step whose standby has a label and the name of the object; nil if there is none. A
// user who may change labels can put the label of a standby on another object.
func (r *Reconciler) findStandby(ctx context.Context, s *subject, id string) (*v1alpha1.RemediationPlan, *v1alpha1.PlanStep, error) {
	var plans v1alpha1.RemediationPlanList
	if err := r.Live.List(ctx, &plans, inNamespace(s.key.Namespace)); err != nil {
		return nil, nil, fmt.Errorf("listing RemediationPlans of namespace %s: %w", s.key.Namespace, err)
	}
	for i := range plans.Items {
		plan := &plans.Items[i]
		if uid, _, _ := strings.Cut(id, "."); string(plan.UID) != uid {
			continue
		}
		at := slices.IndexFunc(plan.Status.Steps, func(step v1alpha1.PlanStep) bool {
			return step.Standby != nil && step.Standby.Name == s.key.Name && protocol.StandbyID(plan, step.Index, step.Standby.Number) == id
		})
		if at >= 0 && int(plan.Status.Steps[at].Index) < len(plan.Spec.Plan.Targets) {
			return plan, &plan.Status.Steps[at], nil
		}
	}
	return nil, nil, nil
}

// standbyBody computes the standby of a step from the authorized body of its target; nil if that is not kept.
func (r *Reconciler) standbyBody(ctx context.Context, s *subject, plan *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep, id string) ([]byte, error) {
	target := &plan.Spec.Plan.Targets[step.Index]
	b := &v1alpha1.Baseline{}
	switch err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: target.BaselineName}, b); {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading Baseline %s/%s: %w", s.key.Namespace, target.BaselineName, err)
	case err != nil, plan.Spec.Plan.Standby == nil:
		return nil, nil //nolint:nilerr // without a Baseline no state is authorized
	}
	content, err := r.readKept(ctx, b, target.Revision)
	if err != nil || content == nil {
		return nil, err
	}
	own, err := work.ReadBody(content, s.key.Namespace, target.Name)
	if err != nil {
		return nil, nil //nolint:nilerr // a body that cannot be read leaves nothing
	}
	standby, err := clone.StandbyOf(&clone.Standby{
		Name: s.key.Name, ID: id, Replicas: step.Standby.Replicas, PodLabels: plan.Spec.Plan.Standby.PodLabels, Target: own,
	})
	if err != nil {
		return nil, nil //nolint:nilerr // no standby is made of it
	}
	return work.WriteBody(standby) //nolint:wrapcheck // it names the operation
}
