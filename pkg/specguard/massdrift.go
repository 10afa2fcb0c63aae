// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The mass-drift freeze: when so much of a scope drifts at once, one cause is
// likelier than many (a default that an upgrade added, a guard that was changed),
// and correcting would make one mistake many times. As kube's node lifecycle
// controller stops evicting when most of a zone looks dead.
//
// A scope is a namespace, or the drift by one cause in several namespaces. So the
// drift of one namespace freezes nothing in another.
const (
	// MassDriftWindow is "at once": drift first seen within it counts.
	MassDriftWindow = 10 * time.Minute

	// maxFrozenNamespaces and maxFrozenCauses bound a Freeze. Beyond them
	// everything is frozen, because some frozen scopes are no longer named.
	maxFrozenNamespaces = 128
	maxFrozenCauses     = 16
)

// share is a part of a scope: at least percent of it, and at least objects.
type share struct{ percent, objects int }

var (
	// beginShare begins a freeze.
	beginShare = share{percent: 30, objects: 3}
	// holdShare keeps a freeze; half of beginShare, against flapping.
	holdShare = share{percent: 15, objects: 2}
)

func (s share) reached(objects, drifted int) bool {
	return drifted >= s.objects && drifted*100 >= objects*s.percent
}

// Freeze lists the scopes that a guard leaves to people, each with its beginning.
type Freeze struct {
	// Everything that the guard selects is frozen since then; zero when it is not.
	Everything time.Time
	// Namespaces in which much drifts, by whatever causes.
	Namespaces map[string]time.Time
	// Causes by which much drifts in several namespaces.
	Causes map[Cause]time.Time
}

// HasScopes tells whether anything is frozen.
func (f Freeze) HasScopes() bool {
	return !f.Everything.IsZero() || len(f.Namespaces) > 0 || len(f.Causes) > 0
}

// HoldsObject tells whether an object in a namespace, drifting by these causes, is frozen.
func (f Freeze) HoldsObject(namespace string, causes Causes) bool {
	_, held := f.Namespaces[namespace]
	for cause := range causes {
		_, common := f.Causes[cause]
		held = held || common
	}
	return held || !f.Everything.IsZero()
}

// MayHoldObject is HoldsObject for a drift of which only the paths and the users are known, and
// not their pairs. Without users, each user may be one of them.
func (f Freeze) MayHoldObject(namespace string, paths, users []string) bool {
	may := Causes{}
	for cause, since := range f.Causes {
		by := cause.User == "" || len(users) == 0 || slices.Contains(users, cause.User)
		at := cause.Path == "" || slices.ContainsFunc(paths, func(path string) bool { return withoutKeys(path) == cause.Path })
		if by && at {
			may[cause] = since
		}
	}
	return f.HoldsObject(namespace, may)
}

// NextFreeze decides the freeze that follows another one. A freeze begins by drift
// that was first seen within MassDriftWindow. A freeze ends when little is left of
// that drift and of later drift; earlier drift does not prolong the freeze.
func NextFreeze(before Freeze, p Population, now time.Time) Freeze {
	var next Freeze
	for namespace, seen := range p.byNamespace() {
		since := frozenSince(cmp.Or(before.Namespaces[namespace], before.Everything), now, func(s share, from time.Time) bool {
			return s.reached(p.Objects[namespace], countFrom(seen, from))
		})
		next.Namespaces = addScope(next.Namespaces, namespace, since)
	}
	all := p.total()
	for cause, places := range p.byCause() {
		since := frozenSince(cmp.Or(before.Causes[cause], before.Everything), now, func(s share, from time.Time) bool {
			return p.isCommon(s, all, places, from)
		})
		next.Causes = addScope(next.Causes, cause, since)
	}
	if len(next.Namespaces) > maxFrozenNamespaces || len(next.Causes) > maxFrozenCauses {
		next.Everything = cmp.Or(before.Everything, now)
		next.Namespaces = keepOldest(next.Namespaces, maxFrozenNamespaces, cmp.Compare[string])
		next.Causes = keepOldest(next.Causes, maxFrozenCauses, Cause.compare)
	}
	return next
}

// frozenSince decides when the freeze of one scope began: zero when there is none.
func frozenSince(since, now time.Time, reached func(s share, from time.Time) bool) time.Time {
	switch {
	case since.IsZero():
		if reached(beginShare, now.Add(-MassDriftWindow)) {
			return now
		}
	case since.After(now): // the clock was put back
		return frozenSince(now, now, reached)
	case reached(holdShare, since.Add(-MassDriftWindow)):
		return since
	}
	return time.Time{}
}

func addScope[K comparable](frozen map[K]time.Time, scope K, since time.Time) map[K]time.Time {
	if since.IsZero() {
		return frozen
	}
	if frozen == nil {
		frozen = map[K]time.Time{}
	}
	frozen[scope] = since
	return frozen
}

func keepOldest[K comparable](frozen map[K]time.Time, most int, compare func(a, b K) int) map[K]time.Time {
	if len(frozen) <= most {
		return frozen
	}
	order := slices.SortedFunc(maps.Keys(frozen), func(a, b K) int {
		return cmp.Or(frozen[a].Compare(frozen[b]), compare(a, b))
	})
	for _, scope := range order[most:] {
		delete(frozen, scope)
	}
	return frozen
}

// SubtractScopes lists the scopes of a Freeze that another one lacks.
func (f Freeze) SubtractScopes(other Freeze) Freeze {
	rest := Freeze{Namespaces: missingFrom(f.Namespaces, other.Namespaces), Causes: missingFrom(f.Causes, other.Causes)}
	if other.Everything.IsZero() {
		rest.Everything = f.Everything
	}
	return rest
}

func missingFrom[K comparable](all, some map[K]time.Time) map[K]time.Time {
	rest := maps.Clone(all)
	maps.DeleteFunc(rest, func(scope K, _ time.Time) bool {
		_, there := some[scope]
		return there
	})
	return rest
}
