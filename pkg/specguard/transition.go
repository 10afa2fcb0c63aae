// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// transition judges what happened to an object since it was last seen.
func (s *step) transition() error {
	if s.st.Observed.FullHash == string(s.full) {
		return nil // a write of something else, or none
	}
	if s.changedWithoutWrite() {
		return s.takeServerDefaults()
	}
	if prev := s.obs.Prev; prev != nil {
		doc, err := canon.Parse(prev.Body, s.gvk)
		// Only when it is the version of the last step does nothing lie between.
		if err == nil && string(doc.Hash()) == s.st.Observed.FullHash {
			return s.contiguous(prev, doc)
		}
	}
	return s.gap()
}

// contiguous judges one write of which both sides are known.
func (s *step) contiguous(prev *Version, old *canon.Document) error {
	raw := diff.Compare(old, s.doc)
	w := s.author(prev, raw)
	if s.retry > 0 {
		return nil
	}
	if s.trustedAuthor(w) {
		// Only such a write says whose the labels are: one that changes nothing but
		// labels is not stamped.
		s.st.Selection = moveLabels(s.st.Selection, prev.Labels, s.obs.Labels)
	}
	w.reason = s.breakGlass(w, prev.BreakGlassReason)
	s.reportBenign(raw, w)
	changes := diff.Compare(old, s.doc, s.in.Rules.Excluded()...)
	s.judgeAll(changes, func(diff.Change) writer { return w })
	s.tellBreakGlass(w)
	if !w.known() || w.guessed || w.claimed && s.findsAny() {
		s.remember(prev, raw)
	}
	records := s.exactRecords(prev.ResourceVersion, s.full, "")
	if err := s.withholdUndo(prev, records); err != nil || s.retry > 0 {
		return err
	}
	return s.authorizeWritten(old)
}

// author names who made one write, by the strongest of what there is.
func (s *step) author(prev *Version, raw []diff.Change) writer {
	paths := changedPaths(raw)
	records := s.dropOutweighed(s.exactRecords(prev.ResourceVersion, s.full, s.scaledValue(raw)), s.obs.stamp(), paths)
	if s.obs.Writer != "" && s.stampOfWrite() && s.throughMain(raw, prev.Writer, &s.obs.Version, true) {
		return s.stampedAuthor(records, paths)
	}
	if len(records) > 0 {
		s.othersMayCome(records, paths, s.obs.SeenAt)
		return s.recordWriter(records, paths)
	}
	w := traces(&s.obs.Version, firstPath(raw))
	s.waitForRecord(s.obs.SeenAt)
	return w
}

// stampedAuthor is the author of a write through the main resource.
func (s *step) stampedAuthor(records []int, paths []canon.Path) writer {
	proven := s.proven(s.policyStampedWrite(), records)
	w := stampWriter(&s.obs.Version, proven)
	if manager, _, ok := managerOf(s.obs.Managers, firstOf(paths)); ok {
		w.manager = manager
	}
	switch {
	case proven:
		for _, i := range records {
			s.consumed[i] = struct{}{}
		}
	case len(records) > 0: // the webhook's stamp and record disagree
		if !s.anyAuthenticated(records) {
			s.waitForProof(paths)
		}
		return s.recordWriter(records, paths)
	default:
		s.waitForProof(paths)
	}
	return w
}

func firstPath(changes []diff.Change) canon.Path { return firstOf(changedPaths(changes)) }

func firstOf(paths []canon.Path) canon.Path {
	if len(paths) == 0 {
		return canon.Path{}
	}
	return paths[0]
}

// judgeAll judges the changes of a write. A change by somebody trusted stays
// whole, as trust does not depend on the path.
func (s *step) judgeAll(changes []diff.Change, by func(diff.Change) writer) {
	for _, whole := range changes {
		w := by(whole)
		if j := s.judge(whole, w); j.authorized {
			s.written = append(s.written, j)
			continue
		}
		for _, c := range splitChange(s.gvk, s.in.Rules, whole) {
			s.written = append(s.written, s.judge(c, w))
		}
	}
}

