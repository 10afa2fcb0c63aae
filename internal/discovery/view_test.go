// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// names of all that a view has, but for endpoints, which go with clusters.
func names(v *ads.View) (all []string) {
	for _, t := range []ads.Type{ads.Cluster, ads.Listener, ads.Route} {
		for _, name := range v.Names(t) {
			all = append(all, t.String()+" "+name)
		}
	}
	return all
}

func TestAnExplicitProxySees(t *testing.T) {
	two := serviceOf("shop", "two", "10.1.0.3:8080", 3)
	two.Ports = append(two.Ports, ir.Port{Name: "http-b", Number: 81, Protocol: ir.HTTP, Slots: two.Ports[0].Slots})
	web := []string{"Cluster shop/web|80|", "Listener 127.0.0.1:8001", "Route shop/web|80"}
	tests := map[string]struct {
		annotation string
		ipv6       bool
		want       []string
		wrong      string
	}{
		"nothing if it names nothing":              {"", false, nil, ""},
		"what a port leads to, and no more":        {"8001=web", false, web, ""},
		"it also by its number":                    {"8001=web:80", false, web, ""},
		"it on both loopback addresses with IPv6":  {"8001=web", true, []string{"Cluster shop/web|80|", "Listener 127.0.0.1:8001", "Listener [::1]:8001", "Route shop/web|80"}, ""},
		"a Service of another namespace":           {"8002=bank/pay", false, []string{"Cluster bank/pay|80|", "Listener 127.0.0.1:8002", "Route bank/pay|80"}, ""},
		"nothing of a Service that is not there":   {"8001=web,8002=none", false, web, "Service shop/none: LocalPortLeadsNowhere: pods of namespace shop have no proxy at their local port 8002, which the annotation plumbline.dev/local-ports has lead here: there is no managed Service of that name: create it, or give it the label plumbline.dev/managed=true"},
		"nothing at a port that the Service lacks": {"8001=web:90", false, nil, "it has no HTTP port 90, but 80"},
		"nothing if it could be either port":       {"8001=two", false, nil, "it has 2 HTTP ports (80, 81): say which one"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewCatalog(serve.NewProofs()).WithFaces(Faces{IPv6: tc.ipv6})
			s, wrong := ExplicitScope("shop", tc.annotation)
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			c.Join(s)
			publish(t, c, begin, serviceOf("shop", "web", "10.1.0.1:8080", 1), exported(serviceOf("bank", "pay", "10.1.0.2:8080", 2)), two)
			if d := cmp.Diff(tc.want, names(c.groups[s].group.View())); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			got := strings.Join(textsOf(c.Unserved(s)), "\n")
			if !strings.Contains(got, tc.wrong) || (got == "") != (tc.wrong == "") || len(c.Problems()) != len(c.Unserved(s)) {
				t.Errorf("what cannot be had: %q, want %q", got, tc.wrong)
			}
		})
	}
}

func TestALocalPortFollowsItsService(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	s, _ := ExplicitScope("shop", "8001=web")
	c.Join(s)
	if len(c.Problems()) > 0 {
		t.Error("before the first look something is wrong already")
	}
	publish(t, c, begin)
	if len(c.Problems()) != 1 {
		t.Errorf("without its Service there are %v", c.Problems())
	}
	web := serviceOf("shop", "web", "10.1.0.1:8080", 1)
	publish(t, c, begin, web)
	first := c.groups[s].group.View().Get(ads.Listener, "127.0.0.1:8001")
	publish(t, c, begin, serviceOf("shop", "web", "10.1.0.2:8080", 1))
	if second := c.groups[s].group.View().Get(ads.Listener, "127.0.0.1:8001"); first == nil || first != second || len(c.Problems()) > 0 {
		t.Errorf("with other endpoints the listener is %v, and was %v", second, first)
	}
	publish(t, c, begin)
	if c.groups[s].group.View().Get(ads.Listener, "127.0.0.1:8001") != nil {
		t.Error("it outlives its Service")
	}
}

func hosted(s ir.Service, host string) ir.Service {
	s.Hosts = []ir.Host{{Name: host, Port: 80}}
	return s
}

func TestAGatewaySeesServicesWithHostsOfAllNamespaces(t *testing.T) {
	c := NewCatalog(serve.NewProofs()).WithFaces(Faces{Gateway: &envoyxds.Gateway{Port: 8080}})
	c.Join(GatewayScope(false))
	web, pay := serviceOf("shop", "web", "10.1.0.1:8080", 1), serviceOf("bank", "pay", "10.1.0.2:8080", 2)
	steps := []struct {
		what     string
		services []ir.Service
		want     []string
	}{
		{"without hosts nothing but itself", []ir.Service{web, pay}, []string{"Listener gateway|8080", "Route gateway|8080"}},
		{"one that has one", []ir.Service{hosted(web, "a.example.com"), pay}, []string{"Cluster shop/web|80|", "Listener gateway|8080", "Route gateway|8080"}},
		{"both", []ir.Service{hosted(web, "a.example.com"), hosted(pay, "b.example.com")}, []string{"Cluster bank/pay|80|", "Cluster shop/web|80|", "Listener gateway|8080", "Route gateway|8080"}},
		{"and no longer one that lost it", []ir.Service{web, hosted(pay, "b.example.com")}, []string{"Cluster bank/pay|80|", "Listener gateway|8080", "Route gateway|8080"}},
	}
	var last *ads.Resource
	for _, step := range steps {
		publish(t, c, begin, step.services...)
		v := c.groups[GatewayScope(false)].group.View()
		if d := cmp.Diff(step.want, names(v)); d != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, d)
		}
		route := v.Get(ads.Route, "gateway|8080")
		if last != nil && last.Version == route.Version {
			t.Errorf("%s: the route is the same", step.what)
		}
		last = route
	}
}

