// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// withoutBody is for an object whose authorized body is lost. What was authorized
// is not known any more, so nothing is drift and nothing is in sync. But what is
// there now is known and shown, and who accepts its hash authorizes it: whole,
// with what expected writers left, as what they moved it from is lost too.
func (s *step) withoutBody(why string) error {
	observed := s.doc.Hash(s.in.Rules.Excluded()...)
	if s.in.Accept != nil {
		masks := s.st.Masks
		s.st.Masks = nil
		hash, err := s.honorAccept(observed)
		if err != nil {
			return err
		}
		if s.want != nil {
			s.conclude(hash)
			return nil
		}
		s.st.Masks = masks // it named another hash
	}
	// Each step finds a lost body anew; that a body was not kept is remembered.
	s.st.BodyLost = s.st.Oversized == nil
	if s.before.Drift != v1alpha1.StateUnknown || s.st.BodyLost && !s.before.BodyLost {
		if s.st.BodyLost {
			why = "the authorized body is lost, so the object cannot be compared until a person accepts it: " + why
		}
		s.event(EventWarning, ReasonUnreadable, "%s", why)
	}
	s.st.Drift = v1alpha1.StateUnknown
	// Of what was observed only the hash moves: the rest is what was judged last,
	// from which attribution goes on should the body be put back.
	s.st.Observed.Hash = string(observed)
	return nil
}
