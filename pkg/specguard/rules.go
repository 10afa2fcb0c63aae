// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// Rules are what the guards that select one object say together: the stricter
// always holds. The zero Rules stand for an object that nothing guards.
type Rules struct {
	guards []*Guard
	// vetoing are the guards that select the object and are suspended or inert.
	vetoing  []*Guard
	excluded []canon.Path
	system   System
	// untested are those of both whose label selector could not be tested.
	untested []*Guard
	// exceptions are those of the namespace that are about the object.
	exceptions []*Exception
}

// Empty tells whether no guard selects the object.
func (r Rules) Empty() bool { return len(r.guards) == 0 }

// WithoutUntestedGuards leaves out the guards whose label selector could not be tested.
func (r Rules) WithoutUntestedGuards() Rules {
	if len(r.untested) == 0 {
		return r
	}
	untested := func(g *Guard) bool { return slices.Contains(r.untested, g) }
	r.guards = slices.DeleteFunc(slices.Clone(r.guards), untested)
	r.vetoing = slices.DeleteFunc(slices.Clone(r.vetoing), untested)
	r.excluded, r.untested = commonExclusions(r.guards), nil
	return r
}

// Guards names the guards in force, sorted.
func (r Rules) Guards() []string { return sortedNames(r.guards) }

// ListSelectingGuards names the guards that select the object, sorted, as Baseline.status.guards
// shows them: the suspended guards, too, so that no label that changes meanwhile
// releases the object. Of more than 128 the first are named.
func (r Rules) ListSelectingGuards() []string {
	names := sortedNames(r.guards, r.vetoing)
	return names[:min(len(names), maxGuards)]
}

func sortedNames(lists ...[]*Guard) []string {
	names := []string{}
	for _, guards := range lists {
		for _, g := range guards {
			names = append(names, g.ref.String())
		}
	}
	slices.Sort(names)
	return names
}

// FindInertGuard names a guard that would select the object and does not compile; empty when
// there is none. Nothing is imported then.
func (r Rules) FindInertGuard() string {
	for _, g := range r.vetoing {
		if g.inert {
			return g.ref.String()
		}
	}
	return ""
}

// Mode is Warn if any guard warns or denies: what is refused, the API server
// refuses by itself, and what reaches anybody else is told.
func (r Rules) Mode() v1alpha1.GuardMode {
	for _, g := range r.guards {
		if g.mode == v1alpha1.GuardModeWarn || g.mode == v1alpha1.GuardModeDeny {
			return v1alpha1.GuardModeWarn
		}
	}
	return v1alpha1.GuardModeAudit
}

// Denies tells whether any guard denies.
func (r Rules) Denies() bool {
	return slices.ContainsFunc(r.guards, func(g *Guard) bool { return g.mode == v1alpha1.GuardModeDeny })
}

// Checks are what the guards say about checks and repairs, for [resync.Resolve].
// Whether an object may be repaired they do not decide alone: where they are
// silent, GuardDefaults speak. A SpecGuard is silent under a ClusterSpecGuard: a tenant
// must not keep the platform from repairing what the platform guards.
func (r Rules) Checks() []resync.Guard {
	platform := slices.ContainsFunc(r.guards, func(g *Guard) bool { return g.ref.Namespace == "" })
	checks := make([]resync.Guard, len(r.guards))
	for i, g := range r.guards {
		checks[i] = g.checks
		if platform && g.ref.Namespace != "" {
			checks[i].Period, checks[i].Management = nil, ""
		}
	}
	return checks
}

// AuthenticatedDeletes tells whether any guard demands that the record of a
// DELETE came with the API server's client certificate.
func (r Rules) AuthenticatedDeletes() bool {
	return slices.ContainsFunc(r.guards, func(g *Guard) bool { return g.authenticatedDeletes })
}

// GuardedSince is when the oldest of the guards was created, suspended ones included;
// zero without one.
func (r Rules) GuardedSince() time.Time {
	var since time.Time
	for i, g := range slices.Concat(r.guards, r.vetoing) {
		if i == 0 || g.createdAt.Before(since) {
			since = g.createdAt
		}
	}
	return since
}

// Excluded are the paths that are never compared: those that every guard
// ignores, and the benign ones. The caller must not change the slice.
func (r Rules) Excluded() []canon.Path { return r.excluded }

// excludes tells whether a change at a path is never compared.
func (r Rules) excludes(path canon.Path) bool { return covered(r.excluded, path) }

func covered(by []canon.Path, path canon.Path) bool {
	return slices.ContainsFunc(by, func(p canon.Path) bool { return p.Covers(path) })
}

// commonExclusions are the paths ignored by all guards. Where two guards ignore
// overlapping but different places, only a path that one of them writes and all
// others cover counts; what is lost by that is compared, which is the safe side.
func commonExclusions(guards []*Guard) []canon.Path {
	switch len(guards) {
	case 0:
		return nil
	case 1:
		return guards[0].excluded
	}
	var common []canon.Path
	for _, g := range guards {
		for _, p := range g.ignore {
			everywhere := !slices.ContainsFunc(guards, func(o *Guard) bool { return !covered(o.ignore, p) })
			if everywhere && !slices.ContainsFunc(common, p.Equal) {
				common = append(common, p)
			}
		}
	}
	return append(common, benignPaths...)
}