func TestAGatewayThatLeavesHasTheSameButForItsListener(t *testing.T) {
	c := NewCatalog(serve.NewProofs()).WithFaces(Faces{Gateway: &envoyxds.Gateway{Port: 8080}})
	publish(t, c, begin, hosted(serviceOf("shop", "web", "10.1.0.1:8080", 1), "a.example.com"))
	changed := ads.Diff(sees(c, GatewayScope(false)), sees(c, GatewayScope(true)))
	if d := cmp.Diff([]ads.Key{{Type: ads.Listener, Name: "gateway|8080"}}, changed); d != "" {
		t.Errorf("what differs (-want +got):\n%s", d)
	}
}

func TestAGatewayBeginsToEndOnce(t *testing.T) {
	stays, goes := &corev1.Pod{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: begin}, Labels: map[string]string{inject.LabelProxy: inject.Gateway}}}
	sidecar := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: begin}}}
	for what, got := range map[string][2]bool{
		"a gateway that begins": {leaves(stays, goes), true}, "one that began before": {leaves(goes, goes), false},
		"a sidecar": {leaves(stays, sidecar), false}, "one that stays": {leaves(stays, stays), false},
	} {
		if got[0] != got[1] {
			t.Errorf("%s leaves: %t", what, got[0])
		}
	}
}

func TestWithoutGatewaysThereIsNothingForThem(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	publish(t, c, begin, hosted(serviceOf("shop", "web", "10.1.0.1:8080", 1), "a.example.com"))
	if got := sees(c, GatewayScope(false)).Names(ads.Listener); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
}

// Anybody may set a label, and a gateway sees Services of all namespaces.
func TestWhoseScopeAPodHas(t *testing.T) {
	upstreams, _ := ScopeOf("shop", "bank/pay")
	ports, _ := ExplicitScope("shop", "8001=web")
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   Scope
		wrong  bool
	}{
		"one that says nothing its namespace's":                {func(*corev1.Pod) {}, Scope{Namespace: "shop"}, false},
		"one that is redirected what it needs":                 {func(p *corev1.Pod) { p.Labels[inject.LabelProxy] = "redirect" }, upstreams, false},
		"an explicit one its ports":                            {func(p *corev1.Pod) { p.Labels[inject.LabelProxy] = "explicit" }, ports, false},
		"one that calls itself a gateway no more than it said": {func(p *corev1.Pod) { p.Labels[inject.LabelProxy] = inject.Gateway }, upstreams, false},
		"one of the gateway's account in another namespace":    {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "plumbline-gateway" }, upstreams, false},
		"one of the gateways all":                              {func(p *corev1.Pod) { p.Namespace, p.Spec.ServiceAccountName = "plumbline-system", "plumbline-gateway" }, GatewayScope(false), false},
		"one of the gateways that ends, all, to leave": {func(p *corev1.Pod) {
			p.Namespace, p.Spec.ServiceAccountName, p.DeletionTimestamp = "plumbline-system", "plumbline-gateway", &metav1.Time{Time: begin}
		}, GatewayScope(true), false},
		"one whose annotation cannot be read, the rest": {func(p *corev1.Pod) {
			p.Labels[inject.LabelProxy], p.Annotations[inject.AnnotationLocalPorts] = "explicit", "8001=web,80=web"
		}, ports, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := NewDirectory(believer{}, &cluster{}, NewCatalog(serve.NewProofs()), nil)
			d.Gateways = Account{"plumbline-system", "plumbline-gateway"}
			pod := web("1", corev1.PodRunning).pods["shop/web"]
			pod.Labels = map[string]string{}
			if !strings.HasSuffix(name, "its namespace's") {
				pod.Annotations = map[string]string{UpstreamsAnnotation: "bank/pay", inject.AnnotationLocalPorts: "8001=web"}
			}
			tc.change(pod)
			got, wrong := d.scope(pod)
			if got != tc.want || (len(wrong) > 0) != tc.wrong {
				t.Errorf("it has %+v, want %+v; wrong: %v", got, tc.want, wrong)
			}
		})
	}
}

func TestAnInstallationWithoutGatewaysHasNone(t *testing.T) {
	d := NewDirectory(believer{}, &cluster{}, NewCatalog(serve.NewProofs()), nil)
	if got, _ := d.scope(&corev1.Pod{}); got.face == gateway {
		t.Error("a pod without namespace and account is a gateway")
	}
}

