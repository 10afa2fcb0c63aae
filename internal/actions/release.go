// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// ReleaseRefusedError says why nothing can be asked of a release.
type ReleaseRefusedError struct {
	Reason ReleaseRefusalReason
	// Run is the number of the last run, and State what became of that run; zero and empty before the first.
	Run   int64
	State v1alpha1.RunState
	// Message says why the approval policy refuses the user; empty for the other reasons.
	Message string
}

// ReleaseRefusalReason says why nothing can be asked of a release.
type ReleaseRefusalReason string

// The reasons.
const (
	ReleaseHasNoRollout ReleaseRefusalReason = "NoRollout"
	ReleaseHasNoRun     ReleaseRefusalReason = "NoRun"
	ReleaseRunHasEnded  ReleaseRefusalReason = "RunEnded"
	ReleaseIsOfAuthor   ReleaseRefusalReason = "NotAuthor"
)

func (e *ReleaseRefusedError) Error() string {
	switch e.Reason {
	case ReleaseHasNoRollout:
		return "it has no spec.rollout, so its percentages are fixed"
	case ReleaseHasNoRun:
		return "it has no run yet"
	case ReleaseRunHasEnded:
		return fmt.Sprintf("run %d has ended: %s", e.Run, e.State)
	case ReleaseIsOfAuthor:
		return e.Message
	default:
		return string(e.Reason)
	}
}

// PlanReleaseVerb returns the request of a verb about the run and the stage that were shown; an error
// says why there is nothing to ask. The stage 0 is the one under way, or of Advance the next one.
func PlanReleaseVerb(r *v1alpha1.ABRelease, verb v1alpha1.RolloutVerb, stage int32, variation, user, reason string) (*v1alpha1.RolloutControl, error) {
	switch status := r.Status.Rollout; {
	case r.Spec.Rollout == nil:
		return nil, &ReleaseRefusedError{Reason: ReleaseHasNoRollout}
	case status == nil || status.Run == nil:
		return nil, &ReleaseRefusedError{Reason: ReleaseHasNoRun}
	case (status.Run.State == runCompleted || status.Run.State == runRolledBack) && verb != "Retry":
		return nil, &ReleaseRefusedError{Reason: ReleaseRunHasEnded, Run: status.Run.Number, State: status.Run.State}
	default:
		if stage == 0 && (verb == "Approve" || verb == "Skip") {
			stage = status.Stage
		}
		control := &v1alpha1.RolloutControl{
			Verb: verb, Run: status.Run.Number, Stage: stage, Variation: v1alpha1.VariationName(variation), RequestedBy: user, Reason: reason,
		}
		control.Attempt = attemptOf(status, *control)
		if refusal := rollout.RefuseVerb(r, control); refusal != "" {
			return nil, &ReleaseRefusedError{Reason: ReleaseIsOfAuthor, Run: status.Run.Number, State: status.Run.State, Message: refusal}
		}
		return control, nil
	}
}

// attemptOf returns the attempt of a request: the discovery server answers the same request once, so a request
// that was answered already is asked as the next attempt. The first attempt has no number.
func attemptOf(in *v1alpha1.RolloutStatus, control v1alpha1.RolloutControl) int32 {
	if in.Handled == nil {
		return 0
	}
	answered := in.Handled.RolloutControl
	if control.Attempt = answered.Attempt; control != answered {
		return 0
	}
	return max(answered.Attempt, 1) + 1
}

const (
	runCompleted  v1alpha1.RunState = "Completed"
	runRolledBack v1alpha1.RunState = "RolledBack"
)

// RequestReleaseVerb asks for a verb, if the run is still the one that was shown.
func RequestReleaseVerb(ctx context.Context, c client.Client, r *v1alpha1.ABRelease, control *v1alpha1.RolloutControl, dryRun bool) error {
	return Submit(ctx, c, "the release", r, func(now *v1alpha1.ABRelease) (map[string]any, error) {
		if _, err := PlanReleaseVerb(now, control.Verb, control.Stage, string(control.Variation), control.RequestedBy, control.Reason); err != nil {
			return nil, err
		}
		return inRollout("control", map[string]any{
			"verb": control.Verb, "run": control.Run, "stage": orAbsent(control.Stage), "attempt": orAbsent(control.Attempt), "variation": orNull(string(control.Variation)),
			"requestedBy": control.RequestedBy, "reason": orNull(control.Reason),
		}), nil
	}, patchOptions(dryRun)...)
}

// orAbsent returns null for a number that is not set, so that a patch removes the field.
func orAbsent(n int32) any {
	if n == 0 {
		return nil
	}
	return n
}

// IsPauseAsWanted reports whether a release is paused, or is not, as it is wanted.
func IsPauseAsWanted(r *v1alpha1.ABRelease, pause v1alpha1.Toggle) bool {
	return r.Spec.Rollout != nil && (r.Spec.Rollout.Pause == v1alpha1.Enabled) == (pause == v1alpha1.Enabled)
}

// RequestReleasePause keeps a release from going forward, or lets the release go on.
func RequestReleasePause(ctx context.Context, c client.Client, r *v1alpha1.ABRelease, pause v1alpha1.Toggle, dryRun bool) error {
	return Submit(ctx, c, "the release", r, func(now *v1alpha1.ABRelease) (map[string]any, error) {
		if now.Spec.Rollout == nil {
			return nil, &ReleaseRefusedError{Reason: ReleaseHasNoRollout}
		}
		return inRollout("pause", pause), nil
	}, patchOptions(dryRun)...)
}

func inRollout(field string, value any) map[string]any {
	return map[string]any{"spec": map[string]any{"rollout": map[string]any{field: value}}}
}

// JudgeReleaseVerb says how a request stands. The text says why the discovery server did nothing.
func JudgeReleaseVerb(r *v1alpha1.ABRelease, control *v1alpha1.RolloutControl) (progress Progress, refusal string) {
	if r.Status.Rollout == nil || r.Status.Rollout.Handled == nil || r.Status.Rollout.Handled.RolloutControl != *control {
		return Pending, ""
	}
	if refusal = r.Status.Rollout.Handled.Refusal; refusal != "" {
		return Refused, refusal
	}
	return Taken, ""
}

// AwaitReleaseVerb waits until a request was answered, or the context ends. last is the release as it was
// seen last.
func AwaitReleaseVerb(ctx context.Context, c client.WithWatch, r *v1alpha1.ABRelease, control *v1alpha1.RolloutControl) (progress Progress, refusal string, last *v1alpha1.ABRelease, err error) {
	last = r
	err = Await(ctx, c, r, &v1alpha1.ABReleaseList{}, func(current *v1alpha1.ABRelease, deleted bool) bool {
		if deleted {
			progress, refusal = Refused, "the release was deleted"
			return true
		}
		last = current
		progress, refusal = JudgeReleaseVerb(current, control)
		return progress != Pending
	})
	return progress, refusal, last, err
}
