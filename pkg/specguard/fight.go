// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// The fight detector: so many reversals at one place within the window are writers
// who keep undoing each other. It ends when the window passes without one.
const (
	fightReversals    = 3
	fightWindow       = 10 * time.Minute
	maxFighters       = 8
	maxReversalPlaces = 16 // of one reversal, the worst findings first
)

// reversal notes one change to and fro, at all the places that it made.
func (s *step) reversal(places []ReversalPlace) {
	if len(places) == 0 {
		return
	}
	var distinct []ReversalPlace // a write can both end drift and go back to an earlier value
	for _, place := range places {
		if len(distinct) < maxReversalPlaces && !slices.ContainsFunc(distinct, place.samePlace) {
			distinct = append(distinct, place)
		}
	}
	s.st.Reversals = append(s.st.Reversals, Reversal{At: s.in.Now, Places: distinct})
	s.st.Reversals = s.st.Reversals[max(0, len(s.st.Reversals)-maxReversals):]
}

// countReversal counts a write that made the object drift or put it back, or that
// took some path back to an earlier value: once, whatever it touched. What is
// only explained, accepted or ruled differently by now is no write.
func (s *step) countReversal(wasDrifting, drifts bool) {
	back := s.followTrail()
	wrote := s.before.Observed.UID != "" && s.before.Observed.FullHash != string(s.full)
	switch {
	case wrote && !wasDrifting && drifts:
		back = append(s.crossed(s.st.Findings), back...)
	case wrote && wasDrifting && !drifts:
		back = append(s.crossed(s.before.Findings), back...)
	}
	s.reversal(back)
}

// crossed are the places at which this write made findings come or go.
func (s *step) crossed(findings []v1alpha1.Finding) []ReversalPlace {
	var places []ReversalPlace
	for i := range findings {
		path, err := canon.ParsePath(findings[i].Path)
		switch {
		case err != nil:
		case path.IsRoot():
			if s.maker != nil {
				places = append(places, ReversalPlace{By: labelOf(*s.maker), Class: s.maker.Class})
			}
		default:
			places = append(places, s.crossedAt(path)...)
		}
	}
	return places
}

// crossedAt are the changes of this write at one finding. A value that was put
// back across a gap is no difference any more and so not among the changes.
func (s *step) crossedAt(path canon.Path) []ReversalPlace {
	var places []ReversalPlace
	explained := false
	for i := range s.written {
		j := &s.written[i]
		switch {
		case !j.Path.Overlaps(path), j.Reordered() && !j.Path.Equal(path):
		case j.late:
			explained = true
		default:
			places = append(places, placeOf(j))
		}
	}
	differs := func(c diff.Change) bool { return c.Path.Overlaps(path) }
	if len(places) > 0 || explained || !s.acrossGap || slices.ContainsFunc(s.parts, differs) {
		return places
	}
	by, class := s.restorer(path)
	return []ReversalPlace{{Path: path, By: by, Class: class}}
}

// placeOf is where a change was made, and by whom. An expected writer is not
// named: his value is masked, which is what his rule is for.
func placeOf(j *writtenChange) ReversalPlace {
	p := ReversalPlace{Path: j.Path, Order: j.Reordered()}
	if j.mask == "" {
		p.By, p.Class = labelOf(j.actor), j.actor.Class
	}
	return p
}

// restorer names who put a value back while nobody watched: the stamp's user if
// that was the only write, else whom the newest records of the path name, else
// nobody.
func (s *step) restorer(path canon.Path) (by string, class v1alpha1.ActorClass) {
	id := Identity{User: s.obs.Writer, Groups: s.obs.WriterGroups}
	if _, single := s.singleWrite([]diff.Change{{Path: path, Op: diff.Changed}}, true); !single {
		if id = s.lastRecorded(path); id.User == "" {
			return "", ""
		}
	}
	class, _ = s.in.Rules.ClassifyAt(id, path)
	if class == v1alpha1.ActorExpected {
		return "", ""
	}
	return diff.TruncateText(id.User, maxIdentityBytes), class
}

// lastRecorded is the least trusted of those whom the newest records of writes to
// a path name.
func (s *step) lastRecorded(path canon.Path) Identity {
	var last Identity
	var newest int64
	for _, i := range s.recordsWhere(s.sinceLastCheck) {
		r := &s.in.Records[i]
		if r.Generation == 0 || r.Generation < newest || !recordTouches(r, path) {
			continue
		}
		was, _ := s.in.Rules.ClassifyAt(last, path)
		is, _ := s.in.Rules.ClassifyAt(r.Identity, path)
		if r.Generation > newest || distrust(is) > distrust(was) {
			last, newest = r.Identity, r.Generation
		}
	}
	return last
}

// renameReversal gives the last reversal of a place the author that a late record names,
// where it was an unknown writer's.
func (s *step) renameReversal(to ReversalPlace) {
	f := s.previous(to.Path.String())
	if f == nil {
		return
	}
	for i := range slices.Backward(s.st.Reversals) {
		at := slices.IndexFunc(s.st.Reversals[i].Places, to.samePlace)
		if at < 0 {
			continue
		}
		if places := s.st.Reversals[i].Places; places[at].By == labelOf(f.Actor) {
			places = slices.Clone(places) // the state that came in has them too
			places[at] = to
			s.st.Reversals[i].Places = places
		}
		return
	}
}

