// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// delivery reads what rollouts depend on, where there is a discovery server.
func (r *reader) delivery(ctx context.Context) {
	if r.snapshot.HasMesh() == doctor.ReadValue {
		r.snapshot.Delivery = doctor.Delivery{Releases: r.releases(ctx), Strategies: r.strategies(ctx)}
	}
}

func (r *reader) releases(ctx context.Context) doctor.Read[[]doctor.Release] {
	var out []doctor.Release
	list := &v1alpha1.ABReleaseList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			if release := &list.Items[i]; release.Spec.Rollout != nil {
				out = append(out, releaseOf(release))
			}
		}
	})
	return result(out, "list abreleases.plumbline.dev", err)
}

func releaseOf(in *v1alpha1.ABRelease) doctor.Release {
	out := doctor.Release{Namespace: in.Namespace, Name: in.Name, Strategy: in.Spec.Rollout.StrategyName}
	if in.Status.Rollout == nil || in.Status.Rollout.Waiting == nil {
		return out
	}
	wait := in.Status.Rollout.Waiting
	out.Waiting, out.Message = wait.Reason, wait.Message
	if wait.DeadlineTime != nil {
		out.Deadline = wait.DeadlineTime.Time
	}
	return out
}

func (r *reader) strategies(ctx context.Context) doctor.Read[[]string] {
	var out []string
	list := &v1alpha1.RolloutStrategyList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			out = append(out, list.Items[i].Name)
		}
	})
	return result(out, "list rolloutstrategies.plumbline.dev", err)
}
