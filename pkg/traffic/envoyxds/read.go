// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"fmt"
	"net/netip"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// ShapeError says that a resource is not as this package makes it, and names the first field that
// differs. A proxy that is no Envoy would not do what the field says.
type ShapeError struct{ Resource, Field string }

func (e *ShapeError) Error() string {
	return fmt.Sprintf("reading %s: the field %s is not as Plumbline of this version sets the field", e.Resource, e.Field)
}

// upstream is what a cluster says of the connections to its endpoints.
type upstream struct {
	slot envoyname.Slot
	to   connections
}

// readCluster is the inverse of [cluster].
func readCluster(body []byte) (upstream, error) {
	c := &clusterv3.Cluster{}
	if err := decode(body, c); err != nil {
		return upstream{}, err
	}
	slot, ours := envoyname.ParseSlot(c.GetName())
	if !ours {
		return upstream{}, &ShapeError{Resource: "a cluster", Field: "name"}
	}
	u := upstream{slot: slot, to: connections{connect: c.GetConnectTimeout().AsDuration()}}
	options := &httpv3.HttpProtocolOptions{}
	for _, packed := range c.GetTypedExtensionProtocolOptions() {
		if err := packed.UnmarshalTo(options); err != nil {
			return upstream{}, fmt.Errorf("reading cluster %s: %w", c.GetName(), err)
		}
	}
	u.to.idle = options.GetCommonHttpProtocolOptions().GetIdleTimeout().AsDuration()
	for _, o := range c.GetUpstreamBindConfig().GetSocketOptions() {
		u.to.user = time.Duration(o.GetIntValue()) * time.Millisecond
	}
	return u, sameShape("cluster "+c.GetName(), cluster(c.GetName(), u.to), c)
}

// protocol of the port whose connections these are; false if no protocol has such.
func (c connections) protocol() (ir.Protocol, bool) {
	for _, p := range []ir.Protocol{ir.HTTP, ir.HTTP2} {
		if c.user == max(userTimeoutOf(p), c.connect) {
			return p, true
		}
	}
	return ir.TCP, false
}

// readEndpoints is the inverse of the assignment of [destinations].
func readEndpoints(body []byte) (name string, to destinations, err error) {
	a := &endpointv3.ClusterLoadAssignment{}
	if err := decode(body, a); err != nil {
		return "", destinations{}, err
	}
	for _, group := range a.GetEndpoints() {
		at := ir.Locality{Region: group.GetLocality().GetRegion(), Zone: group.GetLocality().GetZone()}
		for _, lb := range group.GetLbEndpoints() {
			socket := lb.GetEndpoint().GetAddress().GetSocketAddress()
			address, err := netip.ParseAddr(socket.GetAddress())
			if err != nil {
				return "", destinations{}, fmt.Errorf("reading the endpoints of %s: %w", a.GetClusterName(), err)
			}
			e := ir.Endpoint{Address: netip.AddrPortFrom(address, uint16(socket.GetPortValue())), Locality: at} //nolint:gosec // another number differs below
			if group.GetPriority() == own {
				to.own = append(to.own, e)
			} else {
				to.failover = append(to.failover, e)
			}
		}
	}
	return a.GetClusterName(), to, sameShape("the endpoints of "+a.GetClusterName(), to.assignment(a.GetClusterName()), a)
}

// decode reads a resource as [encode] writes it.
func decode(body []byte, into proto.Message) error {
	packed := &anypb.Any{}
	if err := proto.Unmarshal(body, packed); err != nil {
		return fmt.Errorf("reading a resource: %w", err)
	}
	if err := packed.UnmarshalTo(into); err != nil {
		return fmt.Errorf("reading a resource of type %q: %w", packed.GetTypeUrl(), err)
	}
	return nil
}

func sameShape(resource string, want, got proto.Message) error {
	if field, same := compare(want.ProtoReflect(), got.ProtoReflect()); !same {
		return &ShapeError{Resource: resource, Field: field}
	}
	return nil
}