// followTrail finds the paths that go back to the value they had before somebody
// else changed them, whether or not they are drift: two trusted writers can fight
// as well. An autoscaler that moves to and fro alone does not.
func (s *step) followTrail() []ReversalPlace {
	var back []ReversalPlace
	for i := range s.written {
		j := &s.written[i]
		if j.late {
			continue
		}
		entry := trailEntry{path: j.Path.String(), before: s.digest(j.Before), after: s.digest(j.After), by: labelOf(j.actor)}
		at := slices.IndexFunc(s.st.trail, func(t trailEntry) bool { return t.path == entry.path })
		if at >= 0 {
			last := s.st.trail[at]
			if last.by != entry.by && last.before == entry.after && entry.after != "" && j.mask == "" {
				back = append(back, placeOf(j))
			}
			s.st.trail = slices.Delete(s.st.trail, at, at+1)
		}
		s.st.trail = append(s.st.trail, entry)
	}
	s.st.trail = s.st.trail[max(0, len(s.st.trail)-maxTrail):]
	return back
}

// settleFight begins or ends contention by the reversals within the window.
func (s *step) settleFight() {
	recent := slices.DeleteFunc(slices.Clone(s.st.Reversals), func(f Reversal) bool { return s.in.Now.Sub(f.At) >= fightWindow })
	for _, place := range foughtOver(recent) {
		if len(s.st.contested) < maxReversalPlaces && !slices.ContainsFunc(s.st.contested, place.samePlace) {
			s.st.contested = append(s.st.contested, place)
		}
	}
	if s.st.Contention == nil && len(s.st.contested) == 0 {
		return
	}
	at, by := s.fighters(recent)
	switch {
	case len(at) == 0:
		s.st.Contention, s.st.contested = nil, nil
		s.event(EventNormal, ReasonContentionEnded, "no change to and fro for %s", fightWindow)
		return
	case s.st.Contention == nil:
		s.st.Contention = &v1alpha1.Contention{StartTime: metav1.NewTime(s.in.Now), With: by}
		s.event(EventWarning, ReasonContended, "%d changes to and fro within %s at %s: %s",
			len(at), fightWindow, listPlaces(s.st.contested), cmp.Or(joinBounded(by), "nobody is known"))
	default:
		s.st.Contention.With = mergeFighters(s.st.Contention.With, by)
	}
	s.effects = append(s.effects, Recheck{After: fightWindow - s.in.Now.Sub(at[len(at)-1])})
}

// foughtOver are the places that enough reversals have in common: each of them at
// that very place, or at one that holds it.
func foughtOver(reversals []Reversal) []ReversalPlace {
	var fought []ReversalPlace
	for i := range reversals {
		for _, place := range reversals[i].Places {
			if slices.ContainsFunc(fought, place.samePlace) {
				continue
			}
			count := 0
			for k := range reversals {
				if slices.ContainsFunc(reversals[k].Places, func(o ReversalPlace) bool { return o.holds(place) }) {
					count++
				}
			}
			if count >= fightReversals {
				fought = append(fought, place)
			}
		}
	}
	return fought
}

// fighters names who reversed a contested place, the least trusted first, and
// when.
func (s *step) fighters(reversals []Reversal) (at []time.Time, names []string) {
	var by []ReversalPlace
	for i := range reversals {
		counts := false
		for _, place := range reversals[i].Places {
			if slices.ContainsFunc(s.st.contested, func(c ReversalPlace) bool { return place.holds(c) || c.holds(place) }) {
				counts, by = true, append(by, place)
			}
		}
		if counts {
			at = append(at, reversals[i].At)
		}
	}
	slices.SortStableFunc(by, func(a, b ReversalPlace) int {
		return cmp.Or(cmp.Compare(distrust(b.Class), distrust(a.Class)), strings.Compare(a.By, b.By))
	})
	for _, place := range by {
		if place.By != "" {
			names = append(names, place.By)
		}
	}
	return at, mergeFighters(names, nil)
}

func listPlaces(places []ReversalPlace) string {
	var names []string
	for _, place := range places {
		name := place.Path.String()
		if place.Path.IsRoot() {
			name = "the object as a whole"
		}
		names = append(names, name)
	}
	return joinBounded(names)
}

// holds tells whether a place is the other one or contains it. The object as a
// whole, which comes and goes, holds none of its fields, and the order of a list
// none of its elements.
func (p ReversalPlace) holds(o ReversalPlace) bool {
	if p.Order || o.Order || p.Path.IsRoot() || o.Path.IsRoot() {
		return p.samePlace(o)
	}
	return p.Path.Covers(o.Path)
}

func (p ReversalPlace) samePlace(o ReversalPlace) bool {
	return p.Order == o.Order && p.Path.Equal(o.Path)
}

func mergeFighters(a, b []string) []string {
	var names []string
	for _, name := range slices.Concat(a, b) {
		if len(names) < maxFighters && !slices.Contains(names, name) {
			names = append(names, diff.TruncateText(name, maxIdentityBytes))
		}
	}
	return names
}
