// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

func TestVariationsHavePods(t *testing.T) {
	in := func(pods ...ir.Pod) ir.Inputs { return ir.Inputs{Pods: pods} }
	named := func(p *ir.Pod) { p.Ports = map[string]uint16{"serve": 9090} }
	selected := func(p *ir.Pod) { p.Labels["app"] = "web" }
	stable := func(p *ir.Pod) { p.Labels["version"] = "stable" }
	other := func(p *ir.Pod) { p.Namespace = "other" }
	unready := func(p *ir.Pod) { p.Ready = false }
	ends := func(p *ir.Pod) { p.Terminating = true }
	dual := func(p *ir.Pod) { p.Addresses = []netip.Addr{netip.MustParseAddr("fd01::2"), p.Addresses[0]} }
	byName := web(func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("serve") })
	impatient := web(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })
	dualStack := web(func(s *corev1.Service) { s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, "fd00::1") })
	tests := map[string]struct {
		in       ir.Inputs
		svc      *corev1.Service
		want     string
		problems string
	}{
		"by label and by workload":                            {in: in(pod("stable", "10.1.0.1"), pod("canary", "10.1.0.2")), want: "stable=[10.1.0.1:8080] canary=[10.1.0.2:8080]"},
		"and slots without any":                               {in: in(), want: "stable=[] canary=[]"},
		"with a port that has a name in the pod":              {svc: byName, in: in(pod("stable", "10.1.0.1", named), pod("canary", "10.1.0.2")), want: "stable=[10.1.0.1:9090] canary=[]"},
		"that drain when they end":                            {in: in(pod("canary", "10.1.0.2", func(p *ir.Pod) { p.Terminating = true })), want: "stable=[] canary=[10.1.0.2:8080-Draining]"},
		"that are ready":                                      {in: in(pod("canary", "10.1.0.2", func(p *ir.Pod) { p.Ready = false })), want: "stable=[] canary=[]"},
		"or not, until the stable one has the share":          {in: in(pod("stable", "10.1.0.1"), pod("canary", "10.1.0.2", unready)), want: "stable=[10.1.0.1:8080] canary=[10.1.0.2:8080-Unready]"},
		"of which another one is ready":                       {in: in(pod("stable", "10.1.0.1"), pod("canary", "10.1.0.2", unready), pod("canary", "10.1.0.3")), want: "stable=[10.1.0.1:8080] canary=[10.1.0.3:8080]"},
		"of which another one still answers":                  {in: in(pod("stable", "10.1.0.1"), pod("canary", "10.1.0.2", unready), pod("canary", "10.1.0.3", ends)), want: "stable=[10.1.0.1:8080] canary=[10.1.0.3:8080-Draining]"},
		"besides one that neither is ready nor goes on":       {in: in(pod("canary", "10.1.0.2", unready, ends), pod("canary", "10.1.0.3"), pod("canary", "10.1.0.4", unready, ends)), want: "stable=[] canary=[10.1.0.3:8080]"},
		"in the family that is first":                         {in: in(pod("canary", "10.1.0.2", dual)), want: "stable=[] canary=[10.1.0.2:8080]"},
		"that neither are ready nor go on":                    {in: in(pod("stable", "10.1.0.1"), pod("canary", "10.1.0.2", unready, ends)), want: "stable=[10.1.0.1:8080] canary=[]"},
		"when the stable one is not ready, as without":        {in: in(pod("stable", "10.1.0.1", unready), pod("canary", "10.1.0.2")), want: "stable=[] canary=[10.1.0.2:8080]"},
		"or not, when the Service wants those too":            {svc: impatient, in: in(pod("canary", "10.1.0.2", func(p *ir.Pod) { p.Ready = false })), want: "stable=[] canary=[10.1.0.2:8080]"},
		"of their own namespace":                              {in: in(pod("canary", "10.1.0.2", other), pod("stable", "10.1.0.1", other)), want: "stable=[] canary=[]"},
		"of which one in two is the first's":                  {in: in(pod("canary", "10.1.0.2", stable)), want: "stable=[10.1.0.2:8080] canary=[]", problems: "ABRelease shop/release: PodInTwoVariations: 1 pod (pod-10.1.0.2) in stable and canary, counted as the first's: select them apart"},
		"and those in none are told":                          {in: in(pod("old", "10.1.0.3", selected)), want: "stable=[] canary=[]", problems: "ABRelease shop/release: PodInNoVariation: 1 pod (pod-10.1.0.3) of Service web in no variation, which get no requests from proxies: let a variation select them"},
		"and those that others get to as well":                {in: in(pod("canary", "10.1.0.2", selected), pod("canary", "10.1.0.3", selected)), want: "stable=[] canary=[10.1.0.2:8080 10.1.0.3:8080]", problems: "ABRelease shop/release: SelectorsOverlap: 2 pods (pod-10.1.0.2) of canary selected by Service web, which gives them requests of clients without a proxy at every weight: let its selector not match them"},
		"and nothing of the stable one, as it may be":         {in: in(pod("stable", "10.1.0.1", selected)), want: "stable=[10.1.0.1:8080] canary=[]"},
		"and none that is quarantined":                        {in: ir.Inputs{Pods: []ir.Pod{pod("canary", "10.1.0.2")}, Quarantined: []traffic.Workload{{Namespace: "shop", Kind: "Deployment", Name: "canary"}}}, want: "stable=[] canary=[10.1.0.2:8080-Quarantined]"},
		"at addresses of IPv6 that proxies do not take (M10)": {svc: dualStack, in: in(pod("stable", "10.1.0.1")), want: "stable=[10.1.0.1:8080] canary=[]", problems: "ABRelease shop/release: IPv6NotSplit: proxies take no connections to IPv6, so clients that connect to fd00::1 of Service web bypass the split. Set mesh.inject.ipv6 and restart the clients, or give the Service IPv4 alone"},
		"at addresses of IPv6 that proxies take (M10)":        {svc: dualStack, in: ir.Inputs{IPv6: true, Pods: []ir.Pod{pod("stable", "10.1.0.1")}}, want: "stable=[10.1.0.1:8080] canary=[]"},
		"also of a Service without the label":                 {svc: web(func(s *corev1.Service) { s.Labels = nil }), in: in(pod("stable", "10.1.0.1")), want: "stable=[10.1.0.1:8080] canary=[]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.svc == nil {
				tc.svc = web()
			}
			tc.in.Services, tc.in.Splits = []*corev1.Service{tc.svc}, []traffic.Split{tenth()}
			m := ir.Build(tc.in)
			addresses := "10.0.0.1:80"
			if tc.svc == dualStack {
				addresses += " [fd00::1]:80"
			}
			if d := cmp.Diff("shop/web "+addresses+" HTTP "+tc.want, written(m)); d != "" {
				t.Errorf("the mesh (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.problems, problems(m)); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
			if m.Services[0].Sequence != 7 {
				t.Errorf("the sequence is %d, want the split's", m.Services[0].Sequence)
			}
		})
	}
}

