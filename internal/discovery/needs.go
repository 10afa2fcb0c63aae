// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// needs says which groups need a service, without a question to each group.
type needs struct {
	// all need every service: gateways.
	all groupSet
	// whole need all services of a namespace, one those that they name.
	whole map[string]groupSet
	one   map[types.NamespacedName]groupSet
}

type groupSet map[*member]bool

func newNeeds() needs {
	return needs{all: groupSet{}, whole: map[string]groupSet{}, one: map[types.NamespacedName]groupSet{}}
}

func (n *needs) add(m *member) {
	if m.reach.all {
		n.all[m] = true
		return
	}
	namespaces, services := m.reach.parts()
	for _, namespace := range namespaces {
		put(n.whole, namespace, m)
	}
	for _, service := range services {
		put(n.one, service, m)
	}
}

func (n *needs) remove(m *member) {
	delete(n.all, m)
	namespaces, services := m.reach.parts()
	for _, namespace := range namespaces {
		take(n.whole, namespace, m)
	}
	for _, service := range services {
		take(n.one, service, m)
	}
}

func put[K comparable](sets map[K]groupSet, key K, m *member) {
	if sets[key] == nil {
		sets[key] = groupSet{}
	}
	sets[key][m] = true
}

func take[K comparable](sets map[K]groupSet, key K, m *member) {
	if delete(sets[key], m); len(sets[key]) == 0 {
		delete(sets, key)
	}
}

// of finds the groups that need services which have changed, with the names of these, and
// gateways if their own resources have changed.
func (n *needs) of(changed []types.NamespacedName, edged bool) map[*member][]types.NamespacedName {
	found := map[*member][]types.NamespacedName{}
	for _, name := range changed {
		for _, set := range []groupSet{n.all, n.whole[name.Namespace], n.one[name]} {
			for m := range set {
				if of := found[m]; len(of) == 0 || of[len(of)-1] != name { // one may be in two sets
					found[m] = append(of, name)
				}
			}
		}
	}
	if edged {
		for m := range n.all {
			if found[m] == nil {
				found[m] = []types.NamespacedName{}
			}
		}
	}
	return found
}

// parts of a reach that is not everything: whole namespaces, and services.
func (r reach) parts() (namespaces []string, services []types.NamespacedName) {
	if r.namespace != "" {
		namespaces = append(namespaces, r.namespace)
	}
	for _, other := range r.others {
		switch namespace, name, named := strings.Cut(other, "/"); {
		case !named:
		case name == all:
			namespaces = append(namespaces, namespace)
		default:
			services = append(services, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return namespaces, services
}
