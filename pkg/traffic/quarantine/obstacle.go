// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Reason says in one word why a workload is not kept from requests.
type Reason string

// The reasons.
const (
	// NotServed: no managed Service has a pod of the workload as an endpoint.
	NotServed Reason = "NotServed"
	// LastReadyEndpoints: a port of a Service would have no ready endpoint.
	LastReadyEndpoints Reason = "LastReadyEndpoints"
)

// Obstacle is why a workload is not kept from requests; the zero value is none.
type Obstacle struct {
	Reason  Reason
	Message string
}

// String returns the reason with its message; empty without an obstacle.
func (o Obstacle) String() string {
	if o.Reason == "" {
		return ""
	}
	return string(o.Reason) + ": " + o.Message
}

// ObstacleTo says what stands against a quarantine of a workload. in has the managed Services of
// its namespace, and all that belongs to them; what is in quarantine already stays there.
func ObstacleTo(in ir.Inputs, w traffic.Workload) Obstacle {
	before := ir.Build(in)
	in.Quarantined = append(slices.Clone(in.Quarantined), w)
	after := ir.Build(in)
	served := false
	for i := range before.Services {
		for p := range before.Services[i].Ports {
			was, is := before.Services[i].Ports[p].Slots, after.Services[i].Ports[p].Slots
			if !loses(was, is) {
				continue
			}
			served = true
			if isEmptied(was, is) {
				s, port := &before.Services[i], &before.Services[i].Ports[p]
				return Obstacle{LastReadyEndpoints, fmt.Sprintf("port %d of Service %s would have no ready endpoint: %s %s has the last ones", port.Number, s.Name, w.Kind, w.Name)}
			}
		}
	}
	if !served {
		return Obstacle{NotServed, fmt.Sprintf("no Service with the label %s=true has pods of %s %s as endpoints", ir.Managed, w.Kind, w.Name)}
	}
	return Obstacle{}
}

// loses says that some endpoint of a port gets no new requests any more.
func loses(was, is []ir.Slot) bool {
	return count(was, ir.Quarantined) < count(is, ir.Quarantined)
}

// isEmptied says that requests would be left without an endpoint. The share of a variation
// without one goes to the stable one, which is first, and so the first counts.
func isEmptied(was, is []ir.Slot) bool {
	return len(was) > 0 && count(was[:1], ir.Ready) > 0 && count(is[:1], ir.Ready) == 0
}

func count(of []ir.Slot, state ir.State) (n int) {
	for i := range of {
		for _, e := range of[i].Endpoints {
			if e.State == state {
				n++
			}
		}
	}
	return n
}