func TestWhatAPodCannotHaveIsTold(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	publish(t, c, begin)
	known := web("1", corev1.PodRunning)
	known.pods["shop/web"].Labels = map[string]string{inject.LabelProxy: "explicit"}
	known.annotation = "80=web,8001=web"
	d := NewDirectory(believer{}, known, c, func(identity.Reason) {})
	var told []string
	d.Misread = func(_ *corev1.Pod, wrong []string) { told = append(told, wrong...) }
	in, err := d.Admit(fromPod(t), []string{"Bearer 1"})
	if err != nil {
		t.Fatal(err)
	}
	in.Leave()
	if len(told) != 2 || !strings.Contains(told[0], "80") || !strings.Contains(told[1], "LocalPortLeadsNowhere") {
		t.Errorf("it is told %q", told)
	}
}

// A proxy has a second stream, on which it tells what it counts: what its pod cannot
// have was counted and logged twice.
func TestWhatAPodCannotHaveIsToldOncePerProxy(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	publish(t, c, begin)
	known := web("1", corev1.PodRunning)
	known.annotation = "web"
	d := NewDirectory(believer{}, known, c, nil)
	told := 0
	d.Misread = func(_ *corev1.Pod, wrong []string) { told += len(wrong) }
	routes, err := d.Admit(fromPod(t), []string{"Bearer 1"})
	if err != nil {
		t.Fatal(err)
	}
	counts, err := counting{d}.Admit(fromPod(t), []string{"Bearer 1"})
	if err != nil {
		t.Fatal(err)
	}
	if told != 1 {
		t.Errorf("it is told %d times", told)
	}
	counts.Leave()
	routes.Leave()
	if len(d.seats) != 0 || len(c.groups) != 0 {
		t.Errorf("%d pods and %d groups are left behind", len(d.seats), len(c.groups))
	}
}

// Whatever happens to services, every resource is what it would be if it were made anew.
func TestWhatIsKeptIsWhatWouldBeMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := NewCatalog(serve.NewProofs())
		for range rapid.IntRange(1, 5).Draw(t, "looks") {
			var mesh ir.Mesh
			for i := range rapid.IntRange(1, 3).Draw(t, "services") {
				s := serviceOf("shop", fmt.Sprint("web", i), fmt.Sprintf("10.1.0.%d:80", rapid.IntRange(1, 2).Draw(t, "endpoint")), byte(i+1))
				s.Ports[0].Slots[0].Endpoints[0].State = rapid.SampledFrom([]ir.State{ir.Ready, ir.Draining}).Draw(t, "state")
				s.Sequence = rapid.Uint64Range(0, 1).Draw(t, "sequence")
				if rapid.Bool().Draw(t, "split") {
					s.Routing = &traffic.Routing{Salt: "s", Shares: traffic.Shares{{Variation: "", Weight: 10_000}, {Variation: "b", Weight: 0, Reserved: traffic.Weight(rapid.IntRange(0, 1).Draw(t, "reserved"))}}}
				}
				mesh.Services = append(mesh.Services, s)
			}
			if _, err := c.Publish(wholly(c, mesh), begin); err != nil {
				t.Fatal(err)
			}
			want, err := envoyxds.Resources(mesh, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := ads.Diff(ads.NewView(want...), sees(c, Scope{Namespace: "shop"})); len(d) > 0 {
				t.Fatalf("%v differ", d)
			}
		}
	})
}

// BenchmarkALookAtManyServices is a look of which one endpoint has changed.
func BenchmarkALookAtManyServices(b *testing.B) {
	c := NewCatalog(serve.NewProofs()).WithFaces(Faces{Gateway: &envoyxds.Gateway{Port: 8080}})
	mesh := ir.Mesh{}
	for i := range 5_000 {
		s := serviceOf("shop", fmt.Sprint("web", i), "10.1.0.1:80", 1)
		s.Routing = &traffic.Routing{
			Shares: traffic.Shares{{Variation: "stable", Weight: 9_000}, {Variation: "canary", Weight: 1_000, Reserved: traffic.Total}},
			Key:    traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"}, Salt: "s1",
		}
		s.Ports[0].Slots = []ir.Slot{{Variation: "stable", Endpoints: s.Ports[0].Slots[0].Endpoints}, {Variation: "canary", Endpoints: s.Ports[0].Slots[0].Endpoints}}
		mesh.Services = append(mesh.Services, s)
	}
	shop, _ := ScopeOf("shop", "")
	c.Join(shop)
	if _, err := c.Publish(wholly(c, mesh), begin); err != nil {
		b.Fatal(err)
	}
	n := byte(0)
	for b.Loop() {
		n++
		next := serviceOf("shop", "web17", fmt.Sprintf("10.1.0.%d:80", n), 1)
		change := ir.Change{Parts: map[types.NamespacedName]ir.Part{{Namespace: "shop", Name: "web17"}: {Service: &next}}}
		if _, err := c.Publish(change, begin); err != nil {
			b.Fatal(err)
		}
	}
}
