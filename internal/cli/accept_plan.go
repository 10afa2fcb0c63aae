// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// acceptFilter narrows a bulk acceptance. Accepting takes the whole observed
// state, so an object passes only if the filter is true of every finding: "all
// that alice did" must not carry along what bob did to the same object.
type acceptFilter struct {
	by    string
	since time.Duration // 0: any age
}

// candidate is an object to accept, and the one state that was shown.
type candidate struct {
	baseline v1alpha1.Baseline
	hash     string
}

// refusal is an object that is not accepted, and why.
type refusal struct {
	object string
	why    string
	// quiet: nothing was to be done, which is no failure.
	quiet bool
}

// planAccept decides what a command line accepts. It is pure; now is only
// compared with when findings were first seen.
func planAccept(found selected, filter acceptFilter, now time.Time) (accept []candidate, refused []refusal) {
	for i := range found.baselines {
		b := &found.baselines[i]
		why, quiet := refuse(b, found.named)
		if why == "" {
			why = filter.refuse(b, now)
		}
		if why != "" {
			refused = append(refused, refusal{object: inNamespace(b), why: why, quiet: quiet})
			continue
		}
		accept = append(accept, candidate{baseline: *b, hash: b.Status.Observed.Hash})
	}
	return accept, refused
}

// refuse gives the reason why b cannot or need not be accepted.
func refuse(b *v1alpha1.Baseline, named bool) (why string, quiet bool) {
	switch standing(b) {
	case standingDrifted, standingMissing:
		if b.Status.Observed.Hash == "" {
			return "no observed state to accept", false
		}
		return "", false
	case standingInSync:
		// Accepting an imported object makes it one that somebody vouches for.
		if named && b.Spec.Authorized != nil && b.Spec.Authorized.Origin == v1alpha1.OriginImported && b.Status.Observed.Hash != "" {
			return "", false
		}
		return "is in sync, nothing to accept", true
	case standingRetired:
		return "is retired, nothing to accept", true
	case standingNotGuarded:
		return "no guard selects it any more, nothing to accept", true
	case standingUnknown:
		if named && bodyLost(b) && b.Status.Observed.Hash != "" {
			return "", false
		}
	}
	return "its state is unknown: what was not read is not accepted", false
}

// bodyLost says that the authorized body can no longer be read, or was too large to be
// kept. The running object can be read, and accepting it by name is the way out.
func bodyLost(b *v1alpha1.Baseline) bool {
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && (ready.Reason == v1alpha1.ReasonBodyLost || ready.Reason == v1alpha1.ReasonBodyTooLarge)
}

func (f acceptFilter) refuse(b *v1alpha1.Baseline, now time.Time) string {
	if f.by == "" && f.since == 0 {
		return ""
	}
	findings := b.Status.Findings
	if len(findings) == 0 || findingsTotal(b) > len(findings) {
		return "it has findings that are not listed, so that the filters cannot be applied"
	}
	matches := func(finding v1alpha1.Finding) bool {
		return (f.by == "" || finding.Actor.User == f.by) &&
			(f.since == 0 || now.Sub(finding.FirstSeenTime.Time) <= f.since)
	}
	if other := slices.IndexFunc(findings, func(x v1alpha1.Finding) bool { return !matches(x) }); other >= 0 {
		x := findings[other]
		if !slices.ContainsFunc(findings, matches) {
			return unmatched
		}
		return fmt.Sprintf("it also has %s by %s, first seen %s", printable(pathName(x.Path)), printable(actorName(x.Actor.User)), timestamp(x.FirstSeenTime))
	}
	return ""
}

// unmatched marks objects that the filters leave out altogether; they are not
// worth a line.
const unmatched = "no finding matches"

func inNamespace(b *v1alpha1.Baseline) string {
	return b.Namespace + "/" + baselineObject(b)
}

// settled tells how a request stands, read from the Baseline: the assessor
// clears it when it has decided.
type settled int

const (
	settlePending settled = iota
	settleTaken
	settleRefused
)

// settlement judges whether the request for hash was taken. deleted is a
// Baseline that is gone: that is how an accepted deletion ends.
func settlement(b *v1alpha1.Baseline, hash string, wasMissing, deleted bool) (settled, string) {
	switch {
	case deleted && wasMissing:
		return settleTaken, "retired"
	case deleted:
		return settleRefused, "its Baseline was removed meanwhile"
	case b.Spec.Accept != nil && b.Spec.Accept.Hash == hash:
		return settlePending, ""
	case b.Spec.Accept != nil:
		return settleRefused, fmt.Sprintf("%s has asked for another state since", printable(b.Spec.Accept.RequestedBy))
	case b.Status.State == v1alpha1.StateRetired:
		return settleTaken, "retired"
	case b.Status.ObservedGeneration < b.Generation:
		// Why the request was cleared is told by the status that follows.
		return settlePending, ""
	default:
		return judgeCleared(b, hash, wasMissing)
	}
}

// judgeCleared tells the outcome of a request that the assessor has cleared.
func judgeCleared(b *v1alpha1.Baseline, hash string, wasMissing bool) (settled, string) {
	switch {
	case meta.IsStatusConditionFalse(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed):
		return settleRefused, meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed).Message
	case b.Spec.Authorized != nil && b.Spec.Authorized.Hash == hash:
		return settleTaken, fmt.Sprintf("accepted (revision %d)", b.Spec.Authorized.Number)
	case b.Status.Oversized != nil && b.Status.Oversized.Hash == hash:
		return settleTaken, "accepted, and too large to be kept: its state is Unknown until it is smaller"
	case b.Status.Oversized != nil && b.Status.Observed.Hash == hash:
		// The status that tells of the larger body follows the cleared request.
		return settlePending, ""
	case wasMissing && standing(b) == standingMissing:
		// The status that tells "retired" follows the cleared request.
		return settlePending, ""
	default:
		return settleRefused, "it changed before the request was seen; look again and accept what runs now"
	}
}
