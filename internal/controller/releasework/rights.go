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

// executorVerbs are what the executor needs of Deployments in the namespace of a release.
var executorVerbs = []string{"get", "create", "update"}

func accessTo(namespace, name, write string) exec.Access {
	return exec.Access{Resource: deployments, Namespace: namespace, Name: name, Write: write}
}

// executorMay asks whether the executor may read and write Deployments.
func (r *Reconciler) executorMay(ctx context.Context, namespace, name string) (work.Permission, error) {
	access := accessTo(namespace, name, "update")
	for _, verb := range executorVerbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: access.Attributes(verb)}}
		if err := r.Live.Create(ctx, review); err != nil {
			return work.Permission{}, fmt.Errorf("asking whether the executor may %s Deployments: %w", verb, err)
		}
		if !exec.Allowed(&review.Status) {
			return work.Permission{Right: work.RightMissing, Denied: access.ExecutorMayNot(verb)}, nil
		}
	}
	return work.Permission{Right: work.RightGiven}, nil
}

// requesterMay asks whether the author of the release may make the write of the work.
func (r *Reconciler) requesterMay(ctx context.Context, f *work.Facts) (work.Permission, error) {
	rollout := f.Release.Spec.Rollout
	if rollout == nil || rollout.RequestedBy == "" {
		return work.Permission{}, nil // the release is refused for that
	}
	write := "update"
	if f.Clone == nil && f.Work.Spec.Verb != v1alpha1.WorkUpdateBaseline {
		write = "create"
	}
	who := planner.Principal{User: rollout.RequestedBy, Groups: rollout.RequestedByGroups}
	name := work.TargetName(f.Work, f.Release)
	review := accessTo(f.Work.Namespace, name, write).RequesterReview(who)
	if err := r.Live.Create(ctx, review); err != nil {
		return work.Permission{}, fmt.Errorf("asking whether %s may %s Deployments: %w", who.User, write, err)
	}
	if !exec.Allowed(&review.Status) {
		return work.Permission{Right: work.RightMissing, Denied: fmt.Sprintf(
			"%s, whom spec.rollout.requestedBy names, may not %s the Deployment %s in namespace %s", who.User, write, name, f.Work.Namespace)}, nil
	}
	missing, err := exec.MissingAccount(ctx, r.Live, who)
	if err != nil {
		return work.Permission{}, fmt.Errorf("reading whether %s exists: %w", who.User, err)
	}
	if missing != "" {
		return work.Permission{Right: work.RightMissing, Denied: fmt.Sprintf("%s, whom spec.rollout.requestedBy names, does not exist", who.User)}, nil
	}
	return work.Permission{Right: work.RightGiven}, nil
}
