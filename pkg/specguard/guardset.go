// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// MaxNamespaceGuards is how many SpecGuards of one namespace are in force: each costs
// memory and time of everybody.
const MaxNamespaceGuards = 64

// FindExcessGuards finds the SpecGuards beyond [MaxNamespaceGuards] in their namespaces. Of the
// guards of a namespace, by the times at which they were made, the oldest stay.
func FindExcessGuards(made map[GuardRef]time.Time) map[GuardRef]bool {
	return findExcess(made, MaxNamespaceGuards)
}

// findExcess finds the objects beyond a bound in their namespaces. The oldest stay.
func findExcess(made map[GuardRef]time.Time, bound int) map[GuardRef]bool {
	byNamespace := map[string][]GuardRef{}
	for ref := range made {
		if ref.Namespace != "" {
			byNamespace[ref.Namespace] = append(byNamespace[ref.Namespace], ref)
		}
	}
	excess := map[GuardRef]bool{}
	for _, refs := range byNamespace {
		if len(refs) <= bound {
			continue
		}
		slices.SortFunc(refs, func(a, b GuardRef) int {
			return cmp.Or(made[a].Compare(made[b]), cmp.Compare(a.Name, b.Name))
		})
		for _, ref := range refs[bound:] {
			excess[ref] = true
		}
	}
	return excess
}

// System names the writers that belong to the machinery.
type System struct {
	// Executor is the user name of Plumbline's own executor, empty if there is none.
	Executor string
}

// GuardSet is an immutable snapshot of all guards, indexed by namespace and
// kind. A nil GuardSet is empty.
type GuardSet struct {
	cluster    map[groupKind][]*Guard
	namespaced map[string]map[groupKind][]*Guard
	excluded   map[string]struct{}
	system     System
	resources  []canon.GVK
	guards     []*Guard
	exceptions map[string][]*Exception // by namespace
}

// NewGuardSet indexes guards; nil entries (guards that did not compile) are
// left out. Nothing in excludedNamespaces is ever guarded.
func NewGuardSet(guards []*Guard, excludedNamespaces []string, system System) *GuardSet {
	s := &GuardSet{
		cluster:    map[groupKind][]*Guard{},
		namespaced: map[string]map[groupKind][]*Guard{},
		excluded:   map[string]struct{}{},
		system:     system,
	}
	for _, namespace := range excludedNamespaces {
		s.excluded[namespace] = struct{}{}
	}
	for _, g := range guards {
		if g != nil {
			s.guards = append(s.guards, g)
		}
	}
	// Sorted, so that the rule that is named does not depend on list order.
	slices.SortFunc(s.guards, compareGuards)
	for _, g := range s.guards {
		s.index(g)
	}
	slices.SortFunc(s.resources, compareGVK)
	s.resources = slices.Compact(s.resources)
	return s
}

func (s *GuardSet) index(g *Guard) {
	into := s.cluster
	if g.ref.Namespace != "" {
		if s.namespaced[g.ref.Namespace] == nil {
			s.namespaced[g.ref.Namespace] = map[groupKind][]*Guard{}
		}
		into = s.namespaced[g.ref.Namespace]
	}
	for _, gvk := range g.resources {
		gk := groupKind{gvk.Group, gvk.Kind}
		if !slices.Contains(into[gk], g) {
			into[gk] = append(into[gk], g)
		}
		if !g.inert {
			s.resources = append(s.resources, gvk)
		}
	}
}

// compareGuards sorts ClusterSpecGuards first.
func compareGuards(a, b *Guard) int {
	return cmp.Or(cmp.Compare(a.ref.Namespace, b.ref.Namespace), cmp.Compare(a.ref.Name, b.ref.Name))
}

func compareGVK(a, b canon.GVK) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
}

// Resources are the kinds that some guard names, sorted.
func (s *GuardSet) Resources() []canon.GVK {
	if s == nil {
		return nil
	}
	return slices.Clone(s.resources)
}

// NextExpiry is the earliest end of a suspension or of an exception after now.
func (s *GuardSet) NextExpiry(now time.Time) (next time.Time, ok bool) {
	if s == nil {
		return time.Time{}, false
	}
	for _, g := range s.guards {
		if g.suspended(now) && (!ok || g.suspendedUntil.Before(next)) {
			next, ok = g.suspendedUntil, true
		}
	}
	for _, list := range s.exceptions {
		for _, e := range list {
			if e.until.After(now) && (!ok || e.until.Before(next)) {
				next, ok = e.until, true
			}
		}
	}
	return next, ok
}

// Query asks which rules hold for one object.
type Query struct {
	Namespace string
	// Name selects the exceptions that name objects; without a name none of those applies.
	Name            string
	NamespaceLabels map[string]string
	// GVK is matched by group and kind.
	GVK canon.GVK
	// Labels are those of the old and of the new object: it is guarded if
	// either is selected, for a tenant may take the label off in the same write
	// or in the one before.
	Labels []map[string]string
	// LabelsUnknown stands for writes that do not show the object's labels
	// (/scale). Selectors are then taken to match, and Rules.WithoutUntestedGuards leaves
	// the guards out that have one.
	LabelsUnknown bool
	// Kept is the status of the object's Baseline, nil without one: the guards that
	// selected the object before go on selecting it, whatever its labels are now.
	Kept *v1alpha1.BaselineStatus
	Now  time.Time
}

// Rules are what all guards together say about the object. Suspended guards only
// veto.
func (s *GuardSet) Rules(q Query) Rules {
	if s == nil || has(s.excluded, q.Namespace) {
		return Rules{}
	}
	gk := groupKind{q.GVK.Group, q.GVK.Kind}
	cluster, own := s.cluster[gk], s.namespaced[q.Namespace][gk]
	if len(cluster)+len(own) == 0 {
		return Rules{}
	}
	r := Rules{system: s.system}
	for _, list := range [2][]*Guard{cluster, own} {
		for _, g := range list {
			selected, certain := g.selects(&q)
			switch {
			case !selected:
				continue
			case g.vetoes(q.Now):
				r.vetoing = append(r.vetoing, g)
			default:
				r.guards = append(r.guards, g)
			}
			if !certain {
				r.untested = append(r.untested, g)
			}
		}
	}
	r.excluded = commonExclusions(r.guards)
	for _, e := range s.exceptions[q.Namespace] {
		if e.selects(&q) {
			r.exceptions = append(r.exceptions, e)
		}
	}
	return r
}

func (g *Guard) selects(q *Query) (selected, certain bool) {
	if g.namespaces != nil && !g.namespaces.Matches(labels.Set(q.NamespaceLabels)) {
		return false, false
	}
	if g.selector == nil {
		return true, true
	}
	if q.LabelsUnknown {
		return true, false
	}
	selected = slices.ContainsFunc(q.Labels, g.matchesLabels) || g.keepsObject(q.Kept)
	return selected, selected
}
