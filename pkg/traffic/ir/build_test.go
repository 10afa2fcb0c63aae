// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

const (
	v4 = discoveryv1.AddressTypeIPv4
	v6 = discoveryv1.AddressTypeIPv6
)

func TestAServiceIs(t *testing.T) {
	port := func(ports ...corev1.ServicePort) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.Ports = ports }
	}
	tests := map[string]struct {
		svc  *corev1.Service
		want string
	}{
		"managed when it is labeled":                {web(), "shop/web 10.0.0.1:80 HTTP =[]"},
		"left alone without the label":              {web(func(s *corev1.Service) { s.Labels = nil }), ""},
		"left alone when the label says no":         {web(func(s *corev1.Service) { s.Labels[ir.Managed] = "false" }), ""},
		"in both families when it has both":         {web(func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.0.0.1", "fd00::1"} }), "shop/web 10.0.0.1:80 [fd00::1]:80 HTTP =[]"},
		"without slots on ports that are not HTTP":  {web(port(corev1.ServicePort{Name: "http", Port: 80}, corev1.ServicePort{Name: "db", Port: 70})), "shop/web 10.0.0.1:70 TCP\nshop/web 10.0.0.1:80 HTTP =[]"},
		"without ports of UDP, whatever their name": {web(port(corev1.ServicePort{Name: "http", Port: 80}, corev1.ServicePort{Name: "http-3", Port: 81, Protocol: corev1.ProtocolUDP})), "shop/web 10.0.0.1:80 HTTP =[]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := ir.Build(ir.Inputs{Services: []*corev1.Service{tc.svc}})
			if d := cmp.Diff(tc.want, written(m)); d != "" {
				t.Errorf("the mesh (-want +got):\n%s", d)
			}
			if p := problems(m); p != "" {
				t.Errorf("problems: %s", p)
			}
		})
	}
}

func TestAServiceIsRefusedWhen(t *testing.T) {
	spec := func(change func(*corev1.ServiceSpec)) []*corev1.Service {
		return []*corev1.Service{web(func(s *corev1.Service) { change(&s.Spec) })}
	}
	younger := web(func(s *corev1.Service) {
		s.Name, s.CreationTimestamp = "a-younger", metav1.NewTime(time.Unix(9, 0))
	})
	tests := map[string]struct {
		services []*corev1.Service
		want     string
		left     string
	}{
		"it is headless":                   {spec(func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"None"} }), "Service shop/web: Headless: clients connect to its pods and never to it: give it a clusterIP, or take the label off", ""},
		"it stands for a name":             {spec(func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeExternalName }), "Service shop/web: ExternalName: it stands for a name outside: take the label off", ""},
		"it has no ports":                  {spec(func(s *corev1.ServiceSpec) { s.Ports = nil }), "Service shop/web: NoPorts: it has no ports: declare one", ""},
		"no port is HTTP":                  {spec(func(s *corev1.ServiceSpec) { s.Ports[0].Name = "db" }), "Service shop/web: NoHTTPPort: no port is declared HTTP: set its appProtocol to http, or let its name begin with http", ""},
		"clients stay with a pod":          {spec(func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP }), "Service shop/web: SessionAffinity: the address of a client decides its pod: set sessionAffinity to None and let a split know visitors by a cookie or header", ""},
		"requests stay on their node":      {spec(func(s *corev1.ServiceSpec) { s.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal) }), "Service shop/web: InternalTrafficPolicyLocal: requests are to stay on their node, which proxies do not know of: set internalTrafficPolicy to Cluster", ""},
		"an older one has its address":     {[]*corev1.Service{younger, web()}, "Service shop/a-younger: AddressTaken: 10.0.0.1:80 belongs to the older Service shop/web: give one of them another clusterIP or port", "shop/web 10.0.0.1:80 HTTP =[]"},
		"its HTTP port is declared TLS":    {spec(func(s *corev1.ServiceSpec) { s.Ports[0].AppProtocol = new("https") }), "Service shop/web port 80: TLSOnHTTPPort: its name \"http\" and its appProtocol \"https\" declare both HTTP and TLS, and a TLS client would get an error: let both say the same\nService shop/web: NoHTTPPort: no port is declared HTTP: set its appProtocol to http, or let its name begin with http", ""},
		"gateways cannot serve it as that": {[]*corev1.Service{web(func(s *corev1.Service) { s.Annotations = map[string]string{ir.HostsAnnotation: "a b"} })}, "Service shop/web: InvalidHost: gateways do not serve it as \"a b\": plumbline.dev/hosts takes names as shop.example.com or *.example.com", "shop/web 10.0.0.1:80 HTTP =[]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := ir.Build(ir.Inputs{Services: tc.services})
			if d := cmp.Diff(tc.want, problems(m)); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.left, written(m)); d != "" {
				t.Errorf("what is left (-want +got):\n%s", d)
			}
		})
	}
}

