// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// gap judges what happened while nobody was watching. The version before is not
// at hand, but what is known of it is enough to tell which paths changed since:
// where it did not differ from the authorized body it was equal to it, and where
// it did there is a finding or a mask with the digest of its value.
//
// If the generation advanced by exactly one, a single write made all of that,
// and the stamp names its author. If it advanced by more, several writes hide
// behind the last stamp, and nothing is authorized.
func (s *step) gap() error {
	s.acrossGap = true
	changed, complete := s.changedSince()
	if len(changed) == 0 {
		return nil
	}
	if w, single := s.singleWrite(changed, complete); single {
		s.judgeAll(changed, func(diff.Change) writer { return w })
		s.distrustOverlaps()
		if err := s.withholdUndo(nil, s.lastRecords()); err != nil || s.retry > 0 {
			return err
		}
		return s.authorizeWritten(nil)
	}
	s.judgeAll(changed, s.recordedAuthor)
	return nil
}

// changedSince are the differences from the authorized body that did not exist,
// or had another value, when the object was last seen. complete is false when
// not everything of that time is known.
func (s *step) changedSince() (changed []diff.Change, complete bool) {
	complete = s.st.FindingsTotal == len(s.st.Findings) && s.st.Observed.Hash != HashAbsent &&
		s.st.Observed.UID == s.obs.UID && s.st.Observed.FullHash != ""
	known := s.knownValues()
	for _, whole := range diff.Compare(s.want, s.doc, s.in.Rules.Excluded()...) {
		parts := splitChange(s.gvk, s.in.Rules, whole)
		var moved []diff.Change
		for _, c := range parts {
			value, ok := known[c.Path.String()]
			same := ok && s.comparable(value)
			complete = complete && (!ok || same)
			if same {
				same = value == s.digest(c.After)
			} else if ok {
				same = s.looksUnchanged(c)
			}
			if !same {
				moved = append(moved, c)
			}
		}
		if len(moved) == len(parts) { // a map that is new as a whole has its place as a whole
			moved = []diff.Change{whole}
		}
		changed = append(changed, moved...)
	}
	return changed, complete
}

// looksUnchanged compares by what is shown where the digest is of another key:
// good enough to go on naming the same actor, and it never authorizes.
func (s *step) looksUnchanged(c diff.Change) bool {
	f := s.previous(c.Path.String())
	return f != nil && f.After == diff.Truncate(diff.Redact(c).After, maxValue)
}

// knownValues are the digests of the values that differed when last seen.
func (s *step) knownValues() map[string]string {
	known := map[string]string{}
	for i := range s.st.Findings {
		known[s.st.Findings[i].Path] = s.st.Findings[i].Digest
	}
	for i := range s.st.Masks {
		known[s.st.Masks[i].Path] = s.maskDigest(&s.st.Masks[i])
	}
	return known
}

// singleWrite tells whether exactly one write made the changes, and by whom.
func (s *step) singleWrite(changed []diff.Change, complete bool) (writer, bool) {
	before := s.st.Observed.Generation
	if !complete || before == 0 || s.obs.Generation != before+1 || s.obs.Writer == "" || !s.stampsHold() {
		return writer{}, false
	}
	for _, c := range changed {
		if root := c.Path.Segments()[0].Name(); root != "spec" {
			return writer{}, false // the generation counts changes of the spec alone
		}
	}
	if !s.throughMain(changed, s.st.Observed.Writer, &s.obs.Version, false) {
		return writer{}, false
	}
	proven := s.proven(s.policyHolds(), s.lastRecords())
	if !proven {
		s.waitForProof(changedPaths(changed))
	}
	return stampWriter(&s.obs.Version, proven), true
}

// lastRecords are those of the write that led to the present state.
func (s *step) lastRecords() []int { return s.recordsWhere(s.isLast) }

// isLast tells whether a record is of the write that led to the present state.
func (s *step) isLast(r *WriteRecord) bool {
	return r.Generation == s.obs.Generation && r.Generation != 0 && r.HashAfter == string(s.full) && !s.contradicts(r, s.policyHolds())
}

