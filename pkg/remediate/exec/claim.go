// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// conflictTries is how often a write that others keep overtaking is tried within
// one call; after that it is told as unknown and tried later.
const conflictTries = 8

// claim takes the target for the plan. A claim of a plan that has ended, or is
// gone, holds nothing: an executor that slept may have left it.
func (r *run) claim(ctx context.Context, step int32) (protocol.Answer, string) {
	for range conflictTries {
		baseline, err := r.readBaseline(ctx, step)
		if apierrors.IsNotFound(err) {
			return protocol.Yes, "" // nothing to claim; the target is told to be unwanted when it is read
		}
		if err != nil {
			return protocol.Unknown, ""
		}
		claim := baseline.Status.PlanName
		if claim == r.plan.Name {
			return protocol.Yes, ""
		}
		holds, err := r.holds(ctx, claim)
		if err != nil {
			return protocol.Unknown, ""
		}
		if holds {
			return protocol.No, claim
		}
		err = r.writeClaim(ctx, baseline, r.plan.Name)
		if err == nil {
			return protocol.Yes, ""
		}
		if !apierrors.IsConflict(err) {
			return protocol.Unknown, ""
		}
	}
	return protocol.Unknown, ""
}

// holds says whether a plan holds what it claims.
func (r *run) holds(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	plan := &v1alpha1.RemediationPlan{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: r.plan.Namespace, Name: name}, plan)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading plan %s: %w", name, err)
	}
	return !protocol.Final(plan.Status.Phase), nil
}

// unclaim lets go of the target.
func (r *run) unclaim(ctx context.Context, step int32) protocol.Answer {
	for range conflictTries {
		baseline, err := r.readBaseline(ctx, step)
		if apierrors.IsNotFound(err) {
			return protocol.Yes
		}
		if err != nil {
			return protocol.Unknown
		}
		if baseline.Status.PlanName != r.plan.Name {
			return protocol.Yes
		}
		if r.superseded(ctx, step) {
			return protocol.Unknown
		}
		err = r.writeClaim(ctx, baseline, "")
		if err == nil || apierrors.IsNotFound(err) {
			return protocol.Yes
		}
		if !apierrors.IsConflict(err) {
			return protocol.Unknown
		}
	}
	return protocol.Unknown
}

// superseded says that another executor may have taken the plan over, and the target of a
// deferred step again. It reads the plan after the claim and before the write: another
// executor lets go of that claim before it takes the target, and so the write conflicts.
func (r *run) superseded(ctx context.Context, step int32) bool {
	if r.plan.Status.Steps[step].State != v1alpha1.StepPlanned {
		return false // no executor takes the target of a step that has ended
	}
	var now v1alpha1.RemediationPlan
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(r.plan), &now)
	return err != nil || now.Status.Epoch != r.plan.Status.Epoch
}

func (r *run) readBaseline(ctx context.Context, step int32) (*v1alpha1.Baseline, error) {
	baseline := &v1alpha1.Baseline{}
	key := types.NamespacedName{Namespace: r.plan.Namespace, Name: r.target(step).BaselineName}
	if err := r.Client.Get(ctx, key, baseline); err != nil {
		return nil, fmt.Errorf("reading baseline %s: %w", key, err)
	}
	return baseline, nil
}

func (r *run) writeClaim(ctx context.Context, baseline *v1alpha1.Baseline, claim string) error {
	baseline.Status.PlanName = claim
	if err := r.Client.Status().Update(ctx, baseline, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("writing the claim of baseline %s: %w", baseline.Name, err)
	}
	return nil
}
