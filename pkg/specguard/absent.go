// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// absent judges that the object is gone. Who removed it only a record can say;
// somebody trusted, the garbage collector and the namespace controller retire
// the Baseline.
func (s *step) absent(o *Absent) {
	switch {
	case s.in.Rules.Empty():
		return
	case s.st.Authorized == nil && s.st.Oversized == nil:
		s.effects = append(s.effects, RemoveBaseline{})
		s.st.Findings, s.st.FindingsTotal = nil, 0
		s.gone()
		return
	case !s.st.RetiredAt.IsZero(): // retired, came back unexpectedly, is gone again
		s.st.Findings, s.st.FindingsTotal = nil, 0
		s.gone()
		return
	}
	if o.NamespaceTerminating {
		s.retire("its namespace is being deleted")
		return
	}
	actor, retires := s.deleter(o)
	if s.retry > 0 {
		return
	}
	if retires {
		s.retire("deleted by " + nameOf(actor))
		return
	}
	s.missing(actor)
	s.acceptAbsence()
}

// deleter names who deleted the object, and whether that retires its Baseline.
// Once somebody is named who may not, no record that comes later changes that:
// anybody can send one, and of two the less trusted counts.
func (s *step) deleter(o *Absent) (v1alpha1.Actor, bool) {
	records := s.deleteRecords(o)
	if s.isMissing() && isNamed(s.st.Findings[0].Actor) {
		for _, i := range records {
			s.consumed[i] = struct{}{}
		}
		return s.st.Findings[0].Actor, false
	}
	if len(records) == 0 {
		if !s.isMissing() {
			s.waitForRecord(o.SeenAt)
		}
		return v1alpha1.Actor{Class: v1alpha1.ActorUnknown, Source: v1alpha1.ActorSourceNone}, false
	}
	if !s.isMissing() && s.othersMayCome(records, nil, o.SeenAt) {
		return v1alpha1.Actor{}, false
	}
	w := s.recordWriter(records, nil)
	class, _ := s.in.Rules.ClassifyAt(w.id, canon.Path{})
	return actorOf(w, class), class == v1alpha1.ActorTrusted || s.collects(w.id.User)
}

// deleteRecords are the believed records of the deletion; those that name the
// last version exactly, if there are any and the deletion was one step. With
// finalizers the last version comes after the review of the deletion, so that a
// record which names it is no better than the others: anybody may have sent it.
func (s *step) deleteRecords(o *Absent) []int {
	var all, exact []int
	for i := range s.in.Records {
		r := &s.in.Records[i]
		if r.UID != s.st.Observed.UID || r.Operation != OperationDelete || s.in.Rules.AuthenticatedDeletes() && !r.Authenticated || s.endsPod(r) {
			continue
		}
		all = append(all, i)
		if o.Last != nil && !o.Deleting && r.ResourceVersionBefore != "" && r.ResourceVersionBefore == o.Last.ResourceVersion {
			exact = append(exact, i)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return all
}

func (s *step) isMissing() bool {
	return len(s.st.Findings) == 1 && s.st.Findings[0].Class == v1alpha1.ClassObjectMissing
}

// missing reports the deletion, or names its author when a record came late.
func (s *step) missing(actor v1alpha1.Actor) {
	wasMissing := s.isMissing()
	if wasMissing {
		f := &s.st.Findings[0]
		if isNamed(actor) && !isNamed(f.Actor) {
			f.Actor = actor
			s.event(EventNormal, ReasonAttributed, "it was deleted by %s", nameOf(actor))
		}
	} else {
		s.st.Findings = []v1alpha1.Finding{{
			Operation: v1alpha1.OperationRemoved, Type: v1alpha1.DriftMissing, Class: v1alpha1.ClassObjectMissing,
			Actor: actor, FirstSeenTime: metav1.NewTime(s.in.Now),
		}}
		s.st.FindingsTotal, s.st.Masks, s.st.pending = 1, nil, nil
		if s.before.FindingsTotal == 0 {
			s.st.FirstSeen = s.in.Now
			s.reversal([]ReversalPlace{{By: labelOf(actor), Class: actor.Class}})
		}
		s.event(EventWarning, ReasonMissing, "deleted by %s", nameOf(actor))
	}
	s.st.Drift = v1alpha1.StateMissing
	s.gone()
	s.settleFight()
}

// acceptAbsence retires the Baseline of a missing object when somebody accepts
// that it is gone.
func (s *step) acceptAbsence() {
	request := s.in.Accept
	if request == nil {
		return
	}
	s.effects = append(s.effects, ClearAccept{})
	if s.refuseAccept() {
		return
	}
	if request.Hash != HashAbsent {
		s.event(EventWarning, ReasonAcceptOutdated, "%s accepted %s, but the object is gone: the request has no effect",
			request.RequestedBy, request.Hash)
		return
	}
	s.retire("accepted by " + request.RequestedBy)
}

// retire ends the authority of the Baseline: that the object is gone is what
// is authorized now.
func (s *step) retire(why string) {
	s.st.RetiredAt = s.in.Now
	s.st.Findings, s.st.FindingsTotal, s.st.Masks, s.st.pending = nil, 0, nil, nil
	s.st.Contention, s.st.contested, s.st.Oversized = nil, nil, nil
	s.gone()
	s.event(EventNormal, ReasonRetired, "retired: %s", why)
	if s.in.Accept != nil && !slices.Contains(s.effects, Effect(ClearAccept{})) {
		s.effects = append(s.effects, ClearAccept{})
	}
}

// gone notes that nothing is there. The uid stays, for records that come late.
func (s *step) gone() {
	s.st.Observed.Hash, s.st.Observed.FullHash = HashAbsent, ""
	s.st.CheckedAt = s.in.Now
	if s.st.FindingsTotal > 0 {
		return
	}
	s.st.Drift, s.st.FirstSeen = v1alpha1.StateInSync, time.Time{}
	if !s.st.RetiredAt.IsZero() {
		s.st.Drift = v1alpha1.StateRetired
	}
}
