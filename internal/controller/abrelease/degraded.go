// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// degradedReasons are the reasons of Degraded, the most severe first: requests that are seen
// elsewhere, then requests that pass the split, then a share that a router cannot give, then a share that waits for
// its pods.
var degradedReasons = []string{
	v1alpha1.ReasonContradicted, v1alpha1.ReasonSelectorsOverlap, v1alpha1.ReasonIPv6NotSplit,
	v1alpha1.ReasonNotYetRedirected, v1alpha1.ReasonShareStarved, v1alpha1.ReasonNoReadyEndpoints,
}

// countedReasons are the reasons whose messages have counts. The counts change with each look.
var countedReasons = []string{v1alpha1.ReasonContradicted, v1alpha1.ReasonShareStarved}

// writeDegraded says whether requests go as the split in force has it. It follows
// writeAcknowledged, because a contradiction counts from the acknowledgment on.
func (s *subject) writeDegraded(set condition.Set) {
	s.degraded = s.degradations()
	if len(s.degraded) == 0 && s.seen == nil {
		set.Put(v1alpha1.ConditionDegraded, metav1.ConditionUnknown, reasonUnobserved, fmt.Sprintf("which requests %s send where is not known", s.nameRouters()))
		return
	}
	set.Degraded("no request is known to go past the split, and no share is withheld", s.degraded...)
}

// degradations lists what is known to degrade the release, the most severe first.
func (s *subject) degradations() (known []condition.Degradation) {
	told := map[string][]string{v1alpha1.ReasonContradicted: s.contradictions()}
	for _, p := range s.pastTheSplit() {
		told[string(p.Reason)] = append(told[string(p.Reason)], p.Message)
	}
	if s.seen != nil && len(s.seen.NotYetRedirected) > 0 {
		told[v1alpha1.ReasonNotYetRedirected] = []string{s.olderText()}
	}
	told[v1alpha1.ReasonShareStarved] = s.starvations()
	if withheld := s.decision.After.Withheld(); len(withheld) > 0 {
		told[v1alpha1.ReasonNoReadyEndpoints] = []string{s.clampedText(withheld)}
	}
	for _, reason := range degradedReasons {
		if messages := told[reason]; len(messages) > 0 {
			known = append(known, condition.Degradation{Reason: reason, Message: strings.Join(messages, "; ")})
		}
	}
	return known
}

// starvations say which variations cannot have their share at a router.
func (s *subject) starvations() (all []string) {
	if s.seen == nil {
		return nil
	}
	for _, starved := range s.seen.Starved {
		all = append(all, fmt.Sprintf("variation %s at %s: %s", starved.Variation, starved.Part, starved.Why))
	}
	return all
}

// contradictions are what proxies report that cannot be while the split is in force.
func (s *subject) contradictions() []string {
	switch {
	case s.seen == nil:
		return nil
	case s.acknowledged():
		return release.Contradictions(s.decision.After.Split, *s.seen, since(&s.release.Status, v1alpha1.ConditionAcknowledged), s.now, s.times.Settles)
	case s.seen.Knowledge == traffic.Contradicted:
		return []string{s.acknowledgingText()} // proxies have another split than the one in force
	}
	return nil
}

// toldReasons lists which reasons the stored condition Degraded tells.
func toldReasons(status *v1alpha1.ABReleaseStatus) (told []string) {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDegraded)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	for _, reason := range degradedReasons {
		if c.Reason == reason || strings.Contains(c.Message, reason+": ") {
			told = append(told, reason)
		}
	}
	return told
}

// tellDegraded makes an Event of each reason that is new. A share that is withheld has
// Events of its own.
func (r *Reconciler) tellDegraded(s *subject, was *v1alpha1.ABReleaseStatus) {
	before := toldReasons(was)
	for _, d := range s.degraded {
		if d.Reason != v1alpha1.ReasonNoReadyEndpoints && !slices.Contains(before, d.Reason) {
			r.event(s, true, d.Reason, d.Message)
		}
	}
}
