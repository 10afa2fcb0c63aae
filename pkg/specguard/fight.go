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

// The fight detector: so many flips at one place within the window are writers
// who keep undoing each other. It ends when the window passes without one.
const (
	fightFlips    = 3
	fightWindow   = 10 * time.Minute
	maxFighters   = 8
	maxFlipPlaces = 16 // of one flip, the worst findings first
)

// flip notes one change to and fro, at all the places that it made.
func (s *step) flip(places []FlipPlace) {
	if len(places) == 0 {
		return
	}
	var distinct []FlipPlace // a write can both end drift and go back to an earlier value
	for _, place := range places {
		if len(distinct) < maxFlipPlaces && !slices.ContainsFunc(distinct, place.samePlace) {
			distinct = append(distinct, place)
		}
	}
	s.st.Flips = append(s.st.Flips, Flip{At: s.in.Now, Places: distinct})
	s.st.Flips = s.st.Flips[max(0, len(s.st.Flips)-maxFlips):]
}

// countFlip counts a write that made the object drift or put it back, or that
// took some path back to an earlier value: once, whatever it touched. What is
// only explained, accepted or ruled differently by now is no write.
func (s *step) countFlip(wasDrifting, drifts bool) {
	back := s.followTrail()
	wrote := s.before.Observed.UID != "" && s.before.Observed.FullHash != string(s.full)
	switch {
	case wrote && !wasDrifting && drifts:
		back = append(s.crossed(s.st.Findings), back...)
	case wrote && wasDrifting && !drifts:
		back = append(s.crossed(s.before.Findings), back...)
	}
	s.flip(back)
}

// crossed are the places at which this write made findings come or go.
func (s *step) crossed(findings []v1alpha1.Finding) []FlipPlace {
	var places []FlipPlace
	for i := range findings {
		path, err := canon.ParsePath(findings[i].Path)
		switch {
		case err != nil:
		case path.IsRoot():
			if s.maker != nil {
				places = append(places, FlipPlace{By: labelOf(*s.maker), Class: s.maker.Class})
			}
		default:
			places = append(places, s.crossedAt(path)...)
		}
	}
	return places
}

// crossedAt are the changes of this write at one finding. A value that was put
// back across a gap is no difference any more and so not among the changes.
func (s *step) crossedAt(path canon.Path) []FlipPlace {
	var places []FlipPlace
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
	return []FlipPlace{{Path: path, By: by, Class: class}}
}

// placeOf is where a change was made, and by whom. An expected writer is not
// named: his value is masked, which is what his rule is for.
func placeOf(j *writtenChange) FlipPlace {
	p := FlipPlace{Path: j.Path, Order: j.Reordered()}
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

// renameFlip gives the last flip of a place the author that a late record names,
// where it was an unknown writer's.
func (s *step) renameFlip(to FlipPlace) {
	f := s.previous(to.Path.String())
	if f == nil {
		return
	}
	for i := range slices.Backward(s.st.Flips) {
		at := slices.IndexFunc(s.st.Flips[i].Places, to.samePlace)
		if at < 0 {
			continue
		}
		if places := s.st.Flips[i].Places; places[at].By == labelOf(f.Actor) {
			places = slices.Clone(places) // the state that came in has them too
			places[at] = to
			s.st.Flips[i].Places = places
		}
		return
	}
}

// followTrail finds the paths that go back to the value they had before somebody
// else changed them, whether or not they are drift: two trusted writers can fight
// as well. An autoscaler that moves to and fro alone does not.
func (s *step) followTrail() []FlipPlace {
	var back []FlipPlace
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

// settleFight begins or ends contention by the flips within the window.
func (s *step) settleFight() {
	recent := slices.DeleteFunc(slices.Clone(s.st.Flips), func(f Flip) bool { return s.in.Now.Sub(f.At) >= fightWindow })
	for _, place := range foughtOver(recent) {
		if len(s.st.contested) < maxFlipPlaces && !slices.ContainsFunc(s.st.contested, place.samePlace) {
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

// foughtOver are the places that enough flips have in common: each of them at
// that very place, or at one that holds it.
func foughtOver(flips []Flip) []FlipPlace {
	var fought []FlipPlace
	for i := range flips {
		for _, place := range flips[i].Places {
			if slices.ContainsFunc(fought, place.samePlace) {
				continue
			}
			count := 0
			for k := range flips {
				if slices.ContainsFunc(flips[k].Places, func(o FlipPlace) bool { return o.holds(place) }) {
					count++
				}
			}
			if count >= fightFlips {
				fought = append(fought, place)
			}
		}
	}
	return fought
}

// fighters names who flipped a contested place, the least trusted first, and
// when.
func (s *step) fighters(flips []Flip) (at []time.Time, names []string) {
	var by []FlipPlace
	for i := range flips {
		counts := false
		for _, place := range flips[i].Places {
			if slices.ContainsFunc(s.st.contested, func(c FlipPlace) bool { return place.holds(c) || c.holds(place) }) {
				counts, by = true, append(by, place)
			}
		}
		if counts {
			at = append(at, flips[i].At)
		}
	}
	slices.SortStableFunc(by, func(a, b FlipPlace) int {
		return cmp.Or(cmp.Compare(distrust(b.Class), distrust(a.Class)), strings.Compare(a.By, b.By))
	})
	for _, place := range by {
		if place.By != "" {
			names = append(names, place.By)
		}
	}
	return at, mergeFighters(names, nil)
}

func listPlaces(places []FlipPlace) string {
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
func (p FlipPlace) holds(o FlipPlace) bool {
	if p.Order || o.Order || p.Path.IsRoot() || o.Path.IsRoot() {
		return p.samePlace(o)
	}
	return p.Path.Covers(o.Path)
}

func (p FlipPlace) samePlace(o FlipPlace) bool { return p.Order == o.Order && p.Path.Equal(o.Path) }

func mergeFighters(a, b []string) []string {
	var names []string
	for _, name := range slices.Concat(a, b) {
		if len(names) < maxFighters && !slices.Contains(names, name) {
			names = append(names, diff.TruncateText(name, maxIdentityBytes))
		}
	}
	return names
}
