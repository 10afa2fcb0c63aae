// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Bounds of a Selection, which a tenant's labels and SpecGuards fill.
const (
	maxSelectionLabels = 256
	maxSelectionBytes  = 16 << 10
	// maxOwnLabelBytes bounds the labels that guards remember beside the common ones,
	// all guards together. ClusterSpecGuards come first.
	maxOwnLabelBytes = 32 << 10
	// maxOwnSetBytes is up to which size a guard remembers labels that its selector
	// does not name: an edit may ask for those.
	maxOwnSetBytes = 1 << 10
)

// matchesLabels tells whether the guard's selector matches a set of labels.
func (g *Guard) matchesLabels(set map[string]string) bool {
	return g.selector == nil || g.selector.Matches(labels.Set(set))
}

// keepsObject tells whether the guard goes on selecting an object because of the
// selection in the object's Baseline. A Baseline from before there were selections knows the
// guard by name alone.
func (g *Guard) keepsObject(status *v1alpha1.BaselineStatus) bool {
	if status == nil {
		return false
	}
	if status.Selection == nil {
		return slices.Contains(status.Guards, g.ref.String())
	}
	known := g.findRemembered(status.Selection)
	return known != nil && (g.matchesLabels(status.Selection.Labels) || known.Labels != nil && g.matchesLabels(known.Labels))
}

// findRemembered finds the guard in a selection; nil when it is not there. A guard whose
// uid is not known is in none.
func (g *Guard) findRemembered(s *v1alpha1.Selection) *v1alpha1.SelectingGuard {
	if s == nil || g.uid == "" {
		return nil
	}
	for i := range s.Guards {
		if s.Guards[i].UID == g.uid {
			return &s.Guards[i]
		}
	}
	return nil
}

// rememberSelection notes by which labels the guards select the object.
func (s *step) rememberSelection(seen map[string]string) {
	if !s.in.Rules.Empty() {
		s.st.Selection = s.in.Rules.nextSelection(s.st.Selection, seen)
	}
}

// lastLabels are those of the object when it was last seen.
func lastLabels(o v1alpha1.ObservedState) map[string]string {
	if o.Metadata == nil {
		return nil
	}
	return o.Metadata.Labels
}

// nextSelection returns the selection of the Baseline after an object was seen with a set
// of labels: the guards that select the object, each with its labels. A nil selection
// stands for an object that is seen for the first time, or was only known by the
// names of its guards.
func (r Rules) nextSelection(before *v1alpha1.Selection, seen map[string]string) *v1alpha1.Selection {
	next := &v1alpha1.Selection{}
	if before == nil {
		next.Labels = boundLabels(seen)
	} else {
		next.Labels = before.Labels
	}
	var own []ownLabels
	for _, g := range r.clusterGuardsFirst() {
		if g.uid == "" || len(own) == maxGuards {
			continue
		}
		if labels, selects := g.ownLabels(before, next.Labels, seen); selects {
			own = append(own, ownLabels{g, labels})
		}
	}
	next.Guards = boundOwnLabels(own)
	return next
}

// ownLabels are the labels that a guard remembers beside the common ones.
type ownLabels struct {
	guard  *Guard
	labels map[string]string
}

// boundOwnLabels leaves out labels that no selector names, as soon as there is no room
// for them. Each guard first gets the labels that its selector names, so that labels of
// a tenant displace none of these.
func boundOwnLabels(all []ownLabels) []v1alpha1.SelectingGuard {
	guards := make([]v1alpha1.SelectingGuard, len(all))
	room := maxOwnLabelBytes
	for i, own := range all {
		guards[i].UID = own.guard.uid
		if named := own.guard.namedLabels(own.labels); sizeOf(named) <= room {
			guards[i].Labels = named
			room -= sizeOf(named)
		}
	}
	for i, own := range all {
		if further := sizeOf(own.labels) - sizeOf(guards[i].Labels); guards[i].Labels != nil && further <= room {
			guards[i].Labels = own.labels
			room -= further
		}
	}
	return guards
}

func (r Rules) clusterGuardsFirst() []*Guard {
	all := slices.Concat(r.guards, r.vetoing)
	slices.SortFunc(all, compareGuards)
	return all
}

