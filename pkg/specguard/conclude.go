// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// conclude draws state, events and fights from findings, and remembers what was
// observed.
func (s *step) conclude(hash canon.Hash) {
	wasDrifting, drifts := s.before.FindingsTotal > 0, s.st.FindingsTotal > 0
	s.st.Drift = v1alpha1.StateInSync
	switch {
	case !drifts:
		s.st.FirstSeen = time.Time{}
	case !wasDrifting || s.st.FirstSeen.IsZero():
		s.st.FirstSeen = s.in.Now
		s.st.Drift = v1alpha1.StateDrifted
	default:
		s.st.Drift = v1alpha1.StateDrifted
	}
	if s.st.Oversized != nil { // the next version will have nothing to be compared with
		s.st.Drift = v1alpha1.StateUnknown
	}
	s.tellDrift(wasDrifting, drifts)
	s.countReversal(wasDrifting, drifts)
	s.settleFight()
	s.st.CheckedAt = s.in.Now
	s.observe(hash)
}

func (s *step) observe(hash canon.Hash) {
	s.st.Observed = v1alpha1.ObservedState{
		UID: s.obs.UID, Hash: string(hash), FullHash: string(s.full), Generation: s.obs.Generation,
		ResourceVersion: s.obs.ResourceVersion, Writer: diff.TruncateText(s.obs.Writer, maxIdentityBytes),
		StampPolicy: s.stampPolicy(), Applied: s.obs.Applied.Stamp, Metadata: s.obs.Metadata,
	}
}

// concludeUnchanged is conclude for an object that is in sync as it was.
func (s *step) concludeUnchanged() {
	s.st.Drift, s.st.FirstSeen, s.st.CheckedAt = v1alpha1.StateInSync, time.Time{}, s.in.Now
	s.settleFight()
	s.observe(canon.Hash(s.st.Authorized.Hash))
}

// tellDrift makes one event of all that is new.
func (s *step) tellDrift(wasDrifting, drifts bool) {
	if wasDrifting && !drifts {
		s.event(EventNormal, ReasonDriftResolved, "the object has its authorized content again")
		return
	}
	var fresh []string
	var actor v1alpha1.Actor
	for i := range s.st.Findings {
		f := &s.st.Findings[i]
		if f.Class == v1alpha1.ClassObjectUnexpected { // told when it was found
			continue
		}
		if old := s.previous(f.Path); old != nil && old.Digest == f.Digest {
			continue
		}
		if len(fresh) == 0 || distrust(f.Actor.Class) > distrust(actor.Class) {
			actor = f.Actor
		}
		fresh = append(fresh, f.Path)
	}
	if len(fresh) > 0 {
		s.event(EventWarning, ReasonDriftDetected, "not as authorized: %s, by %s", joinBounded(fresh), nameOf(actor))
	}
}
