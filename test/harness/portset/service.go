// SPDX-License-Identifier: Apache-2.0

package portset

import (
	"net/netip"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Divide makes a Service with port 80 and a split between an endpoint of the stable variation and one of the canary,
// which has the weight.
func Divide(key traffic.Key, canary traffic.Weight, sequence uint64, stableAt, canaryAt string) ir.Service {
	slot := func(variation, address string) ir.Slot {
		return ir.Slot{Variation: variation, Endpoints: []ir.Endpoint{{Address: netip.MustParseAddrPort(address)}}}
	}
	return ir.Service{
		Sequence: sequence,
		Ports:    []ir.Port{{Number: 80, Protocol: ir.HTTP, Slots: []ir.Slot{slot("stable", stableAt), slot("canary", canaryAt)}}},
		Routing: &traffic.Routing{
			Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}},
			Key:    key, Salt: "s1",
		},
	}
}

// ReadBack returns the ports of a Service as a proxy that is no Envoy reads them of the resources. The Service becomes
// shop/web.
func ReadBack(tb testing.TB, s ir.Service) []envoyxds.Port {
	tb.Helper()
	s.Namespace, s.Name = "shop", "web"
	resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{s}}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	ports, refused := envoyxds.ReadPorts(ads.NewView(resources...))
	if len(refused) > 0 {
		tb.Fatalf("%v is refused: %v", refused[0].Key, refused[0].Err)
	}
	return ports
}
