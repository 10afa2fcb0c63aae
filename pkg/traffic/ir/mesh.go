// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Mesh is all services that are managed, and what is wrong. Both are sorted.
type Mesh struct {
	Services []Service
	Problems []Problem
	// Sequence is the sum of the last ones of all Services about which there has ever
	// been a decision, managed or not. It grows with each decision about any of them,
	// which is what orders the versions of a resource that is made of many.
	Sequence uint64
}

// Service is one that is managed.
type Service struct {
	Namespace, Name string
	// Hosts under which gateways serve it, sorted.
	Hosts []Host
	// Export says which other namespaces know it.
	Export Export
	// Addresses are its cluster IPs.
	Addresses []netip.Addr
	Ports     []Port
	// LabeledSince is the latest moment at which the label [Managed] can have been given;
	// zero without the label, or if that is not known.
	LabeledSince time.Time
	// Routing is nil without a split.
	Routing *traffic.Routing
	// Settings are those of all its ports.
	Settings Settings
	// Sequence of the last decision about it, 0 when there has been none.
	Sequence uint64
}

// Endpoints counts those of each variation, on that port on which it has the fewest ready ones.
func (s Service) Endpoints() map[string]traffic.Endpoints {
	counts := map[string]traffic.Endpoints{}
	for _, p := range s.Ports {
		for _, slot := range p.Slots {
			n := traffic.Endpoints{Targets: len(slot.Endpoints)}
			for _, e := range slot.Endpoints {
				if e.State == Ready {
					n.Ready++
				}
			}
			if before, seen := counts[slot.Variation]; !seen || n.Ready < before.Ready {
				counts[slot.Variation] = n
			}
		}
	}
	return counts
}

// Host is a name under which gateways serve a port of a service: shop.example.com, or
// *.example.com for all below. No two services have the same one.
type Host struct {
	Name string
	Port uint16
}

// Port of a service. One that is not HTTP has no slots.
type Port struct {
	Name     string
	Number   uint16
	Protocol Protocol
	Slots    []Slot
}

// Slot holds the endpoints of one variation, which is "" without a split.
type Slot struct {
	Variation string
	Endpoints []Endpoint
}

// Endpoint is one pod, or an address that somebody gave the Service by hand.
type Endpoint struct {
	Address  netip.AddrPort
	Locality Locality
	State    State
}

// State of an endpoint. Of one in two states the lower counts.
type State int

// The states.
const (
	// Ready gets requests.
	Ready State = iota
	// Draining is going to end and still answers. It gets requests only if none is
	// ready, as without a proxy.
	Draining
	// Unready is of a variation that has nobody better. It goes on getting requests until
	// the stable one has its share: without it they would be refused meanwhile.
	Unready
	// Quarantined gets none at all.
	Quarantined

	// absent is one that is not an endpoint.
	absent
)

func (s State) String() string {
	return [...]string{"Ready", "Draining", "Unready", "Quarantined", "absent"}[s]
}

// Problem says what is not as somebody wants it, of which object, and what mends it.
type Problem struct {
	Object Object
	// Port is 0 when it concerns the whole object.
	Port   uint16
	Reason Reason
	// Message says what is wrong and what mends it.
	Message string
	// Refused says that the object, or its port, is left alone because of it.
	Refused bool
}

// Object names what a problem is about.
type Object struct{ Kind, Namespace, Name string }

func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

func (p Problem) String() string {
	where := p.Object.String()
	if p.Port != 0 {
		where += " port " + strconv.Itoa(int(p.Port))
	}
	return where + ": " + string(p.Reason) + ": " + p.Message
}

// Reason of a problem, for conditions and metrics.
type Reason string

// The reasons.
const (
	Headless              Reason = "Headless"
	ExternalName          Reason = "ExternalName"
	NoPorts               Reason = "NoPorts"
	NoHTTPPort            Reason = "NoHTTPPort"
	SessionAffinity       Reason = "SessionAffinity"
	InternalTrafficPolicy Reason = "InternalTrafficPolicyLocal"
	TrafficDistribution   Reason = "TrafficDistribution"
	AddressTaken          Reason = "AddressTaken"
	TLSOnHTTPPort         Reason = "TLSOnHTTPPort"
	InvalidExport         Reason = "InvalidExport"
	InvalidHost           Reason = "InvalidHost"
	HostTaken             Reason = "HostTaken"
	InvalidSetting        Reason = "InvalidSetting"
	HostNotGranted        Reason = "HostNotGranted"
	ForeignEndpoint       Reason = "ForeignEndpoint"
	ServiceNotFound       Reason = "ServiceNotFound"
	ServiceRefused        Reason = "ServiceRefused"
	AnotherSplit          Reason = "AnotherSplit"
	InvalidSplit          Reason = "InvalidSplit"
	InvalidVariation      Reason = "InvalidVariation"
	InvalidKey            Reason = "InvalidKey"
	InvalidSalt           Reason = "InvalidSalt"
	InvalidHeader         Reason = "InvalidHeader"
	InvalidMatch          Reason = "InvalidMatch"
	PodInTwoVariations    Reason = "PodInTwoVariations"
	PodInNoVariation      Reason = "PodInNoVariation"
	SelectorsOverlap      Reason = "SelectorsOverlap"
	IPv6NotSplit          Reason = "IPv6NotSplit"
)
