// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"errors"
	"hash/maphash"
	"reflect"
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
	faces  Faces

	// looking is held by the look that is being published, so that a stream which begins
	// meanwhile does not wait for the translation.
	looking sync.Mutex
	doubt   Doubt
	// gone are names that are no longer there, and since when: what was confirmed of
	// them is forgotten when no proxy can ask for it any more.
	gone map[ads.Key]time.Time

	// mu is held for as long as the swap takes. The holder of looking may read the fields
	// below without it.
	mu sync.Mutex
	// services are nil before the first look; those of a namespace are in namespaces too.
	services   services
	namespaces map[string]services
	// edge are the gateways' own resources.
	edge   []*ads.Resource
	groups map[Scope]*member
	needs  needs
}

// Faces are where proxies listen, besides the addresses of Services.
type Faces struct {
	// Gateway is nil without gateways.
	Gateway *envoyxds.Gateway
	// Grants give hosts of the gateways to namespaces; none gives any host to any.
	Grants []ir.Grant
	// IPv6 is whether pods have it: local ports are then on both loopback addresses,
	// and otherwise on that of IPv4 alone, since an Envoy refuses a listener on an
	// address that is not there.
	IPv6 bool
}

// services by name.
type services map[types.NamespacedName]*entry

// entry is a service and what it was translated to.
type entry struct {
	service   ir.Service
	resources []*ads.Resource
	// incomplete is one of which a resource is left out: that is told at each look.
	incomplete bool
	// digest is equal for equal resources, in this process.
	digest uint64
}

// NewCatalogue has nothing yet.
func NewCatalogue(proofs *serve.Proofs) *Catalogue {
	return &Catalogue{
		proofs: proofs, seed: maphash.MakeSeed(), groups: map[Scope]*member{}, gone: map[ads.Key]time.Time{},
		namespaces: map[string]services{}, needs: newNeeds(),
	}
}

// WithFaces has it make listeners of gateways and local ports as they say.
func (c *Catalogue) WithFaces(f Faces) *Catalogue {
	c.faces = f
	return c
}

// Publish goes over to a mesh. It is false when that is not believed yet, and to be
// looked at again. The error is about resources that no proxy would take, which are
// left out.
func (c *Catalogue) Publish(mesh ir.Mesh, now time.Time) (bool, error) {
	c.looking.Lock()
	defer c.looking.Unlock()
	next, count, err := c.translate(mesh)
	var believed bool
	if c.doubt, believed = c.doubt.Believes(count, next.digest(), now); !believed {
		return false, err
	}
	edge, wrong := c.gateways(mesh)
	l := look{before: c.services, after: next, edged: !slices.Equal(c.edge, edge), changed: differing(c.services, next)}
	c.note(l.changed, next, edge, now)
	c.forget(now)
	for m, names := range c.goOver(&l, edge) {
		problems := c.renew(m, &l, names)
		c.mu.Lock()
		m.problems = problems
		c.mu.Unlock()
	}
	return true, errors.Join(err, wrong)
}

// goOver swaps the services and the gateways' resources, and finds the groups that need one
// that has changed.
func (c *Catalogue) goOver(l *look, edge []*ads.Resource) map[*member][]types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.services == nil
	c.services, c.edge = l.after, edge
	for _, name := range l.changed {
		c.place(name, l.after[name])
	}
	if !first {
		return c.needs.of(l.changed, l.edged)
	}
	all := make(map[*member][]types.NamespacedName, len(c.groups))
	for _, m := range c.groups {
		all[m] = nil
	}
	return all
}

// place a service among those of its namespace, or take it out if there is none.
func (c *Catalogue) place(name types.NamespacedName, e *entry) {
	of := c.namespaces[name.Namespace]
	switch {
	case e == nil:
		if delete(of, name); len(of) == 0 {
			delete(c.namespaces, name.Namespace)
		}
	case of == nil:
		c.namespaces[name.Namespace] = services{name: e}
	default:
		of[name] = e
	}
}

// translate each service by itself, and only if it is not what it was: of many at most
// a few change between two looks.
func (c *Catalogue) translate(mesh ir.Mesh) (services, int, error) {
	next, count := make(services, len(mesh.Services)), 0
	var errs []error
	for _, s := range mesh.Services {
		name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		e := c.services[name]
		if e == nil || e.incomplete || !reflect.DeepEqual(e.service, s) {
			var before *ads.View
			if e != nil {
				before = ads.NewView(e.resources...)
			}
			resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{s}}, before)
			errs = append(errs, err)
			e = &entry{s, resources, err != nil, c.digest(resources)}
		}
		next[name] = e
		count += len(e.resources)
	}
	return next, count, errors.Join(errs...)
}

// gateways' own resources. They depend on all services that have hosts.
func (c *Catalogue) gateways(mesh ir.Mesh) ([]*ads.Resource, error) {
	if c.faces.Gateway == nil {
		return nil, nil
	}
	return c.faces.Gateway.Resources(mesh, ads.NewView(c.edge...))
}

func (c *Catalogue) digest(resources []*ads.Resource) (sum uint64) {
	for _, r := range resources {
		sum += maphash.String(c.seed, r.Type.URL()+"\x00"+r.Name+"\x00"+r.Version.String())
	}
	return sum
}

func (s services) digest() (sum uint64) {
	for _, e := range s {
		sum += e.digest
	}
	return sum
}

// differing are the services whose resources are not the same ones, or that other views
// have than before.
func differing(before, after services) (names []types.NamespacedName) {
	for name, e := range after {
		if was := before[name]; was == nil || was != e && !e.looksLike(was) {
			names = append(names, name)
		}
	}
	for name := range before {
		if after[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// looksLike says that all views have the same of it.
func (e *entry) looksLike(was *entry) bool {
	return slices.Equal(was.resources, e.resources) && reflect.DeepEqual(was.service.Export, e.service.Export) &&
		(len(was.service.Hosts) > 0) == (len(e.service.Hosts) > 0)
}

// remembered is how long it is known what was confirmed of a name that is gone: longer
// than a proxy keeps a cluster that a route may name.
const remembered = time.Minute

// note what goes and what comes back, of the services that change and of gateways.
func (c *Catalogue) note(changed []types.NamespacedName, next services, edge []*ads.Resource, now time.Time) {
	was, is := slices.Clone(c.edge), slices.Clone(edge)
	for _, name := range changed {
		if e := c.services[name]; e != nil {
			was = append(was, e.resources...)
		}
		if e := next[name]; e != nil {
			is = append(is, e.resources...)
		}
	}
	for _, r := range was {
		c.gone[ads.Key{Type: r.Type, Name: r.Name}] = now
	}
	// An address may go from one service to another.
	for _, r := range is {
		delete(c.gone, ads.Key{Type: r.Type, Name: r.Name})
	}
}

// forget what was confirmed of names that are gone for long enough.
func (c *Catalogue) forget(now time.Time) {
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
func (c *Catalogue) Size() (count, resources, scopes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.services {
		resources += len(e.resources)
	}
	return len(c.services), resources, len(c.groups)
}
