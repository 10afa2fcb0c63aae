// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Resources are those of a mesh. One whose version before has is taken from there and
// not made again, so that equal pointers mean that nothing has changed; before may be
// nil. A resource that Envoy would refuse is left out, and the error says which.
// Services do not depend on each other: a mesh of only those that have changed gives
// what of theirs has.
func Resources(mesh ir.Mesh, before *ads.View) ([]*ads.Resource, error) {
	t := translation{before: before}
	for _, s := range mesh.Services {
		for _, p := range s.Ports {
			if p.Protocol != ir.TCP {
				t.port(s, p)
			}
		}
	}
	return t.resources, errors.Join(t.errs...)
}

// translation collects resources.
type translation struct {
	before    *ads.View
	resources []*ads.Resource
	errs      []error
}

func (t *translation) port(s ir.Service, p ir.Port) {
	to := connectionsOf(s.Settings, p.Protocol)
	for _, slot := range p.Slots {
		names := []envoyname.Slot{slotOf(s, p, slot.Variation)}
		if forces(s.Routing) {
			forced := names[0]
			forced.Forced = true
			names = append(names, forced)
		}
		for _, n := range names {
			name, of := n.String(), destinationsOf(s, p, slot, n.Forced)
			t.add(ads.Cluster, name, to.digest, func() message { return cluster(name, to) })
			t.add(ads.Endpoints, name, of.digest, func() message { return of.assignment(name) })
		}
	}
	t.route(s, p)
	for _, a := range s.Addresses {
		at := virtual(a, s, p)
		t.add(ads.Listener, at.String(), at.digest, func() message { return at.listener() })
	}
}

// forces says whether requests can be forced to a variation.
func forces(r *traffic.Routing) bool {
	return r != nil && (r.Override != "" || len(r.Match.Values) > 0)
}

func (t *translation) route(s ir.Service, p ir.Port) {
	r := routeOf(s, p)
	d := digestOf(ads.Route, r.name)
	r.digest(d)
	made := &ads.Resource{Type: ads.Route, Name: r.name, Version: d.version(s.Sequence), Clusters: r.clusters()}
	t.keep(made, func() message { return r.configuration() })
}

// add makes a resource that no release decides about.
func (t *translation) add(kind ads.Type, name string, parts func(*digest), build func() message) {
	d := digestOf(kind, name)
	parts(d)
	t.keep(&ads.Resource{Type: kind, Name: name, Version: d.version(0)}, build)
}

func (t *translation) keep(r *ads.Resource, build func() message) {
	if old := t.before.Get(r.Type, r.Name); old != nil && old.Version == r.Version {
		t.resources = append(t.resources, old)
		return
	}
	body, err := encode(build())
	if err != nil {
		t.errs = append(t.errs, fmt.Errorf("translating %s %s: %w", r.Type, r.Name, err))
		return
	}
	r.Body = body
	t.resources = append(t.resources, r)
}

// LocalListener is [Local] as it is sent. Like [Resources] it takes from before what
// has not changed.
func LocalListener(s ir.Service, p ir.Port, at netip.AddrPort, before *ads.View) (*ads.Resource, error) {
	t := translation{before: before}
	t.add(ads.Listener, at.String(), func(d *digest) { local(s, p, at).digest(d); d.add("bound") }, func() message { return Local(s, p, at) })
	if len(t.errs) > 0 {
		return nil, errors.Join(t.errs...)
	}
	return t.resources[0], nil
}

// Missing is what a proxy gets that asks for something which is not there: no
// endpoints, or a route that answers 503. It is nil for clusters and listeners, of
// which none is an answer as well.
func Missing(key ads.Key) *ads.Resource {
	var m message
	switch key.Type {
	case ads.Endpoints:
		m = destinations{}.assignment(key.Name)
	case ads.Route:
		m = unavailable(key.Name)
	default:
		return nil
	}
	d := digestOf(key.Type, key.Name)
	d.add("missing")
	body, err := encode(m)
	if err != nil {
		return nil
	}
	return &ads.Resource{Type: key.Type, Name: key.Name, Version: d.version(0), Body: body}
}

// distinct sorts names and has each once.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
