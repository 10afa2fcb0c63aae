// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// ReasonBreakGlass is the event about somebody who went past a guard that denies.
const ReasonBreakGlass EventReason = "BreakGlass"

// maxReasonCharacters is the longest reason that the Deny policy takes.
const maxReasonCharacters = 512

// BreakGlassReason is the reason that a write gave: that on the new object if
// the write changed it. A reason that was there before is somebody else's, or of
// another day, and counts for nothing.
func BreakGlassReason(before, after string) string {
	if before == after {
		return ""
	}
	if characters := []rune(after); len(characters) > maxReasonCharacters {
		return string(characters[:maxReasonCharacters])
	}
	return after
}

// breakGlass is the reason of a write that came through the main resource under
// a guard that denies. Elsewhere nothing checks who may give one, so it is only
// an annotation.
func (s *step) breakGlass(w writer, before string) string {
	if !s.in.Rules.Denies() || w.source != v1alpha1.ActorSourceWriterStamp {
		return ""
	}
	return BreakGlassReason(before, s.obs.BreakGlassReason)
}

// tellBreakGlass makes an event of it; a trusted writer needs no reason.
func (s *step) tellBreakGlass(w writer) {
	if w.reason == "" {
		return
	}
	if class, _ := s.in.Rules.ClassifyAt(w.id, canon.Path{}); class != v1alpha1.ActorTrusted {
		s.event(EventWarning, ReasonBreakGlass, "%s went past a guard that denies: %s", nameOf(actorOf(w, class)), w.reason)
	}
}