// findsAny tells whether a change of the write at hand is a finding.
func (s *step) findsAny() bool {
	return slices.ContainsFunc(s.written, func(j writtenChange) bool { return !j.authorized && j.mask == "" })
}

// remember keeps a write for a record that comes late: no user is named for the write,
// or only records that anybody may have sent name the user.
func (s *step) remember(prev *Version, raw []diff.Change) {
	p := pendingWrite{
		before: prev.ResourceVersion, generation: s.obs.Generation, fullHash: string(s.full),
		replicas: s.scaledValue(raw), stamp: s.obs.stamp(), paths: map[string]string{},
	}
	for _, j := range s.written {
		p.paths[j.Path.String()] = s.digest(j.After)
	}
	s.st.pending = append(s.st.pending, p)
	s.st.pending = s.st.pending[max(0, len(s.st.pending)-maxPending):]
}

// authorizeWritten moves the authorized body by the authorized changes. old is
// the version before the write, nil when it is only known where it did not
// differ from the authorized body.
func (s *step) authorizeWritten(old *canon.Document) error {
	var changes []diff.Change
	var by string
	var withheld []diff.Change
	for _, j := range s.written {
		switch {
		case j.withheld:
			withheld = append(withheld, j.Change)
		case !j.authorized:
			continue
		case s.carriesUnauthorized(j.Change, old):
			withheld = append(withheld, j.Change)
		default:
			changes = append(changes, j.Change)
		}
		by = j.actor.User
	}
	defer func() { s.tellWithheld(withheld, by) }()
	if len(changes) == 0 {
		return nil
	}
	changes = s.withParents(changes)
	out, skipped, err := diff.Apply(s.st.Body, s.gvk, changes)
	if err != nil {
		return fmt.Errorf("moving the authorized body of %s: %w", s.st.Name, err)
	}
	hash, err := GuardedHash(out, s.gvk, s.in.Rules)
	if err != nil {
		return fmt.Errorf("moving the authorized body of %s: %w", s.st.Name, err)
	}
	withheld = append(withheld, skipped...)
	if string(hash) == s.st.Authorized.Hash { // put back, or inside what is not authorized
		return nil
	}
	if err := s.authorize(out, by, s.st.Authorized.Origin); err != nil {
		return err
	}
	s.tellAuthorized(ReasonAuthorized, "revision %d: %s changed %s",
		s.st.Authorized.Number, by, listPaths(changes, skipped))
	return nil
}

// tellWithheld says which changes of a trusted write stay drift, and whose part
// they hold.
func (s *step) tellWithheld(changes []diff.Change, by string) {
	if len(changes) == 0 {
		return
	}
	s.event(EventWarning, ReasonWithheld, "%s wrote %s, which contains a change by %s, or is a part of it: it stays drift until it is accepted or written without that",
		by, listPaths(changes, nil), s.othersAround(changes, by))
}

