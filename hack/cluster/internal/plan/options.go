// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/address"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

// Options is what the user chose. Two clusters with equal options and equal
// Programs are interchangeable.
type Options struct {
	Name          string   `json:"name"`
	Nodes         int      `json:"nodes"` // 0: control plane only; 1
	Audit         bool     `json:"audit,omitempty"`
	AuditPolicy   string   `json:"auditPolicy,omitempty"` // content; "" means metadata of every request
	APIServerArgs []string `json:"apiServerArgs,omitempty"`
	// HostRegistry is the port of a registry without TLS on the host, from which the
	// node pulls under the name localhost:PORT; 0: none.
	HostRegistry uint16 `json:"hostRegistry,omitempty"`
}

// HostRegistryName is the registry's name in images, the same on the host, where
// they are pushed, and in the cluster, where they are pulled.
func (o Options) HostRegistryName() string {
	return net.JoinHostPort("localhost", strconv.Itoa(int(o.HostRegistry)))
}

// HostRegistryAddress is where the node reaches that registry: the host's end of
// the link.
func (c Cluster) HostRegistryAddress() netip.AddrPort {
	return netip.AddrPortFrom(c.Network.Host().Addr(), c.Options.HostRegistry)
}

// Cluster is everything that the plan of one cluster depends on.
type Cluster struct {
	Options  Options           `json:"options"`
	Network  address.Network   `json:"network"`
	Programs map[string]string `json:"programs"` // folder of each built component
	Cgroup   string            `json:"cgroup"`   // group above all pods, in every hierarchy; unique to this bring-up
	Root     string            `json:"root"`     // state folder
}

// CgroupPrefix begins the name of every control group of ours.
const CgroupPrefix = "plumbline-"

// Layout names the cluster's files.
func (c Cluster) Layout() Layout { return Layout{Root: c.Root} }

// NodeName is the node's name and the host name inside the cluster.
func (c Cluster) NodeName() string { return c.Options.Name + "-node1" }

// Server is the URL of the API server, valid on the host and inside.
func (c Cluster) Server() string {
	return "https://" + c.Network.Node().Addr().String() + ":" + apiPort
}

// Program is the path of a binary.
func (c Cluster) Program(name string) string {
	provider, _ := component.Providing(name)
	return filepath.Join(c.Programs[provider.Name], name)
}

// SearchPath is the PATH of the cluster's processes: its own programs first,
// then the system's (runc, iptables, mount).
func (c Cluster) SearchPath() string {
	var folders []string
	for _, name := range []string{component.Kubernetes, component.Containerd, component.Helm} {
		if folder := c.Programs[name]; folder != "" {
			folders = append(folders, folder)
		}
	}
	return strings.Join(append(folders, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"), ":")
}

// Hosts is the /etc/hosts inside the cluster.
func (c Cluster) Hosts() string {
	return "127.0.0.1 localhost\n" + c.Network.Node().Addr().String() + " " + c.NodeName() + "\n"
}

// ResolverConfig is the /etc/resolv.conf inside the cluster. Nothing listens at
// that address, so a lookup fails at once. The host's name servers cannot be
// reached from inside: with them the node became Ready 20 s later, after two
// time-outs.
func (Cluster) ResolverConfig() string { return "nameserver 127.0.0.1\n" }