func TestAVariationIsServedByAnotherOne(t *testing.T) {
	in := ir.Inputs{
		Services: []*corev1.Service{web()}, Pods: []ir.Pod{pod("stable", "10.1.0.1"), pod("canary", "10.1.0.2")},
		Splits: []traffic.Split{tenth(func(s *traffic.Split) { s.Variations[1].ServedBy = "stable" })},
	}
	m := ir.Build(in)
	if d := cmp.Diff("shop/web 10.0.0.1:80 HTTP stable=[10.1.0.1:8080] canary=[10.1.0.1:8080]", written(m)); d != "" {
		t.Errorf("the mesh (-want +got):\n%s", d)
	}
	if d := cmp.Diff("", problems(m)); d != "" {
		t.Errorf("the problems (-want +got):\n%s", d)
	}
	if n := ir.CountEndpoints(in.Services[0], in.Splits[0], append(in.Pods, pod("canary", "10.1.0.3")), nil)["canary"].Ready; n != 2 {
		t.Errorf("%d pods of the canary are ready, want its own two", n)
	}
}

func TestTheReadyAreCountedOnThePortThatHasFewest(t *testing.T) {
	svc := web(func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "http-admin", Port: 81, TargetPort: intstr.FromString("admin")})
	})
	admin := func(p *ir.Pod) { p.Ports = map[string]uint16{"admin": 9090} }
	m := ir.Build(ir.Inputs{
		Services: []*corev1.Service{svc}, Splits: []traffic.Split{tenth()},
		Pods: []ir.Pod{pod("stable", "10.1.0.1", admin), pod("stable", "10.1.0.2"), pod("canary", "10.1.0.3")},
	})
	if d := cmp.Diff(map[string]traffic.Endpoints{"stable": {Ready: 1, Targets: 1}, "canary": {}}, m.Services[0].Endpoints()); d != "" {
		t.Errorf("ready (-want +got):\n%s", d)
	}
}

