// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Service as it was published last; false if it is not managed.
func (c *Catalog) Service(name types.NamespacedName) (ir.Service, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.services[name]
	if e == nil {
		return ir.Service{}, false
	}
	return e.service, true
}

// Edge are the routes of gateways, and their sequence.
func (c *Catalog) Edge() (routes []string, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.edge {
		if r.Type == ads.Route {
			routes, sequence = append(routes, r.Name), max(sequence, r.Version.Sequence)
		}
	}
	return routes, sequence
}

// Newest are the versions of all routes that somebody has decided about.
func (c *Catalog) Newest() map[string]ads.Version {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := map[string]ads.Version{}
	add := func(resources []*ads.Resource) {
		for _, r := range resources {
			if decided(r) {
				newest[r.Name] = r.Version
			}
		}
	}
	add(c.edge)
	for _, e := range c.decided {
		add(e.resources)
	}
	return newest
}

// Divided are the services with a split.
func (c *Catalog) Divided() (names []types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, e := range c.decided {
		if e.service.Routing != nil {
			names = append(names, name)
		}
	}
	return names
}

// Versions are those of the routes of a service, and of gateways, as they are published now.
func (c *Catalog) Versions(name types.NamespacedName) map[string]ads.Version {
	c.mu.Lock()
	defer c.mu.Unlock()
	versions := map[string]ads.Version{}
	resources := c.edge
	if e := c.services[name]; e != nil {
		resources = slices.Concat(resources, e.resources)
	}
	for _, r := range resources {
		if r.Type == ads.Route {
			versions[r.Name] = r.Version
		}
	}
	return versions
}
