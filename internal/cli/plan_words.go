// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// phaseOf a plan; one that no executor has looked at yet is created.
func phaseOf(p *v1alpha1.RemediationPlan) v1alpha1.PlanPhase {
	return cmp.Or(p.Status.Phase, v1alpha1.PlanCreated)
}

func phaseWords(p *v1alpha1.RemediationPlan) string {
	if p.Status.Phase == v1alpha1.PlanSealing && p.Status.EndingAs != "" {
		return fmt.Sprintf("%s (%s)", p.Status.Phase, p.Status.EndingAs)
	}
	return string(phaseOf(p))
}

func planEnded(p *v1alpha1.RemediationPlan) bool { return protocol.Final(p.Status.Phase) }

// planName is namespace/name, as the results of all verbs begin.
func planName(p *v1alpha1.RemediationPlan) string { return p.Namespace + "/" + p.Name }

// sortPlans puts what has not ended first, then what is newest.
func sortPlans(plans []v1alpha1.RemediationPlan) {
	ended := func(p *v1alpha1.RemediationPlan) int {
		if planEnded(p) {
			return 1
		}
		return 0
	}
	slices.SortFunc(plans, func(x, y v1alpha1.RemediationPlan) int {
		return cmp.Or(
			cmp.Compare(ended(&x), ended(&y)), y.CreationTimestamp.Compare(x.CreationTimestamp.Time),
			cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// planWaitsFor says what has to happen before a plan goes on; nothing for one
// that runs or has ended.
func (a *app) planWaitsFor(p *v1alpha1.RemediationPlan) string {
	control := p.Spec.Control
	switch {
	case planEnded(p):
		return ""
	case p.Status.Phase == "":
		return "an executor: none has taken it yet"
	case control.Verb == v1alpha1.PlanCancel:
		return "its end, which " + actorName(control.RequestedBy) + " asked for"
	case p.Status.Phase == v1alpha1.PlanPaused && control.Verb == v1alpha1.PlanPause:
		return withReason("somebody to resume it; paused by "+actorName(control.RequestedBy), control.Reason)
	case control.Verb == v1alpha1.PlanPause:
		return "its pause, which " + actorName(control.RequestedBy) + " asked for"
	case p.Status.DeferralReason == "":
		return ""
	case p.Status.ResumeTime == nil:
		return p.Status.DeferralReason
	}
	return fmt.Sprintf("%s (%s)", p.Status.DeferralReason, a.untilWords(*p.Status.ResumeTime))
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// untilWords says when something ends, and how long that is from now.
func (a *app) untilWords(at metav1.Time) string {
	left := at.Sub(a.now())
	if left <= 0 {
		return "until " + timestamp(at)
	}
	return fmt.Sprintf("until %s, in %s", timestamp(at), humanDuration(left))
}

func humanDuration(d time.Duration) string { return duration.HumanDuration(d) }

// hashDigits is how much of a hash tells two apart for a person.
const hashDigits = 12

// shortHash keeps the algorithm and the first digits: pl1:1f2e3d4c5b6a.
func shortHash(hash string) string {
	algorithm, digits, found := strings.Cut(hash, "sha256:")
	if !found || len(digits) <= hashDigits {
		return hash
	}
	return algorithm + digits[:hashDigits]
}
