// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Catalogue holds the resources of all services, and a group for each scope that
// somebody is in.
type Catalogue struct {
	proofs *serve.Proofs
	seed   maphash.Seed

	mu sync.Mutex
	// services are nil before the first look.
	services map[types.NamespacedName][]*ads.Resource
	all      *ads.View
	doubt    Doubt
	groups   map[Scope]*member
	// gone are names that are no longer there, and since when: what was confirmed of
	// them is forgotten when no proxy can ask for it any more.
	gone map[ads.Key]time.Time
}

// member is a group and how many streams are in it.
type member struct {
	group   *serve.Group
	streams int
}

// NewCatalogue has nothing yet.
func NewCatalogue(proofs *serve.Proofs) *Catalogue {
	return &Catalogue{proofs: proofs, seed: maphash.MakeSeed(), groups: map[Scope]*member{}, gone: map[ads.Key]time.Time{}}
}

// Join is the group of a scope, with one stream more.
func (c *Catalogue) Join(s Scope) *serve.Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.groups[s]
	if m == nil {
		m = &member{group: serve.NewGroup(c.view(s))}
		c.groups[s] = m
	}
	m.streams++
	return m.group
}

// Leave is the end of a stream.
func (c *Catalogue) Leave(s Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.groups[s]; m != nil {
		if m.streams--; m.streams == 0 {
			delete(c.groups, s)
		}
	}
}

// view of a scope; nil before the first look.
func (c *Catalogue) view(s Scope) *ads.View {
	if c.services == nil {
		return nil
	}
	var resources []*ads.Resource
	for name, of := range c.services {
		if s.needs(name) {
			resources = append(resources, of...)
		}
	}
	return ads.NewView(resources...)
}

// Publish goes over to a mesh. It is false when that is not believed yet, and to be
// looked at again. The error is about resources that no proxy would take, which are
// left out.
func (c *Catalogue) Publish(mesh ir.Mesh, now time.Time) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, count, err := c.translate(mesh)
	var believed bool
	if c.doubt, believed = c.doubt.Believes(count, c.digest(next)); !believed {
		return false, err
	}
	first := c.services == nil
	changed := differing(c.services, next)
	c.services = next
	c.forget(now)
	for scope, m := range c.groups {
		if first || slices.ContainsFunc(changed, scope.needs) {
			m.group.Publish(c.view(scope))
		}
	}
	return true, err
}

// translate each service by itself, so that one changed service costs little.
func (c *Catalogue) translate(mesh ir.Mesh) (map[types.NamespacedName][]*ads.Resource, int, error) {
	next, count := make(map[types.NamespacedName][]*ads.Resource, len(mesh.Services)), 0
	var errs []error
	for _, s := range mesh.Services {
		resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{s}}, c.all)
		errs = append(errs, err)
		next[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = resources
		count += len(resources)
	}
	return next, count, errors.Join(errs...)
}

// digest is equal for equal resources, in this process.
func (c *Catalogue) digest(services map[types.NamespacedName][]*ads.Resource) (sum uint64) {
	for _, of := range services {
		for _, r := range of {
			sum += maphash.String(c.seed, r.Type.URL()+"\x00"+r.Name+"\x00"+r.Version.String())
		}
	}
	return sum
}

// differing are the services whose resources are not the same ones.
func differing(before, after map[types.NamespacedName][]*ads.Resource) (names []types.NamespacedName) {
	for name, of := range after {
		if was, there := before[name]; !there || !slices.Equal(was, of) {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			names = append(names, name)
		}
	}
	return names
}

// remembered is how long it is known what was confirmed of a name that is gone: longer
// than a proxy keeps a cluster that a route may name.
const remembered = time.Minute

// forget makes the view of all resources anew, and forgets proofs of those that went.
func (c *Catalogue) forget(now time.Time) {
	before := c.all
	c.all = ads.NewView(slices.Concat(slices.Collect(maps.Values(c.services))...)...)
	for _, k := range ads.Diff(before, c.all) {
		if c.all.Get(k.Type, k.Name) == nil {
			c.gone[k] = now
		} else {
			delete(c.gone, k)
		}
	}
	var old []ads.Key
	for k, since := range c.gone {
		if now.Sub(since) >= remembered {
			old = append(old, k)
			delete(c.gone, k)
		}
	}
	c.proofs.Forget(old)
}

// Size is how many services, resources and scopes there are.
func (c *Catalogue) Size() (services, resources, scopes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.services {
		resources += len(of)
	}
	return len(c.services), resources, len(c.groups)
}
