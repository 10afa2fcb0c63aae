// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// patience is how long a router may take to say what it knows, and the API server what
// the ledger says: a release that lost its endpoints meanwhile waits so long.
const patience = 500 * time.Millisecond

// observe asks what has become of what is in force. Of something that is only told
// now nothing can be known yet.
func (r *Reconciler) observe(ctx context.Context, s *subject) error {
	switch {
	case s.decision.After == nil && s.facts.Before != nil: // another release divides the Service
		return s.router.Remove(ctx)
	case s.decision.After == nil || s.decision.Grew:
		return nil
	}
	// The router learns a split at the look after the one that stored it, and the store may be put back between.
	if stored := r.written.sequence(s.release); stored > s.decision.After.Split.Sequence {
		s.facts.Ahead = stored
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A process that has begun to lead tells the router what is in force already.
	split := s.decision.After.Split
	if err := s.router.Apply(ctx, split); err != nil {
		// The observation tells people why the router has not carried the split out.
		r.Log.Info("applying the split failed; retrying", "release", s.release.Namespace+"/"+s.release.Name, "error", err.Error())
		if later := (*traffic.LaterError)(nil); errors.As(err, &later) {
			s.facts.Ahead = traffic.BoundAhead(split.Sequence, later.Sequence)
			return nil
		}
	}
	seen, err := s.router.Observe(ctx)
	if err != nil {
		r.Log.V(1).Info("the state of a split is unknown", "release", s.release.Namespace+"/"+s.release.Name, "error", err.Error())
		return nil
	}
	s.seen, s.facts.Ahead = &seen, traffic.BoundAhead(split.Sequence, seen.Ahead)
	return nil
}

// raise decides once more, above what proxies have, if that is ahead of what is in force: the
// store was put back. Whether it was, or only the cache is behind, the write of the status tells.
func (r *Reconciler) raise(ctx context.Context, s *subject) error {
	if s.facts.Ahead == 0 || s.decision.After == nil || s.facts.Ahead < s.decision.After.Split.Sequence {
		return nil
	}
	r.Log.Info("the effective sequence is raised above that of proxies: was the store restored?", "release", s.release.Namespace+"/"+s.release.Name,
		"effective", s.decision.After.Split.Sequence, "ahead", s.facts.Ahead)
	s.seen = nil
	return r.decide(ctx, s)
}

// standing of what is in force. What is only told now is being acknowledged.
func (s *subject) standing() release.Standing {
	if s.decision.After == nil {
		return release.Unobserved
	}
	if s.seen == nil && s.decision.Grew {
		return release.Acknowledging
	}
	decided := s.now
	if at := s.release.Status.EffectiveTime; at != nil {
		decided = at.Time
	}
	return release.StandingOf(s.seen, s.decision.After.Split.Sequence, s.policy(), decided, s.now)
}

func (s *subject) policy() release.Policy { return release.PolicyOf(s.release.Spec.Acknowledgment) }

// acknowledged says that all that carries out what is in force has said so.
func (s *subject) acknowledged() bool { return s.standing() == release.Acknowledged }
