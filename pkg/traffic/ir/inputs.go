// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Managed is the label of a Service, with the value "true", that puts it in the mesh.
const Managed = "plumbline.dev/managed"

// HostsAnnotation of a Service names the hosts, separated by commas, under which
// gateways serve it: "shop.example.com, *.example.org". A Service with several HTTP
// ports says which one it means: "shop.example.com=8080".
const HostsAnnotation = "plumbline.dev/hosts"

// Inputs is all that a mesh is made of. Build changes nothing of it.
type Inputs struct {
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	// Pods are those of workloads that a split names or that are quarantined; more
	// do no harm.
	Pods []Pod
	// IPv6 is whether proxies take connections to addresses of IPv6.
	IPv6 bool
	// Localities of nodes, by name, of those that Slices and Pods name; more do no harm.
	Localities map[string]Locality
	Splits     []traffic.Split
	// Ordered are the releases whose splits are prepared rollbacks: the store has the sequence before.
	Ordered map[types.NamespacedName]bool
	// Quarantined workloads get no new requests.
	Quarantined []traffic.Workload
	// Exports are the annotations [ExportToAnnotation] of namespaces, by name, of those
	// that have it.
	Exports map[string]string
	// Sequences are the last ones of Services whose split is gone. A proxy refuses to
	// go back to a lower one, so they must outlive it.
	Sequences map[types.NamespacedName]uint64
	// Grants give hosts of the gateways to namespaces, which have NamespaceLabels; without any
	// the older Service has a host.
	Grants          []Grant
	NamespaceLabels map[string]map[string]string
	// Owners are the pods that have an address, of those that Services with hosts name.
	Owners map[netip.Addr][]types.NamespacedName
}

// Locality is where an endpoint runs; either may be unknown.
type Locality struct{ Region, Zone string }

// Pod is what counts of one.
type Pod struct {
	Namespace, Name string
	Labels          map[string]string
	// Workload is the one it belongs to; of a Deployment's pod the Deployment.
	Workload traffic.Workload
	Node     string
	// Addresses are empty before it runs and when it has ended.
	Addresses []netip.Addr
	// Ports are those of its containers that have a name.
	Ports       map[string]uint16
	Ready       bool
	Terminating bool
}