// ClassifyAt says how a caller stands to a write of one path: Trusted only if
// every guard trusts it, Expected only if every guard trusts or expects it
// there; rule names the expectation. A suspended guard goes on deciding who is
// trusted, and while a guard does not compile nobody is known to be. Nobody but the
// API server's userInfo or a stamp made from it may fill in the identity.
func (r Rules) ClassifyAt(id Identity, path canon.Path) (class v1alpha1.ActorClass, rule string) {
	if id.User == "" || r.Empty() {
		return v1alpha1.ActorUnknown, ""
	}
	class = v1alpha1.ActorTrusted
	for _, g := range r.guards {
		if g.trusted.match(id) {
			continue
		}
		name, ok := r.expects(g, id, path)
		if !ok {
			return r.untrusted(id), ""
		}
		class = v1alpha1.ActorExpected
		if rule == "" {
			rule = name
		}
	}
	if class == v1alpha1.ActorTrusted {
		class = r.vetoed(id)
	}
	return class, rule
}

// vetoed is the class of a caller whom all guards in force trust.
func (r Rules) vetoed(id Identity) v1alpha1.ActorClass {
	for _, g := range r.vetoing {
		switch {
		case g.inert:
			return v1alpha1.ActorUnknown
		case !g.trusted.match(id):
			return r.untrusted(id)
		}
	}
	return v1alpha1.ActorTrusted
}

func (r Rules) untrusted(id Identity) v1alpha1.ActorClass {
	switch {
	case id.User == userGarbageCollector, id.User == userNamespaceController:
		return v1alpha1.ActorSystem
	case r.system.Executor != "" && id.User == r.system.Executor:
		return v1alpha1.ActorSystem
	default:
		return v1alpha1.ActorUntrusted
	}
}

// distrusting are the guards that do not let a caller write one of the paths.
func (r Rules) distrusting(id Identity, paths []canon.Path) []*Guard {
	distrusts := func(g *Guard) bool {
		return !g.trusted.match(id) && slices.ContainsFunc(paths, func(p canon.Path) bool {
			_, expected := r.expects(g, id, p)
			return !expected
		})
	}
	var found []*Guard
	for _, g := range slices.Concat(r.guards, r.vetoing) {
		if distrusts(g) {
			found = append(found, g)
		}
	}
	return found
}

func (g *Guard) expects(id Identity, path canon.Path) (rule string, ok bool) {
	for i := range g.expected {
		if covered(g.expected[i].paths, path) && g.expected[i].writers.match(id) {
			return g.expected[i].name, true
		}
	}
	return "", false
}

// expectedBelow tells whether some rule names a place strictly below path, so
// that a change of the whole must be taken apart before it can be judged.
func (r Rules) expectedBelow(path canon.Path) bool {
	if r.exceptedBelow(path) {
		return true
	}
	for _, g := range r.guards {
		for i := range g.expected {
			for _, p := range g.expected[i].paths {
				if p.Len() > path.Len() && p.Overlaps(path) {
					return true
				}
			}
		}
	}
	return false
}

// excludedBelow tells whether some excluded path lies strictly below path.
func (r Rules) excludedBelow(path canon.Path) bool {
	return slices.ContainsFunc(r.excluded, func(p canon.Path) bool { return p.Len() > path.Len() && p.Overlaps(path) })
}

// keepsRule tells whether an expectation of that name still covers the path, so
// that a mask made under it may stand.
func (r Rules) keepsRule(name string, path canon.Path) bool {
	if r.keepsException(name, path) {
		return true
	}
	for _, g := range r.guards {
		for i := range g.expected {
			if g.expected[i].name == name && covered(g.expected[i].paths, path) {
				return true
			}
		}
	}
	return false
}

// Classify is the least trusted class over the paths of one write; for no path
// it is that of the object as a whole.
func (r Rules) Classify(id Identity, paths []canon.Path) v1alpha1.ActorClass {
	if len(paths) == 0 {
		class, _ := r.ClassifyAt(id, canon.Path{})
		return class
	}
	worst := v1alpha1.ActorTrusted
	for _, p := range paths {
		class, _ := r.ClassifyAt(id, p)
		worst = LeastTrusted(worst, class)
	}
	return worst
}

// LeastTrusted is the class that counts where two claims meet.
func LeastTrusted(a, b v1alpha1.ActorClass) v1alpha1.ActorClass {
	if distrust(b) > distrust(a) {
		return b
	}
	return a
}

func distrust(class v1alpha1.ActorClass) int {
	switch class {
	case v1alpha1.ActorTrusted:
		return 0
	case v1alpha1.ActorSystem:
		return 1
	case v1alpha1.ActorExpected:
		return 2
	case v1alpha1.ActorUnknown:
		return 3
	case v1alpha1.ActorUntrusted:
		return 4
	default:
		return 5
	}
}
