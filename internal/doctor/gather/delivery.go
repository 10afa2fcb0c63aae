// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// delivery reads what rollouts depend on where there is a discovery server, and what holds releases also
// where there is none.
func (r *reader) delivery(ctx context.Context) {
	d := &r.snapshot.Delivery
	switch r.snapshot.HasMesh() {
	case doctor.ReadValue:
		r.releases(ctx, d)
		r.strategies(ctx, d)
	case doctor.ReadAbsent:
		var all doctor.Delivery
		r.releases(ctx, &all)
		d.Held = all.Held
	case doctor.ReadUnknown:
	}
}

func (r *reader) releases(ctx context.Context, d *doctor.Delivery) {
	var releases []doctor.Release
	var held []doctor.Held
	var silences []doctor.Silence
	list := &v1alpha1.ABReleaseList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			release := &list.Items[i]
			if release.Spec.Rollout != nil {
				releases = append(releases, releaseOf(release))
				silences = append(silences, silencesOf(release)...)
			}
			if slices.Contains(release.Finalizers, v1alpha1.FinalizerReturnRequests) {
				held = append(held, heldOf(release))
			}
		}
	})
	const right = "list abreleases.plumbline.dev"
	d.Releases, d.Held, d.Silences = result(releases, right, err), result(held, right, err), result(silences, right, err)
}

// silencesOf are the queries of a run under way whose last attempt got no answer.
func silencesOf(in *v1alpha1.ABRelease) (out []doctor.Silence) {
	if in.Status.Rollout == nil || !rollout.StateOf(&in.Status).IsOn() {
		return nil
	}
	for i := range in.Status.Rollout.Gates {
		g := &in.Status.Rollout.Gates[i]
		if g.Kind == "Query" && g.Result == "NoData" && g.Message == prometheus.ErrUnreachable.Error() {
			out = append(out, doctor.Silence{Namespace: in.Namespace, Release: in.Name, Query: g.Name, Time: g.AnswerTime.Time})
		}
	}
	return out
}

func heldOf(in *v1alpha1.ABRelease) doctor.Held {
	out := doctor.Held{Namespace: in.Namespace, Name: in.Name, Deleting: !in.DeletionTimestamp.IsZero()}
	if hold := rollout.StateOf(&in.Status).Hold; hold != nil && hold.Autoscaler != nil {
		out.Autoscaler, out.Former = hold.Autoscaler.Name, int32(hold.Autoscaler.Former) //nolint:gosec // the API has 32 bits
	}
	return out
}

// problemOf says why the clone of a release cannot be made. Such texts begin with a field.
func problemOf(in *v1alpha1.ABRelease) string {
	message := ""
	switch c := meta.FindStatusCondition(in.Status.Conditions, v1alpha1.ConditionProgressing); {
	case in.Status.Rollout != nil && in.Status.Rollout.Waiting != nil && rollout.WaitReason(in.Status.Rollout.Waiting.Reason) == rollout.WaitInvalid:
		message = in.Status.Rollout.Waiting.Message
	case c != nil && c.Reason == "NoRun":
		message = c.Message
	}
	if strings.HasPrefix(message, "spec.") {
		return message
	}
	return ""
}

func releaseOf(in *v1alpha1.ABRelease) doctor.Release {
	out := doctor.Release{
		Namespace: in.Namespace, Name: in.Name, Strategy: in.Spec.Rollout.StrategyName,
		NeedsExecutor: rollout.CloneOf(in) != nil || in.Spec.HasFreshControl() || in.Spec.Rollout.Fallback == v1alpha1.FallbackHoldMinReplicas,
	}
	if out.NeedsExecutor {
		out.Problem = problemOf(in)
	}
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

func (r *reader) strategies(ctx context.Context, d *doctor.Delivery) {
	var out []string
	list := &v1alpha1.RolloutStrategyList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			s := &list.Items[i]
			out = append(out, s.Name)
			if s.Labels[labelName] == plumbline && s.Labels[labelComponent] == "delivery" {
				d.Shipped = append(d.Shipped, s.Name)
			}
		}
	})
	d.Strategies = result(out, "list rolloutstrategies.plumbline.dev", err)
}
