// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// AcceptFilter narrows a bulk acceptance. Accepting takes the whole observed
// state, so an object passes only if the filter is true of every finding: "all
// that alice did" must not carry along what bob did to the same object.
type AcceptFilter struct {
	// By is the user who made the differences; empty for any.
	By string
	// Since is the age that no difference exceeds; 0 for any.
	Since time.Duration
}

// AcceptCandidate is an object to accept, and the one state that was shown.
type AcceptCandidate struct {
	Baseline v1alpha1.Baseline
	Hash     string
}

// AcceptRefusal is an object that is not accepted, and why.
type AcceptRefusal struct {
	Baseline *v1alpha1.Baseline
	Reason   AcceptRefusalReason
	// Finding is the one that the filter leaves out, where the reason is RefusedOtherFinding.
	Finding *v1alpha1.Finding
}

// NothingToDo reports whether the object needs no acceptance, which is no failure.
func (r AcceptRefusal) NothingToDo() bool {
	return r.Reason == RefusedInSync || r.Reason == RefusedRetired || r.Reason == RefusedNotGuarded
}

// AcceptRefusalReason says why an object is not accepted.
type AcceptRefusalReason string

// The reasons; empty for an object that is accepted.
const (
	// RefusedUnobserved: there is no observed state to accept.
	RefusedUnobserved AcceptRefusalReason = "Unobserved"
	// RefusedInSync: what runs is what is authorized.
	RefusedInSync AcceptRefusalReason = "InSync"
	// RefusedRetired: the object is gone, and that is settled.
	RefusedRetired AcceptRefusalReason = "Retired"
	// RefusedNotGuarded: no guard selects the object any more.
	RefusedNotGuarded AcceptRefusalReason = "NotGuarded"
	// RefusedUnknown: what was not read is not accepted.
	RefusedUnknown AcceptRefusalReason = "Unknown"
	// RefusedUnlisted: the status does not list all findings, so that no filter can be applied.
	RefusedUnlisted AcceptRefusalReason = "Unlisted"
	// RefusedUnmatched: the filter is true of no finding.
	RefusedUnmatched AcceptRefusalReason = "Unmatched"
	// RefusedOtherFinding: the filter is true of some findings, and not of others.
	RefusedOtherFinding AcceptRefusalReason = "OtherFinding"
)

// Words tells the reason, as a clause about the object that is not accepted. [RefusedOtherFinding] needs its
// finding in addition.
func (r AcceptRefusalReason) Words() string {
	switch r {
	case RefusedUnobserved:
		return "no observed state to accept"
	case RefusedInSync:
		return "is in sync: there is no change to accept"
	case RefusedRetired:
		return "is retired: there is no state to accept"
	case RefusedNotGuarded:
		return "no guard selects it any more: there is no state to accept"
	case RefusedUnlisted:
		return "it has findings that are not listed, so that the filters cannot be applied"
	case RefusedUnmatched:
		return "no finding matches"
	case RefusedOtherFinding:
		return "it also has another finding"
	case RefusedUnknown:
		return "its state is unknown, and only an observed state can be accepted"
	default:
		return string(r)
	}
}

// PlanAccept decides which objects are accepted, and says why not the others. named tells
// that a person named each object. now is only compared with when findings were first seen.
func PlanAccept(baselines []v1alpha1.Baseline, named bool, filter AcceptFilter, now time.Time) (accept []AcceptCandidate, refused []AcceptRefusal) {
	for i := range baselines {
		b := &baselines[i]
		refusal := AcceptRefusal{Baseline: b, Reason: refuseAccept(b, named)}
		if refusal.Reason == "" {
			refusal.Reason, refusal.Finding = filter.refuse(b, now)
		}
		if refusal.Reason != "" {
			refused = append(refused, refusal)
			continue
		}
		accept = append(accept, AcceptCandidate{Baseline: *b, Hash: b.Status.Observed.Hash})
	}
	return accept, refused
}

// refuseAccept gives the reason why b cannot or need not be accepted.
func refuseAccept(b *v1alpha1.Baseline, named bool) AcceptRefusalReason {
	observed := b.Status.Observed.Hash != ""
	switch StandingOf(b) {
	case StandingDrifted, StandingMissing:
		if !observed {
			return RefusedUnobserved
		}
		return ""
	case StandingInSync:
		// Accepting an imported object makes it one that somebody vouches for.
		if named && b.Spec.Authorized != nil && b.Spec.Authorized.Origin == v1alpha1.OriginImported && observed {
			return ""
		}
		return RefusedInSync
	case StandingRetired:
		return RefusedRetired
	case StandingNotGuarded:
		return RefusedNotGuarded
	case StandingUnknown:
		if named && isBodyLost(b) && observed {
			return ""
		}
	}
	return RefusedUnknown
}

// isBodyLost reports whether the authorized body can no longer be read, or was too large to
// be kept. The running object can be read, and accepting it by name is the way out.
func isBodyLost(b *v1alpha1.Baseline) bool {
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && (ready.Reason == v1alpha1.ReasonBodyLost || ready.Reason == v1alpha1.ReasonBodyTooLarge)
}

func (f AcceptFilter) refuse(b *v1alpha1.Baseline, now time.Time) (AcceptRefusalReason, *v1alpha1.Finding) {
	if f == (AcceptFilter{}) {
		return "", nil
	}
	findings := b.Status.Findings
	if len(findings) == 0 || CountFindings(b) > len(findings) {
		return RefusedUnlisted, nil
	}
	matches := func(finding v1alpha1.Finding) bool {
		return (f.By == "" || finding.Actor.User == f.By) &&
			(f.Since == 0 || now.Sub(finding.FirstSeenTime.Time) <= f.Since)
	}
	other := slices.IndexFunc(findings, func(x v1alpha1.Finding) bool { return !matches(x) })
	switch {
	case other < 0:
		return "", nil
	case !slices.ContainsFunc(findings, matches):
		return RefusedUnmatched, nil
	default:
		return RefusedOtherFinding, &findings[other]
	}
}
