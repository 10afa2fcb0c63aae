// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// StateChangedError says that an object is no longer in the state that was shown.
type StateChangedError struct {
	// Hash is that of the state that is observed now.
	Hash string
}

func (e *StateChangedError) Error() string {
	return "it changed since it was shown: now " + e.Hash
}

// AcceptSent is a request to accept that was sent.
type AcceptSent struct {
	// Baseline is the one that the request is stored in.
	Baseline   *v1alpha1.Baseline
	Hash       string
	WasMissing bool
}

// RequestAccept sets spec.accept, if the observed state is still the one that was
// shown; otherwise the error is a StateChangedError. The request's hash is that of shown.
func RequestAccept(ctx context.Context, c client.Client, shown *AcceptCandidate, request v1alpha1.AcceptRequest, dryRun bool) (AcceptSent, error) {
	request.Hash = shown.Hash
	current := shown.Baseline.DeepCopy()
	err := Submit(ctx, c, "its Baseline", current, func(b *v1alpha1.Baseline) (map[string]any, error) {
		if b.Status.Observed.Hash != shown.Hash {
			return nil, &StateChangedError{Hash: b.Status.Observed.Hash}
		}
		return acceptPatch(request), nil
	}, patchOptions(dryRun)...)
	if err != nil {
		return AcceptSent{}, err
	}
	return AcceptSent{Baseline: current, Hash: shown.Hash, WasMissing: StandingOf(&shown.Baseline) == StandingMissing}, nil
}

func acceptPatch(request v1alpha1.AcceptRequest) map[string]any {
	accept := map[string]any{"hash": request.Hash, "requestedBy": request.RequestedBy, "reason": orNull(request.Reason), "requestedByGroups": nil}
	if len(request.RequestedByGroups) > 0 {
		accept["requestedByGroups"] = request.RequestedByGroups
	}
	return map[string]any{"spec": map[string]any{"accept": accept}}
}

// Bounds of the API for the groups of a request.
const (
	maxNamedGroups     = 32
	maxNamedGroupBytes = 256
)

// NameGroups returns the groups by which a guard may let the user accept. The group of all
// users and those of service accounts, which follow from the name, need not be named.
func NameGroups(groups []string) []string {
	named := slices.DeleteFunc(slices.Clone(groups), func(group string) bool {
		return group == "" || len(group) > maxNamedGroupBytes || group == "system:authenticated" || specguard.IsServiceAccountGroup(group)
	})
	slices.Sort(named)
	named = slices.Compact(named)
	return named[:min(len(named), maxNamedGroups)]
}

// AcceptOutcome tells what became of a request to accept.
type AcceptOutcome struct {
	Progress
	// Reason is empty while the request is pending.
	Reason AcceptReason
	// Revision is the number of the authorized revision, where the reason is AcceptedRevision.
	Revision int64
	// By is the user whose request came later, where the reason is AcceptSuperseded.
	By string
	// Message is the guard's, where the reason is AcceptForbidden.
	Message string
}

// AcceptReason says why a request to accept was taken or refused.
type AcceptReason string

// The reasons.
const (
	// AcceptedRevision: what ran is authorized as a revision.
	AcceptedRevision AcceptReason = "Revision"
	// AcceptedRetired: the object is gone, and its Baseline is retired or removed.
	AcceptedRetired AcceptReason = "Retired"
	// AcceptedTooLarge: the state is accepted, and too large to be kept.
	AcceptedTooLarge AcceptReason = "TooLarge"
	// AcceptBaselineRemoved: the Baseline of an existing object was removed meanwhile.
	AcceptBaselineRemoved AcceptReason = "BaselineRemoved"
	// AcceptSuperseded: another user asked for another state since.
	AcceptSuperseded AcceptReason = "Superseded"
	// AcceptForbidden: a guard does not let the user accept.
	AcceptForbidden AcceptReason = "Forbidden"
	// AcceptOutdated: the object changed before the request was seen.
	AcceptOutdated AcceptReason = "Outdated"
)

// Words tells what became of a request to accept.
func (o AcceptOutcome) Words() string {
	switch o.Reason {
	case AcceptedRevision:
		return fmt.Sprintf("accepted (revision %d)", o.Revision)
	case AcceptedRetired:
		return "retired"
	case AcceptedTooLarge:
		return "accepted, and too large to be kept: its state is Unknown until it is smaller"
	case AcceptBaselineRemoved:
		return "its Baseline was removed meanwhile"
	case AcceptSuperseded:
		return o.By + " has asked for another state since"
	case AcceptForbidden:
		return o.Message
	case AcceptOutdated:
		return "it changed before the request was seen; look again and accept the present state"
	default:
		return string(o.Reason)
	}
}

// JudgeAccept judges whether the request for hash was taken: the assessor clears a request
// when it has decided. deleted says that the Baseline is gone, as an accepted deletion ends.
func JudgeAccept(b *v1alpha1.Baseline, hash string, wasMissing, deleted bool) AcceptOutcome {
	switch {
	case deleted && wasMissing:
		return AcceptOutcome{Progress: Taken, Reason: AcceptedRetired}
	case deleted:
		return AcceptOutcome{Progress: Refused, Reason: AcceptBaselineRemoved}
	case b.Spec.Accept != nil && b.Spec.Accept.Hash == hash:
		return AcceptOutcome{}
	case b.Spec.Accept != nil:
		return AcceptOutcome{Progress: Refused, Reason: AcceptSuperseded, By: b.Spec.Accept.RequestedBy}
	case b.Status.State == v1alpha1.StateRetired:
		return AcceptOutcome{Progress: Taken, Reason: AcceptedRetired}
	case b.Status.ObservedGeneration < b.Generation:
		// Why the request was cleared is told by the status that follows.
		return AcceptOutcome{}
	default:
		return judgeCleared(b, hash, wasMissing)
	}
}

// judgeCleared judges a request that the assessor has cleared.
func judgeCleared(b *v1alpha1.Baseline, hash string, wasMissing bool) AcceptOutcome {
	switch {
	case meta.IsStatusConditionFalse(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed):
		message := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed).Message
		return AcceptOutcome{Progress: Refused, Reason: AcceptForbidden, Message: message}
	case b.Spec.Authorized != nil && b.Spec.Authorized.Hash == hash:
		return AcceptOutcome{Progress: Taken, Reason: AcceptedRevision, Revision: b.Spec.Authorized.Number}
	case b.Status.Oversized != nil && b.Status.Oversized.Hash == hash:
		return AcceptOutcome{Progress: Taken, Reason: AcceptedTooLarge}
	case b.Status.Oversized != nil && b.Status.Observed.Hash == hash:
		// The status that tells of the larger body follows the cleared request.
		return AcceptOutcome{}
	case wasMissing && StandingOf(b) == StandingMissing:
		// The status that tells "retired" follows the cleared request.
		return AcceptOutcome{}
	default:
		return AcceptOutcome{Progress: Refused, Reason: AcceptOutdated}
	}
}

// AwaitAccept waits until a request to accept is taken or refused. It is pending still when
// the context ends first.
func AwaitAccept(ctx context.Context, c client.WithWatch, sent AcceptSent) (outcome AcceptOutcome, err error) {
	err = Await(ctx, c, sent.Baseline, &v1alpha1.BaselineList{}, func(current *v1alpha1.Baseline, deleted bool) bool {
		outcome = JudgeAccept(current, sent.Hash, sent.WasMissing, deleted)
		return outcome.Progress != Pending
	})
	return outcome, err
}