func TestASplitIsRefusedWhen(t *testing.T) {
	long := strings.Repeat("a", 200)
	match := func(header string, values map[string]string) func(*traffic.Split) {
		return func(s *traffic.Split) { s.Match = traffic.Match{Header: header, Values: values} }
	}
	key := func(kind traffic.KeyKind, name string) func(*traffic.Split) {
		return func(s *traffic.Split) { s.Key = traffic.Key{Kind: kind, Name: name} }
	}
	// cookie with a domain and the attribute Secure.
	cookie := func(name, domain string) func(*traffic.Split) {
		return func(s *traffic.Split) {
			s.Key = traffic.Key{Kind: traffic.ByVisitor, Name: name, Domain: domain, Secure: true}
		}
	}
	tests := map[string]struct {
		change func(*traffic.Split)
		want   string
	}{
		"its weights are not the whole": {func(s *traffic.Split) {
			s.Shares = traffic.Shares{{Variation: "stable", Weight: 9_000}, {Variation: "canary"}}
		}, "InvalidSplit: the weights add up to 9000, want 10000"},
		"a variation has no weight":                           {func(s *traffic.Split) { s.Variations[1].Name = "beta" }, `InvalidVariation: variation "beta" has no weight`},
		"a weight has no variation":                           {func(s *traffic.Split) { s.Variations = s.Variations[:1] }, "InvalidVariation: canary has a weight and is declared 0 times"},
		"a variation is not named as a label":                 {func(s *traffic.Split) { s.Variations[1].Name, s.Shares[1].Variation = "a|b", "a|b" }, `InvalidVariation: variation "a|b" is not named`},
		"a variation has no pods by either":                   {func(s *traffic.Split) { s.Variations[1].Workload = nil }, "InvalidVariation: variation canary needs a selector or a workload"},
		"a variation selects everything":                      {func(s *traffic.Split) { s.Variations[0].Selector = &metav1.LabelSelector{} }, "InvalidVariation: variation stable needs a valid selector"},
		"the cookie's name is too long":                       {key(traffic.ByVisitor, long), "InvalidKey: the cookie's name \"" + long[:40] + "...\" is not"},
		"the cookie's name adds to a header":                  {key(traffic.ByVisitor, "a=b; Domain=example.com;"), "InvalidKey: the cookie's name"},
		"the cookie's domain adds to a header (L4)":           {cookie("v", "example.com; Path=/a"), "InvalidKey: the cookie's domain \"example.com; Path=/a\" is not named as example.com"},
		"the cookie's domain has one label (L4)":              {cookie("v", "localhost"), "InvalidKey: the cookie's domain \"localhost\" is not named"},
		"browsers would not keep the domain (L4)":             {cookie("__Host-v", "example.com"), "InvalidKey: browsers take cookie __Host-v without a domain alone"},
		"browsers would not keep the cookie":                  {key(traffic.ByVisitor, "__Host-v"), "InvalidKey: browsers take cookie __Host-v with the attribute Secure alone: set secure to Always"},
		"the header's name ends a line":                       {key(traffic.ByHeader, "x-user\r\nx-evil"), "InvalidKey: the header's name"},
		"the header is the proxy's own":                       {key(traffic.ByHeader, "X-Plb-Visitor"), "InvalidKey: header x-plb-visitor belongs"},
		"the kind is unknown":                                 {key(9, "x"), "InvalidKey: visitors cannot be known by kind 9"},
		"the salt means something in a pattern":               {func(s *traffic.Split) { s.Salt = `\1` }, `InvalidSalt: the salt "\\1" is not`},
		"there is no salt":                                    {func(s *traffic.Split) { s.Salt = "" }, `InvalidSalt: the salt "" is not`},
		"the override is a pseudo header":                     {func(s *traffic.Split) { s.Override = ":path" }, "InvalidHeader: the header's name"},
		"the override is Envoy's":                             {func(s *traffic.Split) { s.Override = "X-Envoy-Retry-On" }, "InvalidHeader: header x-envoy-retry-on belongs"},
		"a value goes to nobody":                              {match("x-group", map[string]string{"beta": "b"}), `InvalidMatch: header x-group: "beta" goes to "b", which is no variation`},
		"a value cannot be sent":                              {match("x-group", map[string]string{"a\r\nb": "canary"}), `InvalidMatch: header x-group: "a\r\nb" is not`},
		"of two values that cannot be sent the first is told": {match("x-group", map[string]string{"b\n": "canary", "a\n": "canary"}), `InvalidMatch: header x-group: "a\n" is not`},
		"a header is mapped without values":                   {match("x-group", nil), "InvalidMatch: 0 values of header x-group are mapped"},
		"values are mapped without a header":                  {match("", map[string]string{"beta": "canary"}), "InvalidHeader: the header's name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := ir.Build(ir.Inputs{Services: []*corev1.Service{web()}, Splits: []traffic.Split{tenth(tc.change)}})
			if got, want := problems(m), "ABRelease shop/release: "+tc.want; !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
				t.Errorf("got %s\nwant one that begins %s", got, want)
			}
			if d := cmp.Diff("shop/web 10.0.0.1:80 HTTP =[]", written(m)); d != "" {
				t.Errorf("the service is managed without it (-want +got):\n%s", d)
			}
			m = ir.Build(ir.Inputs{Services: []*corev1.Service{web(func(s *corev1.Service) { s.Labels = nil })}, Splits: []traffic.Split{tenth(tc.change)}})
			if len(m.Services) > 0 {
				t.Errorf("nobody else wants it managed, and there is %s", written(m))
			}
		})
	}
}