func TestProtocolOf(t *testing.T) {
	tests := map[string]struct {
		name, app string
		number    int32
		want      ir.Protocol
	}{
		"http is":                               {name: "http", want: ir.HTTP},
		"http with more is":                     {name: "http-web", want: ir.HTTP},
		"a name that only begins so is not":     {name: "httpd", want: ir.TCP},
		"the number says nothing":               {name: "web", number: 80, want: ir.TCP},
		"grpc is HTTP/2":                        {name: "grpc-api", want: ir.HTTP2},
		"grpc-web is not":                       {name: "grpc-web", want: ir.HTTP},
		"Kubernetes' name for it is":            {app: "kubernetes.io/h2c", want: ir.HTTP2},
		"Kubernetes' name for WebSockets is":    {app: "kubernetes.io/ws", want: ir.HTTP},
		"case does not matter in appProtocol":   {app: "HTTP", want: ir.HTTP},
		"appProtocol counts and not the name":   {name: "http", app: "redis", want: ir.TCP},
		"an unknown appProtocol is not":         {app: "example.com/http", want: ir.TCP},
		"https is not, nor is WebSocket in TLS": {app: "kubernetes.io/wss", want: ir.TCP},
		"nothing declared is nothing known":     {want: ir.TCP},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			port := corev1.ServicePort{Name: tc.name, Port: tc.number}
			if tc.app != "" {
				port.AppProtocol = &tc.app
			}
			if got := ir.ProtocolOf(port); got != tc.want {
				t.Errorf("it is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAPortIsRefusedThatIsDeclaredBothHTTPAndTLS(t *testing.T) {
	for name, tc := range map[string]struct {
		name, app string
		want      bool
	}{
		"the name says HTTP, appProtocol TLS":           {"http-web", "https", true},
		"the name says TLS, appProtocol HTTP":           {"https-web", "http", true},
		"the name says both":                            {"http-tls", "", true},
		"both say TLS":                                  {"https", "https", false},
		"both say HTTP":                                 {"http", "HTTP", false},
		"the name says HTTP, appProtocol another":       {"http", "redis", false},
		"the name says TLS, appProtocol another":        {"tls-db", "redis", false},
		"the name says neither, appProtocol TLS":        {"web", "https", false},
		"the name says neither, appProtocol HTTP":       {"web", "http", false},
		"the name says HTTP, and TLS of something else": {"db-tls", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			port := corev1.ServicePort{Name: tc.name, Port: 81}
			if tc.app != "" {
				port.AppProtocol = &tc.app
			}
			m := ir.Build(ir.Inputs{Services: []*corev1.Service{web(func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, port) })}})
			if got := strings.Contains(problems(m), "TLSOnHTTPPort"); got != tc.want {
				t.Errorf("it is refused: %t, want %t: %s", got, tc.want, problems(m))
			}
		})
	}
}

