// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// explainLate names the authors of differences that were found before their
// records came. A record that names an expected writer turns the finding into a
// mask; none authorizes. Rules that changed since are applied too: a finding
// whose author is expected by now becomes a mask.
func (s *step) explainLate() {
	s.parts = s.differences()
	if len(s.before.Findings) == 0 || len(s.parts) == 0 {
		return
	}
	s.joinPending()
	for _, c := range s.parts {
		if s.isWritten(c) {
			continue
		}
		f := s.previous(c.Path.String())
		if f == nil || !s.sameValue(f, s.digest(c.After)) {
			continue
		}
		if isNamed(f.Actor) {
			s.reclassify(c, f)
			continue
		}
		stamp, paths := guessedStamp(f.Actor), []canon.Path{c.Path}
		if stamp.User == "" {
			stamp = s.obs.stamp()
		}
		if records := s.dropOutweighed(s.recordsOfNow(c, f), stamp, paths); len(records) > 0 {
			s.writeLate(c, s.recordWriter(records, paths))
		}
	}
}

// joinPending joins records with writes that were seen happen: exactly one
// write has that resourceVersion before and that body after.
func (s *step) joinPending() {
	s.st.pending = slices.DeleteFunc(s.st.pending, func(p pendingWrite) bool {
		paths := s.pendingPaths(p)
		records := s.dropOutweighed(s.exactRecords(p.before, canon.Hash(p.fullHash), p.replicas), p.stamp, paths)
		if len(records) == 0 {
			return false
		}
		var explained []diff.Change
		for _, c := range s.parts {
			digest, ok := p.paths[c.Path.String()]
			if ok && digest == s.digest(c.After) && digest != "" && !s.isWritten(c) {
				explained = append(explained, c)
			}
		}
		w := s.recordWriter(records, paths)
		for _, c := range explained {
			if f := s.previous(c.Path.String()); f != nil && s.corrects(w, f.Actor, c.Path) {
				s.writeLate(c, w)
			}
		}
		return !w.claimed // a record with the certificate may follow
	})
}

// corrects tells whether the author that late records of a write name replaces the actor
// of a finding. Only a record with the API server's certificate makes a named actor more
// trusted: anybody may have sent the others.
func (s *step) corrects(w writer, named v1alpha1.Actor, path canon.Path) bool {
	switch {
	case !isNamed(named):
		return true
	case named.Source != v1alpha1.ActorSourceAdmission || named.User == w.id.User:
		return false
	}
	class, _ := s.in.Rules.ClassifyAt(w.id, path)
	return !w.claimed || class == v1alpha1.ActorUntrusted && named.Class != class
}

func (s *step) pendingPaths(p pendingWrite) []canon.Path {
	var paths []canon.Path
	for _, text := range slices.Sorted(maps.Keys(p.paths)) {
		if path, err := canon.ParsePath(text); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// recordsOfNow are those that led to what is there now, for findings of before
// a restart: by generation and body, or by the number that was scaled to around
// the time of the finding.
func (s *step) recordsOfNow(c diff.Change, f *v1alpha1.Finding) []int {
	return s.recordsWhere(func(r *WriteRecord) bool {
		if s.isLast(r) {
			return recordTouches(r, c.Path)
		}
		return s.throughScale(c) && r.scaledTo(string(c.After)) &&
			absDuration(r.Time.Sub(f.FirstSeenTime.Time)) <= nearInTime
	})
}

func absDuration(d time.Duration) time.Duration { return max(d, -d) }

func (s *step) isWritten(c diff.Change) bool {
	return slices.ContainsFunc(s.written, func(j writtenChange) bool { return touches(j.Change, c) })
}

func (s *step) writeLate(c diff.Change, w writer) {
	j := s.judge(c, w)
	j.late, j.authorized = true, false
	s.written = append(s.written, j)
	s.renameReversal(placeOf(&j))
	s.event(EventNormal, ReasonAttributed, "%s was changed by %s", c.Path, nameOf(j.actor))
}

// reclassify turns the finding of an author who is expected by now into a mask.
func (s *step) reclassify(c diff.Change, f *v1alpha1.Finding) {
	class, rule := s.in.Rules.ClassifyAt(Identity{User: f.Actor.User}, c.Path)
	if class != v1alpha1.ActorExpected {
		return
	}
	actor := f.Actor
	actor.Class = class
	s.written = append(s.written, writtenChange{Change: c, actor: actor, mask: rule, late: true})
}

// labelOf names an actor briefly, for lists of writers.
func labelOf(a v1alpha1.Actor) string {
	if a.User != "" {
		return a.User
	}
	return strings.TrimSpace("unknown " + a.FieldManager)
}
