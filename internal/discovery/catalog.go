// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
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

// Catalog holds the resources of all services, and a group for each scope that
// somebody is in.
type Catalog struct {
	proofs *serve.Proofs
	seed   maphash.Seed
	faces  Faces

	// looking is held by the look that is being published, so that a stream which begins
	// meanwhile does not wait for the translation.
	looking sync.Mutex
	doubt   Doubt
	// gone are names that are no longer there, and since when: what was acknowledged of
	// them is forgotten when no proxy can ask for it any more.
	gone map[ads.Key]time.Time
	// pending are services that were built anew since the last look that was believed; nil for
	// one that is not there any more.
	pending services
	// total is that of services, sequence that of the mesh, and edgeFails that the gateways' own
	// resources could not be made.
	total     total
	sequence  uint64
	edgeFails bool

	// mu is held for as long as the swap takes. The holder of looking may read the fields
	// below without it.
	mu sync.Mutex
	// services are nil before the first look; those of a namespace are in namespaces too, those with
	// hosts in hosted, and those with a split or a route that a decision stands behind in decided.
	services        services
	namespaces      map[string]services
	hosted, decided services
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

// total of services: how many resources they have, and the sum of their digests.
type total struct {
	resources int
	digest    uint64
}

// with an entry in place of another; either may be nil.
func (t total) with(is, was *entry) total {
	if is != nil {
		t.resources, t.digest = t.resources+len(is.resources), t.digest+is.digest
	}
	if was != nil {
		t.resources, t.digest = t.resources-len(was.resources), t.digest-was.digest
	}
	return t
}

// entry is a service and what it was translated to.
type entry struct {
	service   ir.Service
	resources []*ads.Resource
	// incomplete is one of which a resource is left out: that is told whenever it is built anew.
	incomplete bool
	// digest is equal for equal resources, in this process.
	digest uint64
}

// NewCatalog has nothing yet.
func NewCatalog(proofs *serve.Proofs) *Catalog {
	return &Catalog{
		proofs: proofs, seed: maphash.MakeSeed(), groups: map[Scope]*member{}, gone: map[ads.Key]time.Time{},
		namespaces: map[string]services{}, hosted: services{}, decided: services{}, pending: services{}, needs: newNeeds(),
	}
}

// WithFaces has it make listeners of gateways and local ports as they say.
func (c *Catalog) WithFaces(f Faces) *Catalog {
	c.faces = f
	return c
}

// Publish goes over to what has changed of the mesh, of which the first change is all. It is false
// when that is not believed yet, and to be looked at again. The error is about resources that no
// proxy would take, which are left out.
func (c *Catalog) Publish(change ir.Change, now time.Time) (bool, error) {
	c.looking.Lock()
	defer c.looking.Unlock()
	err := c.translate(change.Parts)
	sum := c.total
	for name, e := range c.pending {
		sum = sum.with(e, c.services[name])
	}
	var believed bool
	if c.doubt, believed = c.doubt.Believes(sum.resources, sum.digest, now); !believed {
		return false, err
	}
	next := c.pending
	edge, wrong := c.gateways(next, change.Sequence)
	l := look{before: services{}, after: next, edged: !slices.Equal(c.edge, edge)}
	for name, e := range next {
		was := c.services[name]
		if l.before[name] = was; differing(was, e) {
			l.changed = append(l.changed, name)
		}
	}
	c.note(l.changed, next, edge, now)
	c.forget(now)
	c.pending, c.total, c.sequence, c.edgeFails = services{}, sum, change.Sequence, wrong != nil
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
func (c *Catalog) goOver(l *look, edge []*ads.Resource) map[*member][]types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.services == nil
	if first {
		c.services = services{}
	}
	c.edge = edge
	for name, e := range l.after {
		c.place(name, e)
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

// place a service among all, and among those of its kinds, or take it out if there is none.
func (c *Catalog) place(name types.NamespacedName, e *entry) {
	of := c.namespaces[name.Namespace]
	delete(c.hosted, name)
	delete(c.decided, name)
	if e == nil {
		delete(c.services, name)
		if delete(of, name); len(of) == 0 {
			delete(c.namespaces, name.Namespace)
		}
		return
	}
	if of == nil {
		of = services{}
		c.namespaces[name.Namespace] = of
	}
	c.services[name], of[name] = e, e
	if len(e.service.Hosts) > 0 {
		c.hosted[name] = e
	}
	if e.service.Routing != nil || slices.ContainsFunc(e.resources, decided) {
		c.decided[name] = e
	}
}

// decided says that a resource is a route that a decision stands behind.
func decided(r *ads.Resource) bool { return r.Type == ads.Route && r.Version.Sequence > 0 }

// translate the services of parts into pending, each by itself, and only if it is not what it was.
func (c *Catalog) translate(parts map[types.NamespacedName]ir.Part) error {
	var errs []error
	for name, part := range parts {
		published, pending := c.services[name], c.pending[name]
		switch {
		case published.is(part.Service):
			delete(c.pending, name)
		case part.Service == nil:
			c.pending[name] = nil
		case !pending.is(part.Service):
			e, err := c.entryOf(*part.Service, published)
			errs = append(errs, err)
			c.pending[name] = e
		}
	}
	return errors.Join(errs...)
}

// is says that an entry, which may be nil, is a service as it should be.
func (e *entry) is(s *ir.Service) bool {
	if e == nil || s == nil {
		return e == nil && s == nil
	}
	return !e.incomplete && reflect.DeepEqual(&e.service, s)
}

// entryOf a service, with the resources of the one before that have not changed.
func (c *Catalog) entryOf(s ir.Service, was *entry) (*entry, error) {
	var before *ads.View
	if was != nil {
		before = ads.NewView(was.resources...)
	}
	resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{s}}, before)
	return &entry{s, resources, err != nil, c.digest(resources)}, err
}

// gateways' own resources. They depend on all services that have hosts, and on the sequence.
func (c *Catalog) gateways(next services, sequence uint64) ([]*ads.Resource, error) {
	if c.faces.Gateway == nil {
		return nil, nil
	}
	same := c.services != nil && sequence == c.sequence && !c.edgeFails
	for name, e := range next {
		same = same && c.hosted[name] == nil && (e == nil || len(e.service.Hosts) == 0)
	}
	if same {
		return c.edge, nil
	}
	mesh := ir.Mesh{Sequence: sequence}
	for name, e := range c.hosted {
		if _, changed := next[name]; !changed {
			mesh.Services = append(mesh.Services, e.service)
		}
	}
	for _, e := range next {
		if e != nil && len(e.service.Hosts) > 0 {
			mesh.Services = append(mesh.Services, e.service)
		}
	}
	slices.SortFunc(mesh.Services, func(a, b ir.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return c.faces.Gateway.Resources(mesh, ads.NewView(c.edge...))
}

func (c *Catalog) digest(resources []*ads.Resource) (sum uint64) {
	for _, r := range resources {
		sum += maphash.String(c.seed, r.Type.URL()+"\x00"+r.Name+"\x00"+r.Version.String())
	}
	return sum
}

// differing says that the resources of a service are not the same ones, or that other views have
// them than before. Either may be nil.
func differing(was, is *entry) bool {
	if was == nil || is == nil {
		return was != is
	}
	return was != is && !is.looksLike(was)
}

// looksLike says that all views have the same of it.
func (e *entry) looksLike(was *entry) bool {
	return slices.Equal(was.resources, e.resources) && reflect.DeepEqual(was.service.Export, e.service.Export) &&
		(len(was.service.Hosts) > 0) == (len(e.service.Hosts) > 0)
}

// remembered is how long it is known what was acknowledged of a name that is gone: longer
// than a proxy keeps a cluster that a route may name.
const remembered = time.Minute

// note what goes and what comes back, of the services that change and of gateways.
func (c *Catalog) note(changed []types.NamespacedName, next services, edge []*ads.Resource, now time.Time) {
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

// forget what was acknowledged of names that are gone for long enough.
func (c *Catalog) forget(now time.Time) {
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
func (c *Catalog) Size() (count, resources, scopes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.services {
		resources += len(e.resources)
	}
	return len(c.services), resources, len(c.groups)
}