func TestEndpointsOfAServiceWithoutASplit(t *testing.T) {
	quarantined := []traffic.Workload{{Namespace: "shop", Kind: "Deployment", Name: "bad"}}
	both := func(first corev1.IPFamily) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{first} }
	}
	zoned := slice(v4, 8080, "10.1.0.1", "10.1.0.2")
	zoned.Endpoints[0].Zone = new("z1")
	zoned.Endpoints[1].NodeName = new("n2")
	udp := slice(v4, 8080, "10.1.0.1")
	udp.Ports[0].Protocol = new(corev1.ProtocolUDP)
	unowned := slice(v4, 8080, "10.1.0.1")
	unowned.Endpoints[0].TargetRef = nil
	elsewhere := slice(v4, 8080, "10.9.0.1")
	elsewhere.Namespace = "other"
	tests := map[string]struct {
		in   ir.Inputs
		want string
	}{
		"those that are not ready are left out":                {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.2", "10.1.0.1", "10.1.0.3 unready")}}, "10.1.0.1:8080 10.1.0.2:8080"},
		"one that is expressly ready counts":                   {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.1 ready")}}, "10.1.0.1:8080"},
		"one that serves, not ready and not ending, does not":  {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.1 serving")}}, ""},
		"those that end and serve drain":                       {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.1 terminating")}}, "10.1.0.1:8080-Draining"},
		"one that is in two slices counts once, as the better": {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.1 terminating"), slice(v4, 8080, "10.1.0.1")}}, "10.1.0.1:8080"},
		"each slice has its own number for a named port":       {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.1"), slice(v4, 9090, "10.1.0.2")}}, "10.1.0.1:8080 10.1.0.2:9090"},
		"pods are not counted once for each family":            {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.1"), slice(v6, 8080, "fd01::1")}}, "10.1.0.1:8080"},
		"the family that is preferred counts":                  {ir.Inputs{Services: []*corev1.Service{web(both(corev1.IPv6Protocol))}, Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.1"), slice(v6, 8080, "fd01::1")}}, "[fd01::1]:8080"},
		"unless it has none":                                   {ir.Inputs{Services: []*corev1.Service{web(both(corev1.IPv6Protocol))}, Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.1"), slice(v6, 8080, "fd01::1 unready")}}, "10.1.0.1:8080"},
		"the node knows the region, the slice only the zone":   {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{zoned}, Localities: map[string]ir.Locality{"n2": {Region: "r", Zone: "z2"}}}, "10.1.0.1:8080@/z1 10.1.0.2:8080@r/z2"},
		"pods of a quarantined workload get nothing":           {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{slice(v4, 8080, "10.1.0.1", "10.1.0.2", "10.1.0.3 unready")}, Pods: []ir.Pod{pod("bad", "10.1.0.1"), pod("bad", "10.1.0.3"), pod("good", "10.1.0.2")}, Quarantined: quarantined}, "10.1.0.1:8080-Quarantined 10.1.0.2:8080"},
		"a port of UDP with the same name is another":          {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{udp}}, ""},
		"an address that is no pod's counts":                   {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{unowned}}, "10.1.0.1:8080"},
		"a Service of that name elsewhere is another":          {ir.Inputs{Slices: []*discoveryv1.EndpointSlice{elsewhere}}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.in.Services == nil {
				tc.in.Services = []*corev1.Service{web()}
			}
			if d := cmp.Diff("shop/web 10.0.0.1:80 HTTP =["+tc.want+"]", written(ir.Build(tc.in))); d != "" {
				t.Errorf("the mesh (-want +got):\n%s", d)
			}
		})
	}
}

func TestTheLastSequenceOutlivesTheSplit(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	m := ir.Build(ir.Inputs{Services: []*corev1.Service{web()}, Sequences: map[types.NamespacedName]uint64{name: 12}})
	if got := m.Services[0].Sequence; got != 12 {
		t.Errorf("the sequence is %d, want 12", got)
	}
}

// Services that share names, addresses and splits, so that order could matter.
func TestTheOrderOfInputsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawn(t)
		want := ir.Build(in)
		again := ir.Inputs{
			Services: rapid.Permutation(in.Services).Draw(t, "services"), Slices: rapid.Permutation(in.Slices).Draw(t, "slices"),
			Pods: rapid.Permutation(in.Pods).Draw(t, "pods"), Splits: rapid.Permutation(in.Splits).Draw(t, "splits"), Quarantined: in.Quarantined,
		}
		if d := cmp.Diff(want, ir.Build(again), cmp.Comparer(func(a, b interface{ String() string }) bool { return a.String() == b.String() })); d != "" {
			t.Fatalf("in another order (-want +got):\n%s", d)
		}
	})
}

func drawn(t *rapid.T) (in ir.Inputs) {
	for i := range rapid.IntRange(1, 4).Draw(t, "services") {
		in.Services = append(in.Services, web(func(s *corev1.Service) {
			s.Name = fmt.Sprint("web", i)
			s.Spec.ClusterIPs = []string{rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}).Draw(t, "address")}
			s.Spec.Ports[0].TargetPort = intstr.FromString("serve")
			s.CreationTimestamp = metav1.NewTime(time.Unix(rapid.Int64Range(0, 1).Draw(t, "created"), 0))
		}))
	}
	for range rapid.IntRange(0, 4).Draw(t, "slices") {
		n := rapid.IntRange(0, 2).Draw(t, "endpoint")
		s := slice(v4, 8080, fmt.Sprintf("10.1.0.%d%s", n, rapid.SampledFrom([]string{"", " terminating", " unready"}).Draw(t, "state")))
		s.Labels[discoveryv1.LabelServiceName] = fmt.Sprint("web", rapid.IntRange(0, 3).Draw(t, "of"))
		s.Endpoints[0].Zone = new(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"))
		in.Slices = append(in.Slices, s)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "pods") {
		in.Pods = append(in.Pods, pod(rapid.SampledFrom([]string{"stable", "canary", "bad"}).Draw(t, "deployment"), fmt.Sprint("10.1.0.", i), func(p *ir.Pod) {
			p.Ports = map[string]uint16{"serve": uint16(8080 + rapid.IntRange(0, 1).Draw(t, "port"))}
			p.Labels["app"] = "web"
			p.Ready, p.Terminating = rapid.Bool().Draw(t, "ready"), rapid.Bool().Draw(t, "terminating")
		}))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "splits") {
		in.Splits = append(in.Splits, tenth(func(s *traffic.Split) {
			s.Name, s.Service = fmt.Sprint("release", i), fmt.Sprint("web", rapid.IntRange(0, 4).Draw(t, "of"))
			s.Created = time.Unix(rapid.Int64Range(0, 1).Draw(t, "created"), 0)
			s.Salt = rapid.SampledFrom([]string{"s1", ""}).Draw(t, "salt")
		}))
	}
	in.Quarantined = []traffic.Workload{{Namespace: "shop", Kind: "Deployment", Name: "bad"}}
	return in
}

// BenchmarkBuild makes a mesh of 5,000 services with 4 endpoints each, of which one
// in ten is split.
func BenchmarkBuild(b *testing.B) {
	in := ir.Inputs{}
	for i := range 5_000 {
		name := fmt.Sprint("web", i)
		in.Services = append(in.Services, web(func(s *corev1.Service) {
			s.Name, s.Spec.ClusterIPs = name, []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250)}
		}))
		s := slice(v4, 8080, "10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4")
		s.Labels[discoveryv1.LabelServiceName] = name
		in.Slices = append(in.Slices, s)
		if i%10 == 0 {
			in.Splits = append(in.Splits, tenth(func(s *traffic.Split) { s.Name, s.Service = name, name }))
		}
	}
	for b.Loop() {
		if m := ir.Build(in); len(m.Services) != 5_000 {
			b.Fatal(problems(m))
		}
	}
}
