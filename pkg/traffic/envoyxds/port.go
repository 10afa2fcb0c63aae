// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Port is what the resources of one port of a Service say to a proxy that is no Envoy.
type Port struct {
	Namespace, Service string
	Number             uint16
	// Sequence of the last decision about the Service.
	Sequence uint64
	// Unavailable says that nothing is known of the Service: each request is answered with 503, and
	// all below is zero.
	Unavailable bool
	Protocol    ir.Protocol
	// Connect bounds an attempt to connect to an endpoint, Idle the time of a connection without a
	// request, and Request a request with its retries; a Request of 0 is no bound.
	Connect, Idle, Request time.Duration
	// RetriesOff says that no request is sent a second time.
	RetriesOff bool
	// Division is nil of a Service that no split divides.
	Division *Division
	// Arms are in the order of the names of their clusters. Without a division there is one.
	Arms []Arm
}

// Arm is a destination of requests.
type Arm struct {
	// Variation is "" of a Service that no split divides.
	Variation string
	// Forced says that only requests come here which a header sends here.
	Forced bool
	// Own are the addresses of endpoints, and Failover those of the stable variation, for requests
	// while no own endpoint can be reached.
	Own, Failover []netip.AddrPort
}

// Refusal says why a resource is not carried out.
type Refusal struct {
	Key ads.Key
	Err error
}

// IncompleteError says that a resource of a port waits for another one, which is on its way.
type IncompleteError struct{ Why string }

func (e *IncompleteError) Error() string { return e.Why }

// ReadPorts is the inverse of [Resources] and [Missing] for a proxy that is no Envoy. A port is in
// the result if its route and all its clusters and endpoints are read; otherwise the first resource
// of its that is not is refused. Listeners are not looked at, and neither are clusters without route.
func ReadPorts(v *ads.View) (ports []Port, refused []Refusal) {
	clusters := clustersByPort(v)
	for _, name := range v.Names(ads.Route) {
		p, key, err := readPort(v, v.Get(ads.Route, name), clusters[name])
		if err != nil {
			refused = append(refused, Refusal{key, err})
			continue
		}
		ports = append(ports, p)
	}
	return ports, refused
}

// clustersByPort lists the names of clusters by the names of routes.
func clustersByPort(v *ads.View) map[string][]string {
	of := map[string][]string{}
	for _, name := range v.Names(ads.Cluster) {
		if slot, ours := envoyname.ParseSlot(name); ours {
			route := envoyname.RouteName(slot.Namespace, slot.Service, slot.Port)
			of[route] = append(of[route], name)
		}
	}
	return of
}

// readPort returns with an error the resource that is refused.
func readPort(v *ads.View, route *ads.Resource, clusters []string) (Port, ads.Key, error) {
	key := ads.Key{Type: ads.Route, Name: route.Name}
	r, missing, err := readRoute(route.Body)
	if err == nil && r.name != route.Name {
		err = &ShapeError{Resource: "route " + route.Name, Field: "name"}
	}
	if err == nil && r.division != nil && !r.division.whole() {
		err = &ShapeError{Resource: "route " + route.Name, Field: "weight"}
	}
	if err != nil {
		return Port{}, key, err
	}
	p := Port{
		Namespace: r.slot.Namespace, Service: r.slot.Service, Number: r.slot.Port, Sequence: route.Version.Sequence, Unavailable: missing,
		Request: r.settings.RequestTimeout, RetriesOff: r.settings.RetriesOff, Division: r.division,
	}
	if missing {
		return p, ads.Key{}, nil
	}
	for _, name := range r.clusters() {
		if !slices.Contains(clusters, name) {
			return Port{}, key, &IncompleteError{fmt.Sprintf("route %s names cluster %s, which is not there", route.Name, name)}
		}
	}
	if r.division == nil { // clusters of a split that was removed may be there still, or of a split to come
		clusters = r.clusters()
	}
	for _, name := range clusters {
		if key, err := p.readArm(v, name); err != nil {
			return Port{}, key, err
		}
	}
	return p, ads.Key{}, nil
}

// readArm adds the arm of a cluster of the port.
func (p *Port) readArm(v *ads.View, name string) (ads.Key, error) {
	key := ads.Key{Type: ads.Cluster, Name: name}
	u, err := readCluster(v.Get(ads.Cluster, name).Body)
	if err != nil {
		return key, err
	}
	protocol, known := u.to.protocol()
	switch {
	case u.slot.String() != name:
		return key, &ShapeError{Resource: "cluster " + name, Field: "name"}
	case !known:
		return key, &ShapeError{Resource: "cluster " + name, Field: "upstream_bind_config"}
	case len(p.Arms) == 0:
		p.Protocol, p.Connect, p.Idle = protocol, u.to.connect, u.to.idle
	case p.Protocol != protocol || p.Connect != u.to.connect || p.Idle != u.to.idle:
		return key, &IncompleteError{fmt.Sprintf("cluster %s has other connections than another one of its port", name)}
	}
	key.Type = ads.Endpoints
	r := v.Get(ads.Endpoints, name)
	if r == nil {
		return key, &IncompleteError{fmt.Sprintf("cluster %s has no endpoints yet", name)}
	}
	of, to, err := readEndpoints(r.Body)
	if err == nil && of != name {
		err = &ShapeError{Resource: "the endpoints of " + name, Field: "cluster_name"}
	}
	if err != nil {
		return key, err
	}
	p.Arms = append(p.Arms, Arm{Variation: u.slot.Variation, Forced: u.slot.Forced, Own: addresses(to.own), Failover: addresses(to.failover)})
	return ads.Key{}, nil
}

func addresses(endpoints []ir.Endpoint) []netip.AddrPort {
	var all []netip.AddrPort
	for _, e := range endpoints {
		all = append(all, e.Address)
	}
	return all
}
