// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The fight detector: so many flips within the window are two writers who keep
// undoing each other. It ends when the window passes without one.
const (
	fightFlips  = 3
	fightWindow = 10 * time.Minute
	maxFighters = 8
)

// flip notes one change to and fro.
func (s *step) flip(by v1alpha1.Actor) {
	s.st.Flips = append(s.st.Flips, Flip{At: s.in.Now, By: labelOf(by), Class: by.Class})
	s.st.Flips = s.st.Flips[max(0, len(s.st.Flips)-maxFlips):]
}

// countFlip counts a write that made the object drift or put it back, or that
// took some path back to an earlier value: once, whatever it touched. What is
// only explained, accepted or ruled differently by now is no write.
func (s *step) countFlip(wasDrifting, drifts bool) {
	by, back := s.followTrail()
	wrote := s.before.Observed.UID != "" && s.before.Observed.FullHash != string(s.full)
	switch {
	case wrote && wasDrifting != drifts:
		s.flip(s.flipper())
	case back:
		s.flip(by)
	}
}

// followTrail finds a path that goes back to the value it had before somebody
// else changed it, whether or not it is drift: two trusted writers can fight as
// well. An autoscaler that moves to and fro alone does not.
func (s *step) followTrail() (by v1alpha1.Actor, back bool) {
	for i := range s.written {
		j := &s.written[i]
		if j.late {
			continue
		}
		entry := trailEntry{path: j.Path.String(), before: s.digest(j.Before), after: s.digest(j.After), by: labelOf(j.actor)}
		at := slices.IndexFunc(s.st.trail, func(t trailEntry) bool { return t.path == entry.path })
		if at >= 0 {
			last := s.st.trail[at]
			if last.by != entry.by && last.before == entry.after && entry.after != "" {
				by, back = j.actor, true
			}
			s.st.trail = slices.Delete(s.st.trail, at, at+1)
		}
		s.st.trail = append(s.st.trail, entry)
	}
	s.st.trail = s.st.trail[max(0, len(s.st.trail)-maxTrail):]
	return by, back
}

// settleFight begins or ends contention by the flips within the window.
func (s *step) settleFight() {
	recent := slices.DeleteFunc(slices.Clone(s.st.Flips), func(f Flip) bool { return s.in.Now.Sub(f.At) >= fightWindow })
	switch {
	case len(recent) >= fightFlips && s.st.Contention == nil:
		s.st.Contention = &v1alpha1.Contention{Since: metav1.NewTime(s.in.Now), With: fighters(recent)}
		s.event(EventWarning, ReasonContended, "%d changes to and fro within %s: %s",
			len(recent), fightWindow, joinBounded(s.st.Contention.With))
	case len(recent) > 0 && s.st.Contention != nil:
		s.st.Contention.With = mergeFighters(s.st.Contention.With, fighters(recent))
	case len(recent) == 0 && s.st.Contention != nil:
		s.st.Contention = nil
		s.event(EventNormal, ReasonContentionEnded, "no change to and fro for %s", fightWindow)
	}
	if s.st.Contention != nil && len(recent) > 0 {
		s.effects = append(s.effects, Recheck{After: fightWindow - s.in.Now.Sub(recent[len(recent)-1].At)})
	}
}

// fighters names the writers of flips, the least trusted first.
func fighters(flips []Flip) []string {
	sorted := slices.Clone(flips)
	slices.SortStableFunc(sorted, func(a, b Flip) int {
		return cmp.Or(cmp.Compare(distrust(b.Class), distrust(a.Class)), strings.Compare(a.By, b.By))
	})
	var names []string
	for _, f := range sorted {
		if f.By != "" {
			names = append(names, f.By)
		}
	}
	return mergeFighters(names, nil)
}

func mergeFighters(a, b []string) []string {
	var names []string
	for _, name := range slices.Concat(a, b) {
		if len(names) < maxFighters && !slices.Contains(names, name) {
			names = append(names, cut(name, maxIdentityBytes))
		}
	}
	return names
}
