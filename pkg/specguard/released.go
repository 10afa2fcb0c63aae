// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Released is what the run of a release may have left in an object, or a plan in a standby. The caller
// vouches for three things: the ReleaseWork that the object's label names exists, it belongs to the
// present run of the release, and no later work of that run was about to write. For a standby the caller
// vouches for the step of the plan that the label names.
type Released struct {
	// Requester is the user who changed the release last, in whose name the run acts.
	Requester Identity
	// Release names the run and the work.
	Release v1alpha1.AuthorizedRelease
	// Standby names the plan whose standby the object is; empty for a run. Its body is the authorized one
	// of another object, so the guards need not trust the requester.
	Standby string
	// Returns says that the work puts back what a run has changed, or leaves a clone without replicas, so that
	// the guards need not trust the requester.
	Returns bool
	// Creates says that the work makes the object, or gives it all of its content.
	Creates bool
	// Bodies computes what the work may leave, best first. authorized is the authorized body of the
	// object, nil without one. The function reads nothing that a tenant writes: each body follows
	// from authorized bodies and from the release.
	Bodies func(authorized []byte) [][]byte
	// Pending says that the state which the work started from is not authorized yet. The assessor
	// may be about to do so.
	Pending bool
}

const (
	// releaseGrace is how long an object waits for the authorized body that it was made from.
	releaseGrace = 5 * time.Second
	// releaseAgain is when an object is looked at again after that.
	releaseAgain = 15 * time.Second
)

// takeReleased authorizes what the run of a release left in the object, and tells whether it did.
// The authorized body becomes the one that the release gives, and never what is observed. So a
// difference that was a finding before stays one.
func (s *step) takeReleased() (taken bool, err error) {
	in := s.in.Released
	if in == nil || s.st.Oversized != nil || !s.trustsRequester(in) {
		return false, nil
	}
	records := slices.Concat(s.lastRecords(), s.createRecords())
	if !s.byExecutor(records) {
		return false, nil
	}
	var authorized []byte
	if s.st.authorizes() {
		authorized = s.st.Body
	}
	for _, body := range in.Bodies(authorized) {
		leaves, err := s.leavesOnly(body)
		if err != nil || !leaves {
			continue // a body that cannot be read is left by no work
		}
		for _, i := range records {
			s.consumed[i] = struct{}{}
		}
		return true, s.authorizeReleased(in, body)
	}
	s.awaitBaseline(in)
	return false, nil
}

// trustsRequester tells whether every guard that selects the object trusts the user in whose name
// the run acts. A standby needs no trust, and neither does a return.
func (s *step) trustsRequester(in *Released) bool {
	class, _ := s.in.Rules.ClassifyAt(in.Requester, canon.Path{})
	return in.Standby != "" || in.Returns || class == v1alpha1.ActorTrusted
}

// byExecutor tells whether the stamp proves that the executor wrote the content last. Of content that was
// judged before, the findings tell what was proven then: a stamp of before the policy proves nothing later.
func (s *step) byExecutor(records []int) bool {
	executor := s.in.Rules.system.Executor
	if executor == "" || s.obs.Writer != executor {
		return false
	}
	if last := &s.st.Observed; last.UID == s.obs.UID && last.FullHash == string(s.full) {
		return slices.ContainsFunc(s.st.Findings, func(f v1alpha1.Finding) bool {
			return f.Actor.User == executor && f.Actor.Class == v1alpha1.ActorSystem
		})
	}
	if s.proven(s.policyHolds() || s.obs.Created && s.policyStampedWrite(), records) {
		return true
	}
	if s.in.Config.Stamp == StampWebhook { // the record that proves the stamp may be on its way
		s.waitUpTo(proofGrace, s.obs.SeenAt)
	}
	return false
}

// leavesOnly tells whether the object is as a body says, but for differences that were findings or
// masks before.
func (s *step) leavesOnly(body []byte) (bool, error) {
	want, err := canon.Parse(body, s.gvk)
	if err != nil {
		return false, fmt.Errorf("reading the result of a release for %s: %w", s.st.Name, err)
	}
	defer want.Release()
	var known map[string]string
	if s.st.authorizes() && s.st.Observed.UID == s.obs.UID {
		if known = s.knownValues(); s.isAuthorized(want) {
			return false, nil // the run changes nothing, so another writer's change is judged as ever
		}
	}
	parts := splitAll(s.gvk, s.in.Rules, diff.Compare(want, s.doc, s.in.Rules.Excluded()...))
	isNew := func(c diff.Change) bool {
		value, is := known[c.Path.String()]
		return !is || !s.comparable(value) || value != s.digest(c.After)
	}
	return !slices.ContainsFunc(parts, isNew), nil
}

// isAuthorized tells whether a body is the authorized one.
func (s *step) isAuthorized(body *canon.Document) bool {
	return string(body.Hash(s.in.Rules.Excluded()...)) == s.st.Authorized.Hash
}

// authorizeReleased makes the body that a release gives the authorized one, in the name of the
// user who asked for it.
func (s *step) authorizeReleased(in *Released, body []byte) error {
	isCreation := in.Creates && (!s.st.authorizes() || s.st.Observed.UID != s.obs.UID)
	origin := v1alpha1.OriginCreated
	if s.st.authorizes() {
		origin = s.st.Authorized.Origin
	}
	if isCreation {
		origin = v1alpha1.OriginCreated
		s.st.Masks, s.st.pending, s.st.Findings, s.st.FindingsTotal = nil, nil, nil, 0
		s.maker = new(actorOf(writer{id: in.Requester, source: v1alpha1.ActorSourceWriterStamp, proven: true}, v1alpha1.ActorTrusted))
		if s.obs.Created {
			s.st.Selection = &v1alpha1.Selection{Labels: boundLabels(s.obs.Labels)}
		}
	}
	if in.Standby == "" && !in.Returns {
		s.release = &in.Release
	}
	err := s.authorize(body, in.Requester.User, origin)
	s.release = nil
	if err != nil {
		return err
	}
	if in.Standby != "" {
		s.tellAuthorized(ReasonAuthorized, "revision %d: made by plan %s as a standby, in the name of %s", s.st.Authorized.Number, in.Standby, in.Requester.User)
		return nil
	}
	verb := "changed"
	switch {
	case in.Returns:
		verb = "back in its former state"
	case isCreation:
		verb = "created"
	}
	s.tellAuthorized(ReasonAuthorized, "revision %d: %s by release %s, run %d, in the name of %s", s.st.Authorized.Number, verb, in.Release.Name, in.Release.Run, in.Requester.User)
	return nil
}

// awaitBaseline has the object looked at again while the state that it was made from is not
// authorized yet.
func (s *step) awaitBaseline(in *Released) {
	if !in.Pending {
		return
	}
	if waited := s.in.Now.Sub(s.obs.SeenAt); !s.obs.SeenAt.IsZero() && waited >= 0 && waited < releaseGrace {
		s.retry = min(releaseGrace-waited, time.Second)
		return
	}
	s.effects = append(s.effects, Recheck{After: releaseAgain})
}

// FindDistrusting names a guard that selects the object and does not trust a user, whatever the path;
// empty if all trust the user. Suspended guards count as well, and a guard that does not compile trusts
// no user.
func (r Rules) FindDistrusting(id Identity) string {
	for _, g := range slices.Concat(r.guards, r.vetoing) {
		if g.inert || !g.trusted.match(id) {
			return g.ref.String()
		}
	}
	return ""
}
