// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// adoptNulls takes the nulls of a custom object into an authorized body that was stored
// by an earlier version, which dropped nulls. The hash of such a body is of pl1. An
// object that was written since it was last seen keeps its nulls as differences, because
// that write may have added them.
func (s *step) adoptNulls() error {
	if s.gvk.Algorithm() != canon.PL2 || canon.Hash(s.st.Authorized.Hash).Algorithm() != canon.PL1 ||
		s.doc == nil || s.st.Oversized != nil || !s.unwritten() {
		return nil
	}
	nulls := slices.DeleteFunc(diff.Compare(s.want, s.doc), func(c diff.Change) bool { return !c.NullsOnly() })
	if len(nulls) == 0 {
		return nil
	}
	out, _, err := diff.Apply(s.st.Body, s.gvk, nulls)
	if err != nil {
		return fmt.Errorf("taking over the nulls of %s: %w", s.st.Name, err)
	}
	if err := s.authorize(out, s.st.Authorized.By, s.st.Authorized.Origin); err != nil {
		return err
	}
	s.tellAuthorized(ReasonAuthorized, "revision %d: an earlier version did not compare the nulls at %s",
		s.st.Authorized.Number, listPaths(nulls, nil))
	return nil
}

// unwritten tells whether the object provably has the content with which it was last seen.
func (s *step) unwritten() bool {
	last := &s.st.Observed
	return last.UID == s.obs.UID && last.ResourceVersion != "" && last.ResourceVersion == s.obs.ResourceVersion || s.generationStays()
}
