// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// An authorized body that no BaselineRevision holds is kept as its hash. As long as
// a version with that hash is at hand, which is the object itself or the version
// before it, that version is the authorized body, and each write is judged by it. The
// state is Unknown all the time, because the next version may be the only one left.

// encodedSize measures a body as a BaselineRevision holds it.
func (s *step) encodedSize(body []byte) int {
	if s.in.EncodedSize == nil {
		return len(body)
	}
	return s.in.EncodedSize(body)
}

// keepHash authorizes the body of this step without keeping it. The authorized state of
// before stays in the Baseline.
func (s *step) keepHash(hash canon.Hash, size int, by string, origin v1alpha1.Origin) {
	s.st.Oversized = &v1alpha1.OversizedBody{Hash: string(hash), Size: int64(size), By: by, Origin: origin}
	s.judgeByOversized(hash)
	s.event(EventWarning, ReasonBodyTooLarge, "%s", OversizedMessage(s.st.Oversized))
}

// tellAuthorized tells of a new revision, if the body is kept as one.
func (s *step) tellAuthorized(reason EventReason, format string, args ...any) {
	if s.st.Oversized == nil {
		s.event(EventNormal, reason, format, args...)
	}
}

// judgeByOversized has the rest of the step judge by an authorized state that is
// not kept.
func (s *step) judgeByOversized(hash canon.Hash) {
	o := s.st.Oversized
	authorized := &v1alpha1.AuthorizedState{UID: s.obs.UID, Hash: string(hash), By: o.By, Origin: o.Origin, AuthorizationTime: *timeTo(s.in.Now)}
	if s.st.Authorized != nil {
		authorized.Number = s.st.Authorized.Number
	}
	s.st.Authorized = authorized
}

// leaveOversized ends a step under an authorized state that is not kept.
func (s *step) leaveOversized() {
	if s.st.Oversized != nil {
		s.st.Authorized, s.st.Body = s.kept, nil
	}
}

// resumeOversized looks for the authorized body in the versions at hand.
func (s *step) resumeOversized() (found bool, err error) {
	versions := [][]byte{s.body}
	if s.obs.Prev != nil {
		versions = append(versions, s.obs.Prev.Body)
	}
	for _, version := range versions {
		doc, err := canon.Parse(version, s.gvk)
		if err != nil {
			continue // the version before was not readable either
		}
		full, body := doc.Hash(), doc.AppendCanonical(nil)
		doc.Release()
		if s.st.Body != nil { // masked and excluded paths stay as they were authorized
			if body, err = acceptedBody(body, s.st.Body, s.gvk, s.in.Rules, s.st.Masks); err != nil {
				return false, fmt.Errorf("looking for the authorized body of %s: %w", s.st.Name, err)
			}
		}
		want, err := canon.Parse(body, s.gvk)
		if err != nil {
			return false, fmt.Errorf("looking for the authorized body of %s: %w", s.st.Name, err)
		}
		hash := want.Hash(s.in.Rules.Excluded()...)
		if string(hash) != s.st.Oversized.Hash && !s.isClean(full) {
			continue
		}
		s.want, s.st.Body, s.st.Oversized.Hash = want, body, string(hash)
		s.judgeByOversized(hash)
		return true, nil
	}
	return false, nil
}

// isClean tells that a version is the one last judged, and that nothing of it differed
// from what was authorized. So it is the authorized body, although rules that changed
// since give it another guarded hash.
func (s *step) isClean(full canon.Hash) bool {
	return s.st.FindingsTotal == 0 && string(full) == s.st.Observed.FullHash
}

// withoutOversized is for an object whose authorized body was not kept and is not at
// hand any more: only a trusted writer who makes the object anew, or an accept, helps.
func (s *step) withoutOversized() error {
	s.want, s.st.Body = nil, nil
	if s.st.Observed.UID != "" && s.st.Observed.UID != s.obs.UID {
		w := s.creator()
		switch {
		case s.retry > 0:
			return nil
		case s.trustedAuthor(w):
			if err := s.authorizeCreation(w); err != nil {
				return err
			}
			return s.finish()
		}
	}
	return s.withoutBody(OversizedMessage(s.st.Oversized))
}

// OversizedMessage says that a body is too large to be kept, and names the ways out.
func OversizedMessage(o *v1alpha1.OversizedBody) string {
	return fmt.Sprintf("the authorized body has %d bytes compressed, and a BaselineRevision holds %d. So the body is not kept, and the object is neither judged nor repaired. "+
		"A trusted writer has to make the object smaller, or the guard has to exclude it. Accept the object if another writer changed it meanwhile", o.Size, v1alpha1.MaxBodyBytes)
}
