// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// executorVerbs are what the executor needs of Deployments in the namespace of a release, and autoscalerVerbs
// what it needs of HorizontalPodAutoscalers.
var (
	executorVerbs   = []string{"get", "create", "update"}
	autoscalerVerbs = []string{"get", "list", "update"}
	groupVerbs      = []string{"get", "update"}
)

// accessOf returns the access that a work needs, and the verbs that the executor needs.
func accessOf(f *work.Facts) (exec.Access, []string) {
	if work.ScalesGroup(f.Work, f.Release) {
		return exec.Access{Resource: deployments, Namespace: f.Work.Namespace, Name: work.TargetName(f.Work, f.Release), Write: "update"}, groupVerbs
	}
	if !work.Holds(&f.Work.Spec) {
		return exec.Access{Resource: deployments, Namespace: f.Work.Namespace, Name: work.TargetName(f.Work, f.Release), Write: "update"}, executorVerbs
	}
	access := exec.Access{Resource: autoscalers, Namespace: f.Work.Namespace, Write: "update"}
	if len(f.Autoscalers) == 1 {
		access.Name = f.Autoscalers[0].GetName()
	}
	return access, autoscalerVerbs
}

// executorMay asks whether the executor may read and write what the work is about.
func (r *Reconciler) executorMay(ctx context.Context, f *work.Facts) (work.Permission, error) {
	access, verbs := accessOf(f)
	allowed, err := r.mayAll(ctx, access, verbs)
	if err != nil || allowed.Right != work.RightGiven || !work.ScalesGroup(f.Work, f.Release) || work.GivesBack(f.Work, f.Release) {
		return allowed, err
	}
	return r.mayAll(ctx, exec.Access{Resource: autoscalers, Namespace: f.Work.Namespace}, []string{"list"})
}

// mayAll asks whether the executor has all verbs of an access.
func (r *Reconciler) mayAll(ctx context.Context, access exec.Access, verbs []string) (work.Permission, error) {
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: access.Attributes(verb)}}
		if err := r.Live.Create(ctx, review); err != nil {
			return work.Permission{}, fmt.Errorf("asking whether the executor may %s %s: %w", verb, access.Resource.Resource, err)
		}
		if !exec.Allowed(&review.Status) {
			return work.Permission{Right: work.RightMissing, Denied: deniedText(access, verb)}, nil
		}
	}
	return work.Permission{Right: work.RightGiven}, nil
}

// deniedText names a verb that the executor lacks, and what gives it.
func deniedText(access exec.Access, verb string) string {
	text := access.ExecutorMayNot(verb)
	if access.Resource == autoscalers && verb != "list" {
		text += "; the ClusterRole has the permission if guard.resources of the chart's values lists horizontalpodautoscalers of autoscaling"
	}
	return text
}

// requesterMay asks whether the author of the release may make the write of the work.
func (r *Reconciler) requesterMay(ctx context.Context, f *work.Facts) (work.Permission, error) {
	rollout := f.Release.Spec.Rollout
	if rollout == nil || rollout.RequestedBy == "" {
		return work.Permission{}, nil // the release is refused for that
	}
	access, _ := accessOf(f)
	if isClone := f.Work.Spec.Verb == v1alpha1.WorkCreateClone || f.Work.Spec.Verb == v1alpha1.WorkScale; isClone && f.Clone == nil && f.Groups == nil {
		access.Write = "create"
	}
	who := planner.Principal{User: rollout.RequestedBy, Groups: rollout.RequestedByGroups}
	review := access.RequesterReview(who)
	if err := r.Live.Create(ctx, review); err != nil {
		return work.Permission{}, fmt.Errorf("asking whether %s may %s %s: %w", who.User, access.Write, access.Resource.Resource, err)
	}
	if !exec.Allowed(&review.Status) {
		kind := deployment.Kind
		if work.Holds(&f.Work.Spec) {
			kind = autoscaler.Kind
		}
		return work.Permission{Right: work.RightMissing, Denied: fmt.Sprintf(
			"%s, the user in spec.rollout.requestedBy, may not %s the %s %s in namespace %s", who.User, access.Write, kind, access.Name, f.Work.Namespace)}, nil
	}
	missing, err := exec.MissingAccount(ctx, r.Live, who)
	if err != nil {
		return work.Permission{}, fmt.Errorf("reading whether %s exists: %w", who.User, err)
	}
	if missing != "" {
		return work.Permission{Right: work.RightMissing, Denied: fmt.Sprintf("%s, the user in spec.rollout.requestedBy, does not exist", who.User)}, nil
	}
	return work.Permission{Right: work.RightGiven}, nil
}
