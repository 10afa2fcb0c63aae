// SPDX-License-Identifier: Apache-2.0

package edgeagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// undivided is the upstream of a Service without a split.
const undivided = "undivided"

// services are those of the suite of routers.
var services = []types.NamespacedName{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "pay"}, {Namespace: "bank", Name: "web"}}

// stand has one agent, whose program divides the requests of three Services by the host NAME.NAMESPACE.
type stand struct {
	*Agent
	upstreams map[string]string
	sequences map[types.NamespacedName]uint64
	routers   map[types.NamespacedName]*router
	client    *edgetraffic.Client
}

var (
	_ routertest.Asker   = (*stand)(nil)
	_ routertest.Settler = (*stand)(nil)
)

// Conform runs the suite of routers with an agent and its program. configure writes a configuration that sends
// requests by their host, which is NAME.NAMESPACE, to port 80 of the Services shop/web, shop/pay and bank/web.
func Conform(t *testing.T, program Program, configure func(address, folder string) string) {
	program.Configure = configure
	program.build(t, "")
	routertest.Conform(t, routertest.Maker{
		Capabilities: traffic.FullCapabilities(),
		Begin:        func(t *testing.T) routertest.Stand { return newStand(t, program) },
	})
}

func newStand(t *testing.T, program Program) *stand {
	t.Helper()
	s := &stand{
		upstreams: map[string]string{}, sequences: map[types.NamespacedName]uint64{}, routers: map[types.NamespacedName]*router{},
		client: edgetraffic.NewClient(t),
	}
	for _, name := range []string{undivided, "stable", "canary", "next"} {
		s.upstreams[name] = edgetraffic.StartUpstream(t, name, 0)
	}
	p := NewPlane(t)
	p.PublishAll(s.mesh()...)
	s.Agent = StartAgent(t, p, program, "")
	s.Settle()
	s.AwaitAnswer() // routes without a decision are acknowledged before the program starts
	return s
}

// mesh has the Services with the splits that are applied.
func (s *stand) mesh() (all []ir.Service) {
	slot := func(variation, upstream string) ir.Slot {
		return ir.Slot{Variation: variation, Endpoints: []ir.Endpoint{{Address: netip.MustParseAddrPort(s.upstreams[upstream])}}}
	}
	for i, name := range services {
		service := ir.Service{
			Namespace: name.Namespace, Name: name.Name, Sequence: s.sequences[name], Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, byte(i + 1)})},
			Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP, Slots: []ir.Slot{slot("", undivided)}}},
		}
		if split := s.splitOf(name); split != nil {
			service.Routing, service.Ports[0].Slots = &split.Routing, nil
			for _, v := range split.Variations {
				service.Ports[0].Slots = append(service.Ports[0].Slots, slot(v.Name, v.Selector.MatchLabels["version"]))
			}
		}
		all = append(all, service)
	}
	return all
}

// splitOf returns the split that is applied to a Service, or nil.
func (s *stand) splitOf(service types.NamespacedName) *traffic.Split {
	for _, r := range s.routers {
		if split := r.Current(); split != nil && split.Namespace == service.Namespace && split.Service == service.Name {
			return split
		}
	}
	return nil
}

// Router implements routertest.Stand.
func (s *stand) Router(release types.NamespacedName) traffic.Router {
	if s.routers[release] == nil {
		s.routers[release] = &router{stand: s}
	}
	return s.routers[release]
}

// Settle implements routertest.Settler: it waits until the agent has acknowledged each route.
func (s *stand) Settle() {
	s.Helper()
	poll.Until(s, patience, "each route is acknowledged", func() error {
		for _, service := range services {
			if _, err := s.acknowledged(s.Context(), service); err != nil {
				return err
			}
		}
		return nil
	})
}

// acknowledged returns the sequence of the route of a Service. A route without the acknowledgment of the agent is an error.
func (s *stand) acknowledged(ctx context.Context, service types.NamespacedName) (uint64, error) {
	name := envoyname.RouteName(service.Namespace, service.Name, 80)
	want := s.group.View().Get(ads.Route, name)
	for _, r := range s.replicas {
		for _, c := range r.server.Proxies(ctx, nil) {
			for _, state := range c.Resources {
				switch {
				case state.Type != ads.Route || state.Name != name:
				case state.Stage != ads.Acknowledged || state.Has != want.Version:
					return 0, fmt.Errorf("route %s is %s with %s, want %s: %s", name, state.Stage, state.Has, want.Version, state.Why)
				default:
					return state.Has.Sequence, nil
				}
			}
		}
	}
	return 0, errors.New("no agent has asked for route " + name)
}

// Ask implements routertest.Asker.
func (s *stand) Ask(request routertest.Request) (routertest.Answer, error) {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+s.Address+"/", http.NoBody)
	if err != nil {
		return routertest.Answer{}, err
	}
	r.Host = request.Service.Name + "." + request.Service.Namespace
	for name, value := range request.Headers {
		r.Header.Set(name, value)
	}
	for name, value := range request.Cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	response, err := s.client.Do(r)
	if err != nil {
		return routertest.Answer{}, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return routertest.Answer{}, err
	}
	var answer routertest.Answer
	for _, c := range response.Cookies() {
		answer.Visitor = c.Value
	}
	upstream := response.Header.Get("Variation")
	if upstream == undivided {
		return answer, nil
	}
	answer.Divided = true
	split := s.splitOf(request.Service)
	if split == nil || upstream == "" {
		return answer, fmt.Errorf("answered %s by %q, and the split is %v", response.Status, upstream, split)
	}
	for _, v := range split.Variations {
		if v.Selector.MatchLabels["version"] == upstream {
			answer.Variation = v
		}
	}
	return answer, nil
}

// router publishes each split, and knows the acknowledgment of the agent alone.
type router struct {
	routertest.Recorder
	stand *stand
}

// Apply implements traffic.Router.
func (r *router) Apply(ctx context.Context, split traffic.Split) error {
	if err := r.Recorder.Apply(ctx, split); err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: split.Namespace, Name: split.Service}
	r.stand.sequences[name] = max(r.stand.sequences[name], split.Sequence)
	r.publish()
	return nil
}

// Remove implements traffic.Router.
func (r *router) Remove(ctx context.Context) error {
	if err := r.Recorder.Remove(ctx); err != nil {
		return err
	}
	r.publish()
	return nil
}

// publish first ends the kept connection of the client, which would delay the proof of a reload.
func (r *router) publish() {
	r.stand.client.CloseIdleConnections()
	r.stand.PublishAll(r.stand.mesh()...)
}

// Observe implements traffic.Router.
func (r *router) Observe(ctx context.Context) (traffic.Observation, error) {
	split := r.Current()
	if split == nil {
		return traffic.Observation{Knowledge: traffic.Unknown}, nil
	}
	sequence, err := r.stand.acknowledged(ctx, types.NamespacedName{Namespace: split.Namespace, Name: split.Service})
	if err != nil || sequence != split.Sequence {
		return traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1}, nil //nolint:nilerr // the agent has not answered yet
	}
	seen := traffic.Observation{Sequence: sequence, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1}
	for _, share := range split.Shares {
		seen.Arms = append(seen.Arms, traffic.Arm{Variation: share.Variation})
	}
	return seen, nil
}