func TestASplitIsRefusedForItsService(t *testing.T) {
	second := tenth(func(s *traffic.Split) { s.Name, s.Created = "a-second", time.Unix(9, 0) })
	tests := map[string]struct {
		in   ir.Inputs
		want string
	}{
		"when there is none":      {ir.Inputs{Splits: []traffic.Split{tenth()}}, "ABRelease shop/release: ServiceNotFound: there is no Service web: create it or name another"},
		"when an older one is it": {ir.Inputs{Services: []*corev1.Service{web()}, Splits: []traffic.Split{second, tenth()}}, "ABRelease shop/a-second: AnotherSplit: ABRelease shop/release divides the requests of Service web already: delete one of them"},
		"when that is refused": {ir.Inputs{Services: []*corev1.Service{web(func(s *corev1.Service) { s.Spec.Ports = nil })}, Splits: []traffic.Split{tenth()}},
			"ABRelease shop/release: ServiceRefused: Service web cannot be managed: NoPorts\nService shop/web: NoPorts: it has no ports: declare one"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, problems(ir.Build(tc.in))); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
		})
	}
}

func TestHeadersHaveNoCaseAndCookiesHave(t *testing.T) {
	m := ir.Build(ir.Inputs{Services: []*corev1.Service{web()}, Splits: []traffic.Split{tenth(func(s *traffic.Split) {
		s.Key, s.Override = traffic.Key{Kind: traffic.ByCookie, Name: "JSESSIONID"}, "X-Variation"
		s.Match = traffic.Match{Header: "X-Group", Values: map[string]string{"Beta": "canary"}}
	})}})
	got := m.Services[0].Routing
	want := traffic.Routing{Key: traffic.Key{Kind: traffic.ByCookie, Name: "JSESSIONID"}, Override: "x-variation", Match: traffic.Match{Header: "x-group", Values: map[string]string{"Beta": "canary"}}, Shares: got.Shares, Salt: "s1"}
	if d := cmp.Diff(want, *got); d != "" {
		t.Errorf("the routing (-want +got):\n%s", d)
	}
}

