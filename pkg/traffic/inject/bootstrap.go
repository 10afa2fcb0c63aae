// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// BootstrapConfig is what an Envoy starts with. The node's id and cluster are not in
// it, they are arguments (--service-node, --service-cluster), so that all proxies of
// an installation have the same bootstrap.
type BootstrapConfig struct {
	// XDSHost is the DNS name or the address of the control plane, XDSPort its one
	// TLS port. Its certificate has this name.
	XDSHost string
	XDSPort uint32
	// Directory has the files: the token, the CA bundle and [SecretFiles].
	Directory string
	// Capture has a listener for redirected connections, on loopback.
	Capture bool
	// IPv6 is whether pods have addresses of both families. Without, an address of
	// the other one might not be there, and Envoy would not start.
	IPv6 bool
	// AdminPort (loopback) and StatusPort (every address); the constants of these
	// names by default.
	AdminPort, StatusPort uint32
	// MaxConnections of clients at once, those that ask for the status aside; 0 for no
	// bound. It is for gateways, whose clients are anybody.
	MaxConnections uint32
}

func (c BootstrapConfig) withDefaults() BootstrapConfig {
	if c.Directory == "" {
		c.Directory = Directory
	}
	if c.AdminPort == 0 {
		c.AdminPort = AdminPort
	}
	if c.StatusPort == 0 {
		c.StatusPort = StatusPort
	}
	return c
}

func (c BootstrapConfig) validate() error {
	var errs []error
	if _, err := netip.ParseAddr(c.XDSHost); err != nil && len(validation.IsDNS1123Subdomain(c.XDSHost)) > 0 {
		errs = append(errs, fmt.Errorf("xdsHost: the control plane's host %q is neither a DNS name nor an address", c.XDSHost))
	}
	if c.XDSPort == 0 || c.XDSPort > 65535 {
		errs = append(errs, fmt.Errorf("xdsPort: the control plane's port %d is not a port", c.XDSPort))
	}
	return errors.Join(errs...)
}

// Bootstrap is the configuration as JSON, the same bytes for the same input.
func Bootstrap(c BootstrapConfig) ([]byte, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("making a bootstrap: %w", err)
	}
	p := &packer{}
	b := &bootstrapv3.Bootstrap{
		Admin:            admin(c),
		DynamicResources: dynamicResources(),
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{
			Clusters:  []*clusterv3.Cluster{xdsCluster(c, p), adminCluster(c)},
			Listeners: []*listenerv3.Listener{statusListener(c, p)},
		},
		StatsConfig:        statsConfig(),
		StatsSinks:         statsSinks(p),
		StatsFlushInterval: seconds(10),
		LayeredRuntime:     layeredRuntime(),
	}
	if c.MaxConnections > 0 {
		b.OverloadManager = bounded(c, p)
	}
	if c.Capture {
		capture(c, b.GetStaticResources())
	}
	if p.err != nil {
		return nil, fmt.Errorf("making a bootstrap: %w", p.err)
	}
	return encode(b)
}

// capture adds what takes redirected connections, on loopback, where the kernel sends
// those that begin in the pod, so that nobody else reaches it.
func capture(c BootstrapConfig, static *bootstrapv3.Bootstrap_StaticResources) {
	hosts := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	if c.IPv6 {
		hosts = append(hosts, netip.IPv6Loopback())
	}
	for _, host := range hosts {
		static.Listeners = append(static.Listeners, envoyxds.Outbound(netip.AddrPortFrom(host, CapturePort)))
	}
	static.Clusters = append(static.Clusters, envoyxds.OutboundClusters()...)
}

// packer packs messages and keeps the first error, so that building reads as a tree.
type packer struct{ err error }

func (p *packer) pack(m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil && p.err == nil {
		p.err = err
	}
	return packed
}

// encode writes JSON with the field names of the documentation. The encoder of
// protobuf varies its white space on purpose, so it is taken out.
func encode(m proto.Message) ([]byte, error) {
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing a configuration of Envoy: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, fmt.Errorf("writing a configuration of Envoy: %w", err)
	}
	return out.Bytes(), nil
}
