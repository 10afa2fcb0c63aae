// SPDX-License-Identifier: Apache-2.0

package release

import (
	"reflect"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Facts are what is known when it is decided.
type Facts struct {
	// Terms of the spec; nil if it cannot be in force.
	Terms *Terms
	// Before is what is in force; nil if nothing is.
	Before *State
	// Ready counts the ready endpoints of each variation; nil if nothing is known, and
	// then nothing is clamped that was not.
	Ready map[string]int
	// LabeledSince is when the Service was given the label by which proxies know it; zero
	// if it has none.
	LabeledSince time.Time
	// Refused says that proxies leave the Service alone, although it is to be divided.
	Refused bool
	// Floor is what the next sequence is above: the last one of the Service before this release, or one that the store
	// has lost.
	Floor uint64
	// Ahead is the highest sequence that proxies have, if it is not below the one in force: the
	// store was put back, and no proxy goes back. 0 if none is.
	Ahead uint64
	// Prepares has each decision take the sequence of its rollback as well: a run is under way.
	Prepares bool
	Now      time.Time
}

// Decision is what follows from them.
type Decision struct {
	// After is what is to be in force; nil if nothing is.
	After *State
	// Grew says that the sequence did.
	Grew   bool
	Events []Event
	// Again is when time alone changes something; zero if it does not.
	Again time.Time
}

// Decide says what is in force now. Without terms it is what was, but for the
// endpoints that come and go.
func Decide(f Facts) Decision {
	next, moved := f.wanted()
	if next == nil {
		return Decision{}
	}
	f.clamp(next)
	next.ManagedSince = f.managedSince()
	d := Decision{After: next, Grew: f.number(next)}
	d.Again = traffic.NextReturn(next.Clamped)
	d.Events = events(f.Before, next, moved)
	return d
}

// wanted is what would be in force if all endpoints were ready; nil if nothing.
func (f Facts) wanted() (next *State, moved bool) {
	switch {
	case f.Terms != nil:
		next = &State{Generation: f.Terms.Generation, Split: f.Terms.Split}
		var before traffic.Shares
		if f.Before != nil {
			before = f.Before.ranges()
		}
		next.Wanted, moved = traffic.Reserve(f.Terms.Wishes, before)
	case f.Before != nil:
		next = &State{Generation: f.Before.Generation, Split: f.Before.Split, Wanted: f.Before.Wanted}
	default:
		return nil, false
	}
	if f.Before != nil {
		next.Split.Sequence = f.Before.Split.Sequence
	}
	return next, moved
}

// refusedAgain is how often it is stored that a Service is still refused.
const refusedAgain = time.Minute

// managedSince is when proxies were first told of the Service: by the label, or by the
// first decision. It stays, unless proxies leave the Service alone: then it follows the
// time, a minute behind at most.
func (f Facts) managedSince() time.Time {
	now := f.Now.Truncate(time.Second)
	switch {
	case f.Before != nil && f.Refused && now.Sub(f.Before.ManagedSince) >= refusedAgain:
		return now
	case f.Before != nil:
		return f.Before.ManagedSince
	case !f.LabeledSince.IsZero() && f.LabeledSince.Before(now):
		return f.LabeledSince.Truncate(time.Second)
	}
	return now
}

// ranges are those in force, with the weights that visitors see.
func (s *State) ranges() traffic.Shares { return s.Split.Shares }

// clamp gives the shares of variations without endpoints to the stable one.
func (f Facts) clamp(next *State) {
	var before []traffic.Clamped
	if f.Before != nil {
		before = slices.DeleteFunc(slices.Clone(f.Before.Clamped), func(c traffic.Clamped) bool {
			return !slices.ContainsFunc(next.Wanted[1:], func(s traffic.Share) bool { return s.Variation == c.Variation })
		})
	}
	next.Split.Shares, next.Clamped = traffic.Clamp(next.Wanted, f.Ready, before, f.Now.Truncate(time.Second))
}

// differs says whether requests go elsewhere, or may.
func differs(before, next traffic.Split) bool {
	next.Sequence, next.Created = before.Sequence, before.Created
	return !reflect.DeepEqual(normal(before), normal(next))
}

// normal makes equal what means the same.
func normal(s traffic.Split) traffic.Split {
	if len(s.Match.Values) == 0 {
		s.Match.Values = nil
	}
	return s
}

// Prospect is what would be in force if all endpoints were ready, to see which are;
// false if nothing would be.
func (f Facts) Prospect() (traffic.Split, bool) {
	next, _ := f.wanted()
	if next == nil {
		return traffic.Split{}, false
	}
	return next.asWanted(), true
}
