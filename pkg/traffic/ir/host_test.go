// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

func hosts(m ir.Mesh) (all []string) {
	for _, s := range m.Services {
		for _, h := range s.Hosts {
			all = append(all, fmt.Sprintf("%s %s=%d", s.Name, h.Name, h.Port))
		}
	}
	return all
}

func TestHostsOfAService(t *testing.T) {
	named := func(hosts string, more ...corev1.ServicePort) *corev1.Service {
		return web(func(s *corev1.Service) {
			s.Annotations = map[string]string{ir.HostsAnnotation: hosts}
			s.Spec.Ports = append(s.Spec.Ports, more...)
		})
	}
	younger := named("*.example.com,shop.example.com,b.example.com")
	younger.Name, younger.Spec.ClusterIPs, younger.CreationTimestamp = "a-younger", []string{"10.0.0.2"}, metav1.NewTime(time.Unix(9, 0))
	second, database := corev1.ServicePort{Name: "http-b", Port: 81}, corev1.ServicePort{Name: "db", Port: 70}
	tests := map[string]struct {
		services []*corev1.Service
		want     []string
		problems string
	}{
		"are sorted, small and without spaces":           {[]*corev1.Service{named(" *.Example.org ,,A.example.com")}, []string{"web *.example.org=80", "web a.example.com=80"}, ""},
		"mean the port that is HTTP":                     {[]*corev1.Service{named("a.example.com", database)}, []string{"web a.example.com=80"}, ""},
		"name one of several ports":                      {[]*corev1.Service{named("a.example.com=81,b.example.com=80", second)}, []string{"web a.example.com=81", "web b.example.com=80"}, ""},
		"mean nothing if it could be either":             {[]*corev1.Service{named("a.example.com", second)}, nil, `Service shop/web: InvalidHost: gateways do not serve it as "a.example.com": it has 2 HTTP ports (80, 81): say which one`},
		"lead to no port that is not HTTP":               {[]*corev1.Service{named("a.example.com=70", database)}, nil, `Service shop/web: InvalidHost: gateways do not serve it as "a.example.com=70": it has no HTTP port 70, but 80`},
		"lead to no port by its name":                    {[]*corev1.Service{named("a.example.com=http")}, nil, `Service shop/web: InvalidHost: gateways do not serve it as "a.example.com=http": "http" is no port of it, as in a.example.com=8080`},
		"are named once":                                 {[]*corev1.Service{named("a.example.com,a.example.com=80")}, []string{"web a.example.com=80"}, `Service shop/web: InvalidHost: gateways do not serve it as "a.example.com=80": a.example.com is named before already`},
		"are not everything":                             {[]*corev1.Service{named("*")}, nil, `Service shop/web: InvalidHost: gateways do not serve it as "*": plumbline.dev/hosts takes names as shop.example.com or *.example.com`},
		"belong to the older of two, the others to each": {[]*corev1.Service{younger, named("shop.example.com")}, []string{"a-younger *.example.com=80", "a-younger b.example.com=80", "web shop.example.com=80"}, "Service shop/a-younger: HostTaken: gateways do not serve it as shop.example.com, which belongs to Service shop/web: take it out of the annotation plumbline.dev/hosts of one of them"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := ir.Build(ir.Inputs{Services: tc.services})
			if d := cmp.Diff(tc.want, hosts(m)); d != "" {
				t.Errorf("the hosts (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.problems, problems(m)); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
		})
	}
}

// Whoever writes one annotation must not make each look at the mesh take seconds.
func TestALongListOfHostsCostsNoMoreThanItsFirstHundred(t *testing.T) {
	for name, entry := range map[string]func(i int) string{
		"of hosts":            func(i int) string { return fmt.Sprintf("h%d.example.com", i) },
		"of what is no host":  func(int) string { return "-" },
		"of one and the same": func(int) string { return "a.example.com" },
	} {
		t.Run(name, func(t *testing.T) {
			var list []string
			for i := range 20_000 {
				list = append(list, entry(i))
			}
			m := ir.Build(ir.Inputs{Services: []*corev1.Service{web(func(s *corev1.Service) {
				s.Annotations = map[string]string{ir.HostsAnnotation: strings.Join(list, ",")}
			})}})
			if n := len(m.Services[0].Hosts) + len(m.Problems); n != ir.MaxHosts+1 {
				t.Errorf("there are %d hosts and %d problems, want %d together", len(m.Services[0].Hosts), len(m.Problems), ir.MaxHosts+1)
			}
			last := "Service shop/web: InvalidHost: gateways serve only the first 100 hosts of its annotation plumbline.dev/hosts: make another Service for the others"
			if !strings.Contains(problems(m), last) {
				t.Errorf("nothing says that the others are left out: %.300s", problems(m))
			}
		})
	}
}

func TestAServiceThatIsLeftAloneTakesNoHost(t *testing.T) {
	hosts := func(s *corev1.Service) { s.Annotations = map[string]string{ir.HostsAnnotation: "a.example.com"} }
	refused := web(hosts, func(s *corev1.Service) { s.Name, s.Spec.ClusterIPs = "a", []string{"None"} })
	m := ir.Build(ir.Inputs{Services: []*corev1.Service{refused, web(hosts)}})
	if len(m.Services) != 1 || len(m.Services[0].Hosts) != 1 {
		t.Errorf("the mesh is %+v", m.Services)
	}
}

func TestTheSequenceOfAllIs(t *testing.T) {
	name := func(n string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: n} }
	other := tenth(func(s *traffic.Split) { s.Name, s.Service, s.Sequence = "other", "gone", 5 })
	second := tenth(func(s *traffic.Split) { s.Name, s.Sequence = "z-second", 100 })
	tests := map[string]struct {
		in   ir.Inputs
		want uint64
	}{
		"nothing without a decision":                    {ir.Inputs{Services: []*corev1.Service{web()}}, 0},
		"that of a split":                               {ir.Inputs{Services: []*corev1.Service{web()}, Splits: []traffic.Split{tenth()}}, 7},
		"also of a Service that is not there":           {ir.Inputs{Splits: []traffic.Split{other}}, 5},
		"and of one whose split is gone":                {ir.Inputs{Sequences: map[types.NamespacedName]uint64{name("web"): 8, name("gone"): 5}}, 13},
		"once for each Service, the later":              {ir.Inputs{Splits: []traffic.Split{tenth(), other}, Sequences: map[types.NamespacedName]uint64{name("web"): 6, name("gone"): 6}}, 13},
		"without a split that another one goes before":  {ir.Inputs{Splits: []traffic.Split{second, tenth()}}, 7},
		"without an order, which the store has not":     {ir.Inputs{Splits: []traffic.Split{tenth(), other}, Ordered: map[types.NamespacedName]bool{name("release"): true}}, 11},
		"with what was remembered of one that was last": {ir.Inputs{Splits: []traffic.Split{tenth()}, Sequences: map[types.NamespacedName]uint64{name("web"): 100}}, 100},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			if got := ir.Build(tc.in).Sequence; got != tc.want {
				t.Errorf("it is %d, want %d", got, tc.want)
			}
		})
	}
}
