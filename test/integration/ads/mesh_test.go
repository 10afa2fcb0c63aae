// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"fmt"
	"net/netip"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// mesh is a world whose resources come from the translation.
type mesh struct {
	*world
	view *ads.View
}

func newMesh(t testing.TB) *mesh { return &mesh{world: newWorldOf(t, ads.Config{}, envoyxds.Missing)} }

// serves these services from now on, as far as they can be.
func (m *mesh) serves(services ...ir.Service) {
	m.t.Helper()
	resources, err := envoyxds.Resources(ir.Mesh{Services: services}, m.view)
	if err != nil {
		m.t.Fatal(err)
	}
	m.view = ads.NewView(resources...)
	m.group.Publish(m.view)
}

// sidecar of a pod with an address of its own for the first port of each service.
func (m *mesh) sidecar(pod string, services ...ir.Service) (e *envoy.Envoy, fronts []string) {
	m.t.Helper()
	var listeners []*listenerv3.Listener
	for _, s := range services {
		front := freeport.Address(m.t)
		fronts = append(fronts, front)
		listeners = append(listeners, envoyxds.Local(s, s.Ports[0], netip.MustParseAddrPort(front)))
	}
	return m.sidecarWith(pod, listeners...), fronts
}

func (m *mesh) sidecarWith(pod string, listeners ...*listenerv3.Listener) *envoy.Envoy {
	m.t.Helper()
	return envoy.Start(m.t, envoy.Options{Address: m.address, Authority: m.authority, Node: pod, Token: pod, Listeners: listeners})
}

// has waits until a proxy has the resource of a name that there is now.
func (m *mesh) has(pod string, kind ads.Type, name string) {
	m.t.Helper()
	r := m.view.Get(kind, name)
	if r == nil {
		m.t.Fatalf("there is no %v %s", kind, name)
	}
	m.acknowledged(pod, r)
}

// service of the shop with a port 80, and these slots on it.
func service(name string, routing *traffic.Routing, slots ...ir.Slot) ir.Service {
	return ir.Service{Namespace: "shop", Name: name, Routing: routing, Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP, Slots: slots}}}
}

func slotOf(variation string, addresses ...string) ir.Slot {
	s := ir.Slot{Variation: variation}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, ir.Endpoint{Address: netip.MustParseAddrPort(a), State: ir.Ready})
	}
	return s
}

// routeOfService is the name of the route of a service.
func routeOfService(name string) string { return envoyname.RouteName("shop", name, 80) }

// answersSoon waits until an address answers so, as "200 text".
func answersSoon(t testing.TB, address, want string) {
	t.Helper()
	eventually(t, address+" answers "+want, func() error {
		if text, code := answers(t, address); fmt.Sprint(code, " ", text) != want {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
}
