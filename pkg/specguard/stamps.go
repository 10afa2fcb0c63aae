// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Stamps says what the writer stamp proves at one observation where a policy
// inside the API server sets it ([StampInProcess]). The zero value: nothing.
// While that policy is away anybody can write the annotation, and the stamp of
// the writer before stays on what somebody else writes. When the policy is made
// anew it is another one, so what was written between the two is told apart.
type Stamps struct {
	// Policy identifies the policy that is in force, read after the observation
	// had arrived; empty when there is none.
	Policy string
	// Since is when Policy was in force at the latest, by the API server's clock.
	Since time.Time
	// Written: the observed version was written while Policy was in force.
	Written bool
	// Confirmed: the observed version was the newest at some time when Policy was
	// in force, so that all later ones are written under it.
	Confirmed bool
}

// stampOfWrite tells whether the stamp was set by the write that was watched.
func (s *step) stampOfWrite() bool {
	return s.in.Config.Stamp == StampWebhook || s.policyStampedWrite()
}

// stampsHold tells whether every write since the object was last looked at was stamped.
// [StampWebhook] claims nothing alone, see proven.
func (s *step) stampsHold() bool {
	return s.in.Config.Stamp == StampWebhook || s.policyHolds()
}

// policyStampedWrite tells whether the policy stamped the write that was watched.
func (s *step) policyStampedWrite() bool {
	return s.policyHolds() || s.in.Stamps.Policy != "" && s.in.Stamps.Written
}

// policyHolds tells whether the policy stamped every write since the object was last
// looked at: it was looked at under the policy that is in force now, or is younger than
// that.
func (s *step) policyHolds() bool {
	in := s.in.Stamps
	return in.Policy != "" && (s.st.Observed.StampPolicy == in.Policy || s.obs.CreatedAt.After(in.Since))
}

// proven tells whether a stamp that was set by a write names its author: the policy set
// it, or the webhook did and there is the record of the same write by the same user.
func (s *step) proven(byPolicy bool, records []int) bool {
	return byPolicy || s.in.Config.Stamp == StampWebhook && s.recordedBy(records, s.obs.Writer)
}

// recordedBy tells whether one of several records of the same write names a user. If the
// API server shows its certificate, all true records have it, so a record without it is
// forged: the guard says so, or a record of this very write does.
func (s *step) recordedBy(records []int, user string) bool {
	authenticated := s.in.Rules.AuthenticatedDeletes() || s.anyAuthenticated(records)
	return slices.ContainsFunc(records, func(i int) bool {
		r := &s.in.Records[i]
		return r.User == user && (r.Authenticated || !authenticated)
	})
}

// stampPolicy is what is remembered of the policy: once an object was looked at
// under it, all later writes are stamped for as long as it is in force.
func (s *step) stampPolicy() string {
	if in := s.in.Stamps; in.Policy != "" && (in.Written || in.Confirmed) {
		return in.Policy
	}
	return s.before.Observed.StampPolicy
}

// stamp is the identity that the stamp of a version names, if any.
func (v *Version) stamp() Identity { return Identity{User: v.Writer, Groups: v.WriterGroups} }

// guessedStamp is the identity of the stamp that was the guess for an unnamed actor, if
// any. It outlives the version that had the stamp.
func guessedStamp(a v1alpha1.Actor) Identity {
	if a.Source != v1alpha1.ActorSourceWriterStamp {
		return Identity{}
	}
	return Identity{User: a.User}
}

// outweighs tells whether the stamp that the webhook left at a write outweighs a record
// of that write. Anybody may have sent a record without the API server's certificate. If
// the webhook stamped a write of the main resource, the stamp names its user. If the
// webhook was away, the writer chose the stamp, so only a user who is at most as trusted
// as that of the record counts.
func (s *step) outweighs(stamp Identity, r *WriteRecord, paths []canon.Path) bool {
	if s.in.Config.Stamp != StampWebhook || stamp.User == "" || stamp.User == r.User || r.Authenticated || r.Subresource != "" {
		return false
	}
	class := s.in.Rules.Classify(stamp, paths)
	return LeastTrusted(class, s.in.Rules.Classify(r.Identity, paths)) == class
}

// dropOutweighed leaves out the records of one write that the stamp of the write outweighs.
func (s *step) dropOutweighed(records []int, stamp Identity, paths []canon.Path) []int {
	return slices.DeleteFunc(records, func(i int) bool { return s.outweighs(stamp, &s.in.Records[i], paths) })
}

func (s *step) anyAuthenticated(records []int) bool {
	return slices.ContainsFunc(records, func(i int) bool { return s.in.Records[i].Authenticated })
}
