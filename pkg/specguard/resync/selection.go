// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"cmp"
	"slices"
	"time"
)

// Object names a guarded object.
type Object struct {
	Namespace, Name, Kind, APIVersion string
}

// Candidate is an object that may be due.
type Candidate struct {
	Object Object
	// Environment is empty for an object without one.
	Environment string
	// Due is when it is checked next, see [NextCheck]; zero is never.
	Due time.Time
	// Requested: somebody asked for this check, and waits for it. Such checks come
	// before those that nobody waits for.
	Requested bool
	// Settled is what [Settled] says of it.
	Settled Obstacle
	// RecheckInterval is when it is looked at again if it cannot start; 0 or less
	// is [DefaultRecheckInterval].
	RecheckInterval time.Duration
}

// Budget says how much may go on at once among some objects.
type Budget struct {
	// Total counts all guarded objects, those without scheduled checks too: the
	// threshold protects what is shared, the API server.
	Total int
	// Running counts their checks and remediations that have begun and not ended.
	// Count a check before it starts.
	Running int
	// Threshold is the share of Total that may run at once.
	Threshold Percent
}

// Pool is what a selection is made from.
type Pool struct {
	Now        time.Time
	Candidates []Candidate
	// Installation is the budget of everything together.
	Installation Budget
	// MaxConcurrentChecks bounds what runs in the whole installation, whatever
	// the threshold lets; under 1 it counts as 1, for a limit is no switch.
	MaxConcurrentChecks int
	// Environments have budgets of their own where their GuardDefaults say so. A
	// check needs room in both.
	Environments map[string]Budget
}

// Waiting is an object that does not start.
type Waiting struct {
	Object   Object
	Obstacle Obstacle
	// Until is when to look at it again at the latest; when something ends, a new
	// selection may be made before. Zero is: only if something changes.
	Until time.Time
}

// Selection says which checks start.
type Selection struct {
	// Allowed is how much may run at once in the installation.
	Allowed int
	// Start are those that start now, in the order of [Select]. Count them as running
	// before the next selection.
	Start []Object
	// Wait are all others, in the same order.
	Wait []Waiting
}

// Select picks the checks that start now: those that were asked for, then the
// longest due first, and by namespace, name, kind and version among those that are
// due since the same moment, as long as there is room. An object whose Environment
// is full does not hold up those of others.
func Select(p Pool) Selection {
	rooms := newRooms(&p)
	selection := Selection{Allowed: rooms.allowed}
	for _, c := range inOrder(p.Candidates) {
		obstacle := c.obstacle(p.Now)
		if obstacle == ObstacleNone {
			obstacle = rooms.take(c.Environment)
		}
		if obstacle == ObstacleNone {
			selection.Start = append(selection.Start, c.Object)
			continue
		}
		selection.Wait = append(selection.Wait, Waiting{c.Object, obstacle, c.until(obstacle, p.Now)})
	}
	return selection
}

func inOrder(candidates []Candidate) []*Candidate {
	order := make([]*Candidate, len(candidates))
	for i := range candidates {
		order[i] = &candidates[i]
	}
	slices.SortFunc(order, func(a, b *Candidate) int {
		return cmp.Or(compareRequests(a, b), a.Due.Compare(b.Due), compareObjects(a.Object, b.Object))
	})
	return order
}

func compareRequests(a, b *Candidate) int {
	switch {
	case a.Requested == b.Requested:
		return 0
	case a.Requested:
		return -1
	default:
		return 1
	}
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion))
}

func (c *Candidate) obstacle(now time.Time) Obstacle {
	switch {
	case c.Due.IsZero():
		return ObstacleOff
	case c.Due.After(now):
		return ObstacleNotDue
	default:
		return c.Settled
	}
}

func (c *Candidate) until(obstacle Obstacle, now time.Time) time.Time {
	switch obstacle {
	case ObstacleOff, ObstacleNotGuarded:
		return time.Time{}
	case ObstacleNotDue:
		return c.Due
	case ObstacleLagging, ObstacleDeleting, ObstacleClaimed, ObstacleContended, ObstacleBodyLost, ObstacleStateUnknown,
		ObstacleThreshold, ObstacleEnvironmentThreshold, ObstacleNone:
		return now.Add(c.recheckInterval())
	default:
		return now.Add(c.recheckInterval())
	}
}

func (c *Candidate) recheckInterval() time.Duration {
	if c.RecheckInterval <= 0 {
		return DefaultRecheckInterval
	}
	return c.RecheckInterval
}

// rooms is what is left of the budgets. It counts what it gives away, so that
// many objects that are due at once do not all see the same free slot.
type rooms struct {
	allowed      int
	installation int
	environments map[string]int
}

func newRooms(p *Pool) *rooms {
	allowed := min(p.Installation.Threshold.Of(p.Installation.Total), max(p.MaxConcurrentChecks, 1))
	r := &rooms{
		allowed: allowed, installation: allowed - max(p.Installation.Running, 0),
		environments: make(map[string]int, len(p.Environments)),
	}
	for name, b := range p.Environments {
		r.environments[name] = b.Threshold.Of(b.Total) - max(b.Running, 0)
	}
	return r
}

func (r *rooms) take(environment string) Obstacle {
	if r.installation <= 0 {
		return ObstacleThreshold
	}
	left, bounded := r.environments[environment]
	if bounded && left <= 0 {
		return ObstacleEnvironmentThreshold
	}
	r.installation--
	if bounded {
		r.environments[environment] = left - 1
	}
	return ObstacleNone
}
