// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// withoutAuthority judges an object for which no authorized body is in force:
// it is seen for the first time, or was unexpected before, or came back after it
// was retired.
func (s *step) withoutAuthority() error {
	known := s.st.Observed.UID == s.obs.UID && s.st.Observed.Hash != HashAbsent && s.st.FindingsTotal > 0
	if known {
		s.stillUnexpected()
		return nil
	}
	if Imports(s.in.State, *s.obs, s.in.Rules) {
		if err := s.authorize(s.body, "", v1alpha1.OriginImported); err != nil {
			return err
		}
		s.tellAuthorized(ReasonImported, "it is older than its guard: its present content is authorized")
		return nil
	}
	w := s.creator()
	if s.retry > 0 {
		return nil
	}
	if s.trustedAuthor(w) {
		return s.authorizeCreation(w)
	}
	class, _ := s.in.Rules.ClassifyAt(w.id, canon.Path{})
	s.maker = new(actorOf(w, class))
	s.st.Findings = []v1alpha1.Finding{{
		Operation: v1alpha1.OperationAdded, Type: v1alpha1.DriftUnexpected, Class: v1alpha1.ClassObjectUnexpected,
		Actor: *s.maker, FirstSeenTime: metav1.NewTime(s.in.Now),
	}}
	s.st.FindingsTotal, s.st.Masks, s.st.FirstSeen = 1, nil, time.Time{}
	s.event(EventWarning, ReasonObjectUnexpected, "created under guard by %s", nameOf(*s.maker))
	s.tellBreakGlass(w)
	return nil
}

// Imports tells whether an object is one that Step authorizes as it is, because
// it is older than all of its guards. Input.BaselinesSince is needed then.
func Imports(st State, o Observation, rules Rules) bool {
	p, ok := o.(Present)
	return ok && !p.EarlierDropped && st.Authorized == nil && st.Oversized == nil && !rules.Empty() && rules.FindInertGuard() == "" && isOlderThanGuards(&p, rules)
}

// forgotten tells that the object was imported once, and that nobody knows any
// more as what: the Baselines of then are lost. An import of what is there now
// could authorize drift.
func (s *step) forgotten() bool {
	return Imports(s.in.State, *s.obs, s.in.Rules) && s.in.BaselinesSince.After(s.in.Rules.GuardedSince())
}

// isOlderThanGuards tells whether the object was there before all of its guards.
// Times are whole seconds, so one of the very second is older unless the live
// watch saw it come.
func isOlderThanGuards(p *Present, rules Rules) bool {
	created, since := p.CreatedAt, rules.GuardedSince()
	switch {
	case created.IsZero():
		return false
	case p.Created:
		return created.Before(since)
	default:
		return !created.After(since)
	}
}

// stillUnexpected keeps the finding: a write over an object that nobody trusted
// created has no authorized body to change, so it authorizes nothing, whoever
// makes it. A record of the creation may still name the creator.
func (s *step) stillUnexpected() {
	if s.st.Observed.FullHash != string(s.full) && !s.changedWithoutWrite() && s.obs.Writer != "" && s.stampOfWrite() {
		id := s.obs.stamp()
		if class, _ := s.in.Rules.ClassifyAt(id, canon.Path{}); class == v1alpha1.ActorTrusted {
			s.event(EventWarning, ReasonObjectUnexpected,
				"%s wrote it, but no trusted writer created it: it stays drift until it is accepted or recreated", id.User)
		}
	}
	f := &s.st.Findings[0]
	if f.Class != v1alpha1.ClassObjectUnexpected || f.Actor.User != "" && f.Actor.Class != v1alpha1.ActorUnknown {
		return
	}
	if records := s.dropOutweighed(s.createRecords(), guessedStamp(f.Actor), nil); len(records) > 0 {
		w := s.recordWriter(records, nil)
		class, _ := s.in.Rules.ClassifyAt(w.id, canon.Path{})
		f.Actor = actorOf(w, class)
		s.event(EventNormal, ReasonAttributed, "it was created by %s", nameOf(f.Actor))
	}
}

// creator names who created the object. The stamp does if it was set then and
// nothing was written since: the watch saw the creation, or the generation is
// still the first.
func (s *step) creator() writer {
	watched := s.obs.Created && s.obs.Prev == nil
	stamped := watched && s.stampOfWrite() || s.obs.Generation == 1 && s.stampsHold()
	byPolicy := watched && s.policyStampedWrite() || s.obs.Generation == 1 && s.policyHolds()
	records := s.createRecords()
	if stamped && s.obs.Writer != "" && s.proven(byPolicy, records) {
		for _, i := range records {
			s.consumed[i] = struct{}{}
		}
		w := stampWriter(&s.obs.Version, true)
		w.reason = s.breakGlass(w, "")
		return w
	}
	if stamped {
		if s.waitForProof(nil) {
			return writer{}
		}
		records = s.dropOutweighed(records, s.obs.stamp(), nil)
	}
	return s.recordedCreator(records)
}

// recordedCreator names who created the object by the records of its creation.
func (s *step) recordedCreator(records []int) writer {
	if len(records) > 0 {
		s.othersMayCome(records, nil, s.obs.SeenAt)
		return s.recordWriter(records, nil)
	}
	if s.waitForRecord(s.obs.SeenAt) {
		return writer{}
	}
	return s.lastWriter(canon.Path{})
}

func (s *step) createRecords() []int {
	return s.recordsWhere(func(r *WriteRecord) bool { return r.Operation == OperationCreate })
}

func (s *step) trustedAuthor(w writer) bool {
	class, _ := s.in.Rules.ClassifyAt(w.id, canon.Path{})
	return w.proven && class == v1alpha1.ActorTrusted
}

// authorizeCreation authorizes all of what somebody trusted created.
func (s *step) authorizeCreation(w writer) error {
	s.st.Masks, s.st.pending = nil, nil
	s.st.Findings, s.st.FindingsTotal = nil, 0
	if s.obs.Created { // with the labels that its creator gave it
		s.st.Selection = &v1alpha1.Selection{Labels: boundLabels(s.obs.Labels)}
	}
	s.maker = new(actorOf(w, v1alpha1.ActorTrusted))
	if err := s.authorize(s.body, w.id.User, v1alpha1.OriginCreated); err != nil {
		return err
	}
	s.tellAuthorized(ReasonAuthorized, "revision %d: created by %s", s.st.Authorized.Number, w.id.User)
	return nil
}

// replaced judges an object that was deleted and created again: it is compared
// with what was authorized for its predecessor, unless its creator is trusted.
func (s *step) replaced() error {
	w := s.creator()
	if s.retry > 0 {
		return nil
	}
	if s.trustedAuthor(w) {
		return s.authorizeCreation(w)
	}
	class, _ := s.in.Rules.ClassifyAt(w.id, canon.Path{})
	s.maker = new(actorOf(w, class))
	s.event(EventWarning, ReasonReplaced, "deleted and created again by %s", nameOf(*s.maker))
	s.st.Findings, s.st.FindingsTotal, s.st.Masks, s.st.pending = nil, 0, nil, nil
	// No change is authorized: trust does not depend on the path, and the creator is not trusted.
	s.judgeAll(diff.Compare(s.want, s.doc, s.in.Rules.Excluded()...), func(diff.Change) writer { return w })
	return nil
}