// othersAround names who else changed something at, above or below the changes before.
func (s *step) othersAround(changes []diff.Change, than string) string {
	var names []string
	for _, c := range changes {
		for _, actor := range s.actorsAround(c) {
			if name := nameOf(actor); isNamed(actor) && actor.User != than && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return "another writer"
	}
	return joinBounded(names)
}

// withParents gives a new entry of a map its map, where the authorized body has
// none and all else that is in the map now is masked: an expected writer had made
// the first entry, and that must not keep a trusted one from adding the second.
func (s *step) withParents(changes []diff.Change) []diff.Change {
	var out []diff.Change
	made := map[string]int{} // maps to make, by path
	for _, c := range changes {
		parent, name := c.Path.Parent(), c.Path.Last().Name()
		if c.Op != diff.Added || name == "" || parent.IsRoot() || s.want.Root().Follow(parent).Exists() || !s.onlyMasked(parent, changes) {
			out = append(out, c)
			continue
		}
		entry := slices.Concat(canon.AppendString(nil, name), []byte(":"), c.After, []byte("}"))
		if at, ok := made[parent.String()]; ok {
			value := out[at].After
			out[at].After = slices.Concat(value[:len(value)-1], []byte(","), entry)
			continue
		}
		made[parent.String()] = len(out)
		out = append(out, diff.Change{Path: parent, Op: diff.Added, After: slices.Concat([]byte("{"), entry)})
	}
	return out
}

// onlyMasked tells whether everything in a map but what is being written is
// masked or excluded.
func (s *step) onlyMasked(parent canon.Path, but []diff.Change) bool {
	for child := range s.doc.RootWithout(s.in.Rules.Excluded()...).Follow(parent).All() {
		path, ok := parent.Child(canon.Field(string(child.Key())))
		written := slices.ContainsFunc(but, func(c diff.Change) bool { return c.Path.Equal(path) })
		if !ok || child.Covered() && !written && !isMasked(s.st.Masks, diff.Change{Path: path}) {
			return false
		}
	}
	return true
}

// carriesUnauthorized tells whether a list or map that was written whole holds
// something that this write found there and that is not authorized. Writing it
// whole does not vouch for that part.
func (s *step) carriesUnauthorized(c diff.Change, old *canon.Document) bool {
	if c.Op != diff.Changed || c.Reordered() || old == nil {
		return false
	}
	return carriesForeign(s.want.Root().Follow(c.Path), old.Root().Follow(c.Path), s.doc.Root().Follow(c.Path))
}

// reportBenign tells who made a change that is never drift.
func (s *step) reportBenign(raw []diff.Change, w writer) {
	for _, whole := range raw {
		for _, path := range benignPaths {
			if whole.Path.Covers(path) || path.Covers(whole.Path) {
				if !s.touchesPath(whole, path) {
					continue
				}
				class, _ := s.in.Rules.ClassifyAt(w.id, path)
				s.event(EventNormal, ReasonBenignChange, "%s changed %s, which is never drift", nameOf(actorOf(w, class)), path)
			}
		}
	}
}

// touchesPath tells whether the value at a path inside the change differs.
func (s *step) touchesPath(c diff.Change, path canon.Path) bool {
	if !c.Path.Covers(path) || c.Path.Equal(path) {
		return true
	}
	inside := func(raw []byte) canon.Value {
		if len(raw) == 0 || raw[0] != '{' {
			return canon.Value{}
		}
		doc, err := canon.Parse(raw, s.gvk.Fragment())
		if err != nil {
			return canon.Value{}
		}
		rest, _ := canon.NewPath(path.Segments()[c.Path.Len():]...)
		return doc.Root().Follow(rest)
	}
	return !inside(c.Before).Equal(inside(c.After))
}

func actorOf(w writer, class v1alpha1.ActorClass) v1alpha1.Actor {
	if !w.known() || w.guessed {
		class = v1alpha1.ActorUnknown
	}
	return v1alpha1.Actor{
		User: diff.TruncateText(w.id.User, maxIdentityBytes), Class: class, Source: w.source,
		FieldManager: diff.TruncateText(w.manager, maxManagerBytes), BreakGlassReason: w.reason,
	}
}

// nameOf is an actor in words.
func nameOf(a v1alpha1.Actor) string {
	switch {
	case a.User == "" && a.FieldManager != "":
		return fmt.Sprintf("an unknown writer (field manager %q)", a.FieldManager)
	case a.User == "":
		return "an unknown writer"
	case a.Class == v1alpha1.ActorUnknown:
		return fmt.Sprintf("an unknown writer (last writer: %s)", a.User)
	default:
		return fmt.Sprintf("%s (%s)", a.User, strings.ToLower(string(a.Class)))
	}
}

// maxListedPaths bounds the paths in an event.
const maxListedPaths = 5

func listPaths(changes, without []diff.Change) string {
	var names []string
	for _, c := range changes {
		skip := false
		for _, w := range without {
			skip = skip || w.Path.Equal(c.Path)
		}
		if !skip {
			names = append(names, c.Path.String())
		}
	}
	return joinBounded(names)
}

func joinBounded(names []string) string {
	if len(names) <= maxListedPaths {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListedPaths], ", "), len(names)-maxListedPaths)
}

// recordsClockSkew is how far a record's clock may be behind ours.
const recordsClockSkew = 2 * time.Second