// ownLabels are the labels that a guard has to remember beside the common ones; nil
// when the common ones are enough.
func (g *Guard) ownLabels(before *v1alpha1.Selection, common, seen map[string]string) (own map[string]string, selects bool) {
	var former map[string]string
	if known := g.findRemembered(before); known != nil {
		former = known.Labels
	}
	switch {
	case g.selector == nil: // perhaps for a moment: an edit, or a selector that does not compile
		return former, true
	case g.matchesLabels(common):
		return nil, true
	case former != nil && g.matchesLabels(former):
		return g.boundOwn(former), true
	case g.matchesLabels(seen):
		return g.boundOwn(seen), true
	case before == nil: // the guard was known by name: the label was taken off before
		return g.boundOwn(g.impliedLabels(seen)), true
	default:
		return nil, false
	}
}

// boundOwn keeps of a large set only the labels that the guard's selector names.
func (g *Guard) boundOwn(set map[string]string) map[string]string {
	if sizeOf(set) > maxOwnSetBytes {
		return g.namedLabels(set)
	}
	own := map[string]string{}
	maps.Copy(own, set)
	return own
}

// namedLabels keeps the labels that the guard's selector names, which decide alone
// whether the selector matches. A guard whose selector does not compile keeps the set.
func (g *Guard) namedLabels(set map[string]string) map[string]string {
	if set == nil || g.selector == nil {
		return set
	}
	named := map[string]string{}
	for _, r := range g.requirements() {
		if value, ok := set[r.Key()]; ok {
			named[r.Key()] = value
		}
	}
	return named
}

func (g *Guard) requirements() labels.Requirements {
	requirements, _ := g.selector.Requirements()
	return requirements
}

// impliedLabels are labels that the guard's selector matches, as near as possible to a
// set that it does not match.
func (g *Guard) impliedLabels(set map[string]string) map[string]string {
	implied := map[string]string{}
	maps.Copy(implied, set)
	for _, r := range g.requirements() {
		if r.Matches(labels.Set(implied)) {
			continue
		}
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			implied[r.Key()] = slices.Min(r.ValuesUnsorted())
		case selection.Exists:
			implied[r.Key()] = ""
		case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
			delete(implied, r.Key())
		case selection.GreaterThan, selection.LessThan: // no LabelSelector has them
		}
	}
	return implied
}

// moveLabels applies the label changes of one write by a trusted writer, so that they
// may release the object.
func moveLabels(s *v1alpha1.Selection, before, after map[string]string) *v1alpha1.Selection {
	if s == nil || maps.Equal(before, after) {
		return s
	}
	moved := &v1alpha1.Selection{Labels: moveSet(s.Labels, before, after), Guards: slices.Clone(s.Guards)}
	for i := range moved.Guards {
		if own := moved.Guards[i].Labels; own != nil {
			moved.Guards[i].Labels = moveSet(own, before, after)
		}
	}
	return moved
}

func moveSet(set, before, after map[string]string) map[string]string {
	moved := map[string]string{}
	maps.Copy(moved, set)
	for key := range before {
		if _, stays := after[key]; !stays {
			delete(moved, key)
		}
	}
	for key, value := range after {
		if was, ok := before[key]; !ok || was != value {
			moved[key] = value
		}
	}
	return boundLabels(moved)
}

// boundLabels keeps the first labels of too many. A guard that asks for another label
// remembers that label itself.
func boundLabels(set map[string]string) map[string]string {
	if len(set) <= maxSelectionLabels && sizeOf(set) <= maxSelectionBytes {
		return maps.Clone(set)
	}
	bounded, size := map[string]string{}, 0
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if size += len(key) + len(set[key]); len(bounded) == maxSelectionLabels || size > maxSelectionBytes {
			break
		}
		bounded[key] = set[key]
	}
	return bounded
}

// sizeOf measures a set as JSON, which has six more bytes for each label.
func sizeOf(set map[string]string) int {
	size := 0
	for key, value := range set {
		size += len(key) + len(value) + len(`"":"",`)
	}
	return size
}
