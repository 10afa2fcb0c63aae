// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Assignment says which Environment each namespace belongs to.
type Assignment struct {
	owner map[string]*v1alpha1.Environment
	// Share says, by Environment name, what it covers.
	Share map[string]Share
}

// Share is what one Environment covers.
type Share struct {
	// Namespaces that belong to the Environment, sorted.
	Namespaces []string
	// Overlaps are the namespaces it picks together with others, sorted by name.
	Overlaps []Overlap
	// Invalid says why the Environment picks nothing, nil when it is in force.
	Invalid error
}

// Overlap is a namespace that several Environments pick.
type Overlap struct {
	Namespace string
	// Owner is the Environment that the namespace belongs to.
	Owner string
}

// Of returns the Environment that a namespace belongs to, nil when none does.
func (a Assignment) Of(namespace string) *v1alpha1.Environment { return a.owner[namespace] }

// Equals tells whether both give each namespace to an Environment of the same name and
// spec.
func (a Assignment) Equals(b Assignment) bool {
	if len(a.owner) != len(b.owner) {
		return false
	}
	for namespace, e := range a.owner {
		f := b.owner[namespace]
		if f == nil || e.Name != f.Name || !equality.Semantic.DeepEqual(e.Spec, f.Spec) {
			return false
		}
	}
	return true
}

// Assign gives every namespace to the most critical Environment that picks it;
// of equally critical ones to the older, then to the first by name. namespaces
// maps a name to its labels.
func Assign(environments []*v1alpha1.Environment, namespaces map[string]labels.Set) Assignment {
	a := Assignment{owner: map[string]*v1alpha1.Environment{}, Share: map[string]Share{}}
	ranked := slices.SortedFunc(slices.Values(environments), compare)
	selectors := make([]labels.Selector, len(ranked))
	for i, e := range ranked {
		var err error
		selectors[i], err = selector(&e.Spec.NamespaceSelector)
		a.Share[e.Name] = Share{Invalid: err}
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		a.place(namespace, namespaces[namespace], ranked, selectors)
	}
	return a
}

func (a *Assignment) place(namespace string, set labels.Set, ranked []*v1alpha1.Environment, selectors []labels.Selector) {
	var picked []*v1alpha1.Environment
	for i, e := range ranked {
		if selectors[i].Matches(set) {
			picked = append(picked, e)
		}
	}
	if len(picked) == 0 {
		return
	}
	owner := picked[0]
	a.owner[namespace] = owner
	for _, e := range picked {
		share := a.Share[e.Name]
		if e == owner {
			share.Namespaces = append(share.Namespaces, namespace)
		}
		if len(picked) > 1 {
			share.Overlaps = append(share.Overlaps, Overlap{Namespace: namespace, Owner: owner.Name})
		}
		a.Share[e.Name] = share
	}
}

// selector refuses what matches everything: admission does so too, but what is
// stored all the same must be inert.
func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return labels.Nothing(), errors.New("spec.namespaceSelector: an empty selector picks every namespace")
	}
	compiled, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing(), fmt.Errorf("spec.namespaceSelector: %w", err)
	}
	return compiled, nil
}

// compare ranks by criticality, then age, then name.
func compare(a, b *v1alpha1.Environment) int {
	return cmp.Or(
		cmp.Compare(rank(b.Spec.Criticality), rank(a.Spec.Criticality)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// rank orders criticalities; an unknown one counts as the mildest, because the
// schema refuses it and what is stored all the same must not raise alarm.
func rank(c v1alpha1.Criticality) int {
	switch c {
	case v1alpha1.CriticalityProduction:
		return 3
	case v1alpha1.CriticalityStaging:
		return 2
	case v1alpha1.CriticalityDevelopment:
		return 1
	case v1alpha1.CriticalityOther:
		return 0
	}
	return 0
}