func TestAHeaderThatVisitorsAreKnownByHasNoCase(t *testing.T) {
	m := ir.Build(ir.Inputs{Services: []*corev1.Service{web()}, Splits: []traffic.Split{tenth(func(s *traffic.Split) { s.Key = traffic.Key{Kind: traffic.ByHeader, Name: "X-User"} })}})
	if got := m.Services[0].Routing.Key; got != (traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}) {
		t.Errorf("the key is %+v", got)
	}
}

// The bounds stand in the reference of the kind.
func TestWhatIsJustWithinTheBoundsIsTaken(t *testing.T) {
	values := func(count, length int) func(*traffic.Split) {
		return func(s *traffic.Split) {
			s.Match = traffic.Match{Header: "x-group", Values: map[string]string{}}
			for i := range count {
				s.Match.Values[fmt.Sprintf("%0*d", length, i)] = "canary"
			}
		}
	}
	key := func(kind traffic.KeyKind, length int) func(*traffic.Split) {
		return func(s *traffic.Split) { s.Key = traffic.Key{Kind: kind, Name: strings.Repeat("a", length)} }
	}
	for name, tc := range map[string]struct {
		change func(*traffic.Split)
		want   string
	}{
		"a header of 64 characters": {key(traffic.ByHeader, 64), ""},
		"but not of 65":             {key(traffic.ByHeader, 65), "InvalidKey: the header's name \"" + strings.Repeat("a", 40) + "...\" is not 1 to 64 characters of a token"},
		"a cookie of 64 characters": {key(traffic.ByCookie, 64), ""},
		"but not one of 65":         {key(traffic.ByCookie, 65), "InvalidKey: the cookie's name \"" + strings.Repeat("a", 40) + "...\" is not 1 to 64 characters of a token"},
		"a cookie over TLS alone (L4)": {func(s *traffic.Split) {
			s.Key = traffic.Key{Kind: traffic.ByVisitor, Name: "__Host-visitor", Secure: true}
		}, ""},
		"a cookie of a domain (L4)": {func(s *traffic.Split) {
			s.Key = traffic.Key{Kind: traffic.ByVisitor, Name: "visitor", Domain: "shop.example.com"}
		}, ""},
		"a cookie that is kept elsewhere": {func(s *traffic.Split) { s.Key = traffic.Key{Kind: traffic.ByCookie, Name: "__Host-session"} }, ""},
		"64 values":                       {values(64, 2), ""},
		"but not 65 of them":              {values(65, 2), "InvalidMatch: 65 values of header x-group are mapped, want 1 to 64"},
		"a value of 256 characters":       {values(1, 256), ""},
		"but not of 257":                  {values(1, 257), "InvalidMatch: header x-group: \"" + strings.Repeat("0", 40) + "...\" is not 1 to 256 printable characters without spaces around"},
		"40 characters are told":          {func(s *traffic.Split) { s.Salt = strings.Repeat("+", 40) }, "InvalidSalt: the salt \"" + strings.Repeat("+", 40) + "\" is not 1 to 64 letters, digits, _ or -"},
		"of 41 characters those are told": {func(s *traffic.Split) { s.Salt = strings.Repeat("+", 41) }, "InvalidSalt: the salt \"" + strings.Repeat("+", 40) + "...\" is not 1 to 64 letters, digits, _ or -"},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if want != "" {
				want = "ABRelease shop/release: " + want
			}
			m := ir.Build(ir.Inputs{Services: []*corev1.Service{web()}, Splits: []traffic.Split{tenth(tc.change)}})
			if d := cmp.Diff(want, problems(m)); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
		})
	}
}
