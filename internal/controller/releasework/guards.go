// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// fillGuards asks the guards about all that the run writes, so that a run which cannot end does not
// begin: the clone, and the baseline if the run is to update it.
func (r *Reconciler) fillGuards(ctx context.Context, f *work.Facts) error {
	rollout := f.Release.Spec.Rollout
	if work.GivesBack(f.Work, f.Release) || rollout == nil || rollout.RequestedBy == "" {
		return nil // what gives back asks no guard, and the release is refused
	}
	view, err := r.Guards.Read(ctx, r.Live)
	if err != nil {
		return fmt.Errorf("reading the guards of namespace %s: %w", f.Work.Namespace, err)
	}
	who := specguard.Identity{User: rollout.RequestedBy, Groups: rollout.RequestedByGroups}
	for _, o := range writtenBy(f) {
		baseline, err := r.readBaselineOf(ctx, f.Work.Namespace, o)
		if err != nil {
			return err
		}
		var kept *v1alpha1.BaselineStatus
		if baseline != nil {
			kept = &baseline.Status
		}
		target := &v1alpha1.PlanTarget{BaselineTarget: v1alpha1.BaselineTarget{APIVersion: o.resource.GroupVersion().String(), Kind: o.kind, Name: o.name}}
		if guard := view.Rules(f.Work.Namespace, target, o.labels, kept).FindDistrusting(who); guard > f.Distrusting {
			f.Distrusting = guard // the last by name, so that the message does not change from look to look
		}
	}
	return nil
}

// written is an object that a run writes.
type written struct {
	resource   schema.GroupVersionResource
	kind, name string
	labels     map[string]string
}

// writtenBy lists the objects that the run of a work writes.
func writtenBy(f *work.Facts) (all []written) {
	add := func(o *unstructured.Unstructured) {
		if o != nil {
			all = append(all, written{deployments, deployment.Kind, o.GetName(), o.GetLabels()})
		}
	}
	if work.Holds(&f.Work.Spec) {
		for _, a := range f.Autoscalers {
			all = append(all, written{autoscalers, autoscaler.Kind, a.GetName(), a.GetLabels()})
		}
		return all
	}
	if f.Groups != nil {
		for _, group := range f.Groups.Deployments {
			add(group)
		}
	}
	if labels := cloneLabels(f); labels != nil {
		all = append(all, written{deployments, deployment.Kind, v1alpha1.CloneName(f.Release.Name, f.Work.Spec.Variation), labels})
	}
	if f.Release.Spec.Rollout.Promotion == v1alpha1.PromotionUpdateBaseline {
		add(f.Baseline)
	}
	return all
}

// cloneLabels returns the labels that the clone has or is to have; nil if the release gives no clone.
func cloneLabels(f *work.Facts) map[string]string {
	if f.Baseline == nil {
		return nil
	}
	body, err := clone.BodyOf(f.Release, f.Work.Spec.Variation, f.Baseline, f.Service, 0)
	if err != nil {
		return nil // the decision about the body refuses it with the field
	}
	return body.GetLabels()
}

// fillPlan names the plan that holds the target of the work. The run is stored before its first work,
// and a plan looks for runs after it has taken its target. So of a work and a plan that begin at one
// time, at least one finds the other.
func (r *Reconciler) fillPlan(ctx context.Context, f *work.Facts) error {
	baseline, err := r.readBaselineOf(ctx, f.Work.Namespace, written{resource: deployments, name: work.TargetName(f.Work, f.Release)})
	if err != nil || baseline == nil || baseline.Status.PlanName == "" {
		return err
	}
	name := baseline.Status.PlanName
	plan := &v1alpha1.RemediationPlan{}
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: f.Work.Namespace, Name: name}, plan)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading RemediationPlan %s/%s: %w", f.Work.Namespace, name, err)
	}
	waits := strings.HasPrefix(plan.Status.DeferralReason, string(planner.ReasonRolloutUnderWay))
	if !protocol.Final(plan.Status.Phase) && !waits {
		f.Plan = name
	}
	return nil
}

// readBaselineOf reads the Baseline of an object; nil if the object has none.
func (r *Reconciler) readBaselineOf(ctx context.Context, namespace string, o written) (*v1alpha1.Baseline, error) {
	baseline := &v1alpha1.Baseline{}
	key := types.NamespacedName{Namespace: namespace, Name: specguard.BaselineName(o.resource.Resource, o.resource.Group, o.name)}
	err := r.Live.Get(ctx, key, baseline)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the Baseline of %s %s/%s: %w", o.resource.Resource, namespace, o.name, err)
	}
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // absent is an answer
	}
	return baseline, nil
}
