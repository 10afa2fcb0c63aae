// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// compare makes masks and findings anew out of the differences from the
// authorized body: each difference is masked or a finding, never neither.
func (s *step) compare() {
	if s.parts == nil {
		s.parts = s.differences()
	}
	s.st.Masks = s.currentMasks()
	s.st.Findings, s.st.FindingsTotal = nil, 0
	for _, c := range s.parts {
		if isMasked(s.st.Masks, c) {
			continue
		}
		s.st.FindingsTotal++
		s.st.Findings = append(s.st.Findings, s.finding(c))
	}
	slices.SortStableFunc(s.st.Findings, func(a, b v1alpha1.Finding) int {
		return cmp.Or(cmp.Compare(classRank[b.Class], classRank[a.Class]), cmp.Compare(a.Path, b.Path))
	})
	s.st.Findings = s.st.Findings[:min(len(s.st.Findings), maxTracked)]
}

func (s *step) differences() []diff.Change {
	return splitAll(s.gvk, s.in.Rules, diff.Compare(s.want, s.doc, s.in.Rules.Excluded()...))
}

// currentMasks are those whose value is still what the expected writer left and
// whose rule is still in force, old ones and those of the write at hand.
func (s *step) currentMasks() []v1alpha1.Mask {
	candidates := map[string]v1alpha1.Mask{}
	for _, m := range s.st.Masks {
		candidates[m.Path] = m
	}
	for i := range s.written {
		j := &s.written[i]
		path := j.Path.String()
		if j.mask == "" {
			delete(candidates, path) // somebody else's value now
			continue
		}
		candidates[path] = v1alpha1.Mask{Path: path, Value: s.maskValue(j.Change), Rule: j.mask, Actor: j.actor}
	}
	var masks []v1alpha1.Mask
	room := maxMaskBytes
	for _, c := range s.parts {
		m, ok := candidates[c.Path.String()]
		if !ok || len(masks) == maxMasks || c.Reordered() || m.Value != s.maskValue(c) || !s.ruleHolds(m.Rule, c) {
			continue
		}
		if size := encodedBytes(m); size <= room { // of the others, each is a finding
			masks, room = append(masks, m), room-size
		}
	}
	return masks
}

func (s *step) ruleHolds(rule string, c diff.Change) bool {
	if rule == ruleTrustedScale {
		return throughScale(s.gvk, ScaleServed, c) // discovery moves no mask
	}
	return s.in.Rules.keepsRule(rule, c.Path)
}

// finding describes a difference; what was known of it before stands as long as
// its value does.
func (s *step) finding(c diff.Change) v1alpha1.Finding {
	driftType, class := ClassifyChange(s.gvk, c)
	shown := diff.Redact(c)
	f := v1alpha1.Finding{
		Path: c.Path.String(), Operation: v1alpha1.Operation(c.Op), Type: driftType, Class: class,
		Before: diff.Truncate(shown.Before, maxValue), After: diff.Truncate(shown.After, maxValue),
		Digest: s.digest(c.After), FirstSeenTime: metav1.NewTime(s.in.Now),
	}
	previous := s.previous(f.Path)
	if m := s.previousMask(f.Path); m != nil && previous == nil {
		if value := shownMaskValue(m); value != "" && value != f.After {
			f.Before = value // the last expected value says more than the authorized one
		}
	}
	if previous != nil {
		f.FirstSeenTime = previous.FirstSeenTime
		if s.sameValue(previous, f.Digest) && previous.Before != "" { // the status may have left it out
			f.Before = previous.Before
		}
	} else if since := s.overlappedSince(c); !since.IsZero() {
		f.FirstSeenTime = metav1.NewTime(since)
	}
	f.Actor = s.actorAt(c, previous, f.Digest)
	return f
}

func (s *step) sameValue(f *v1alpha1.Finding, digest string) bool {
	return s.comparable(f.Digest) && f.Digest == digest
}

func (s *step) previous(path string) *v1alpha1.Finding {
	for i := range s.before.Findings {
		if f := &s.before.Findings[i]; f.Path == path && f.Class != v1alpha1.ClassObjectMissing && f.Class != v1alpha1.ClassObjectUnexpected {
			return f
		}
	}
	return nil
}

func (s *step) previousMask(path string) *v1alpha1.Mask {
	for i := range s.before.Masks {
		if s.before.Masks[i].Path == path {
			return &s.before.Masks[i]
		}
	}
	return nil
}

// overlappedSince is when the oldest finding at a place above or below began.
func (s *step) overlappedSince(c diff.Change) time.Time {
	var since time.Time
	for i := range s.before.Findings {
		f := &s.before.Findings[i]
		path, err := canon.ParsePath(f.Path)
		if err != nil || path.IsRoot() || c.Reordered() || !path.Overlaps(c.Path) {
			continue
		}
		if since.IsZero() || f.FirstSeenTime.Time.Before(since) {
			since = f.FirstSeenTime.Time
		}
	}
	return since
}

// actorAt names who is behind a difference: the author of the write at hand if
// he wrote this very path; else whoever was named before; else the least
// trusted of those who wrote above or below it.
func (s *step) actorAt(c diff.Change, previous *v1alpha1.Finding, digest string) v1alpha1.Actor {
	var around []v1alpha1.Actor
	for i := range s.written {
		j := &s.written[i]
		if !touches(j.Change, c) {
			continue
		}
		if j.Path.Equal(c.Path) && !j.authorized && !j.withheld {
			if previous != nil && !isNamed(j.actor) && s.sameValue(previous, digest) {
				continue // a record came late for one of two findings; nothing new is known here
			}
			return j.actor
		}
		around = append(around, j.actor)
	}
	if previous != nil {
		around = append(around, previous.Actor)
	} else {
		around = append(around, s.actorsAround(c)...)
	}
	if m := s.previousMask(c.Path.String()); m != nil && len(around) == 0 && m.Value == s.maskValue(c) {
		lifted := m.Actor // the rule is gone, so the class is another
		lifted.Class, _ = s.in.Rules.ClassifyAt(Identity{User: lifted.User}, c.Path)
		around = append(around, lifted)
	}
	if len(around) == 0 {
		w := traces(&s.obs.Version, c.Path)
		return actorOf(w, v1alpha1.ActorUnknown)
	}
	return slices.MaxFunc(around, func(a, b v1alpha1.Actor) int { return cmp.Compare(distrust(a.Class), distrust(b.Class)) })
}

func (s *step) actorsAround(c diff.Change) []v1alpha1.Actor {
	var actors []v1alpha1.Actor
	for i := range s.before.Findings {
		path, err := canon.ParsePath(s.before.Findings[i].Path)
		if err == nil && !path.IsRoot() && !c.Reordered() && path.Overlaps(c.Path) {
			actors = append(actors, s.before.Findings[i].Actor)
		}
	}
	return actors
}

// isNamed tells whether an actor is known to have made the change.
func isNamed(a v1alpha1.Actor) bool { return a.User != "" && a.Class != v1alpha1.ActorUnknown }