// distrustOverlaps takes back the authorization where the version before already
// differed from the authorized body: of that only a digest is known, which does
// for a single value but not for what has parts.
func (s *step) distrustOverlaps() {
	for i := range s.written {
		j := &s.written[i]
		if !j.authorized {
			continue
		}
		if isContainer(j.After) && s.masksWithin(j.Path) {
			j.authorized, j.withheld = false, true
			continue
		}
		for k := range s.st.Findings {
			f := &s.st.Findings[k]
			path, err := canon.ParsePath(f.Path)
			if err != nil || !path.Overlaps(j.Path) {
				continue
			}
			if !path.Equal(j.Path) || j.Op != diff.Changed || isContainer(j.After) || isContainer(j.Before) ||
				f.Operation != v1alpha1.OperationChanged {
				j.authorized, j.withheld = false, true
			}
		}
	}
}

// masksWithin tells whether a value of an expected writer lay at or below a path.
func (s *step) masksWithin(path canon.Path) bool {
	return slices.ContainsFunc(s.before.Masks, func(m v1alpha1.Mask) bool {
		at, err := canon.ParsePath(m.Path)
		return err != nil || path.Covers(at)
	})
}

func isContainer(raw []byte) bool { return len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') }

// recordedAuthor names the author of one change of several unseen writes. Any
// record since may accuse; they excuse only if one of them speaks of the value
// that is there now. What no record explains is the last writer's, perhaps.
func (s *step) recordedAuthor(c diff.Change) writer {
	paths := []canon.Path{c.Path}
	isFinal := map[int]bool{}
	for _, i := range s.lastRecords() {
		isFinal[i] = true
	}
	var about []int
	conclusive := false
	for _, i := range s.recordsWhere(s.sinceLastCheck) {
		r := &s.in.Records[i]
		scaled := s.throughScale(c) && r.scaledTo(string(c.After))
		if !scaled && !recordTouches(r, c.Path) || isFinal[i] && s.outweighs(s.obs.stamp(), r, paths) {
			continue
		}
		about = append(about, i)
		conclusive = conclusive || scaled || isFinal[i]
	}
	if len(about) == 0 {
		return s.lastWriter(c.Path)
	}
	w := s.recordWriter(about, paths)
	if class, _ := s.in.Rules.ClassifyAt(w.id, c.Path); !conclusive && class != v1alpha1.ActorUntrusted {
		w.excuses, w.guessed = false, true
	}
	return w
}

// sinceLastCheck leaves out records of before the object was last looked at, by time and
// by generation, and of an update that the API server refused.
func (s *step) sinceLastCheck(r *WriteRecord) bool {
	last := &s.st.Observed
	seen := r.Generation != 0 && r.Generation <= last.Generation && last.UID == s.obs.UID
	return !seen && !r.Time.Before(s.st.CheckedAt.Add(-recordsClockSkew)) && !s.contradicts(r, s.policyHolds())
}

func recordTouches(r *WriteRecord, path canon.Path) bool {
	if len(r.Fields) >= maxFields { // cut: it may have touched anything
		return true
	}
	for _, text := range r.Fields {
		if p, err := canon.ParsePath(text); err == nil && p.Overlaps(path) {
			return true
		}
	}
	return false
}

// lastWriter names the user of the stamp, whose last write may not be this one. If no
// write moved the generation, the API server itself is as good a guess.
func (s *step) lastWriter(path canon.Path) writer {
	_, subresource, _ := managerOf(s.obs.Managers, path)
	if s.obs.Writer != "" && subresource == "" && s.stampsHold() && !s.generationStays() {
		w := stampWriter(&s.obs.Version, false)
		w.manager, _, _ = managerOf(s.obs.Managers, path)
		return w
	}
	return traces(&s.obs.Version, path)
}

// nearInTime bounds how far a record and the finding that it may explain lie
// apart when there is nothing better to join them by.
const nearInTime = 10 * time.Minute
