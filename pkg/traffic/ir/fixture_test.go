// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// web is a Service that is managed, with one HTTP port.
func web(changes ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{ir.Managed: "true"}},
		Spec: corev1.ServiceSpec{
			ClusterIPs: []string{"10.0.0.1"}, Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	for _, change := range changes {
		change(svc)
	}
	return svc
}

// slice of the Service web; each endpoint is an address, and what is not usual of it:
// "10.1.0.1 terminating", "10.1.0.2 unready", "10.1.0.3 ready", "10.1.0.4 serving".
func slice(family discoveryv1.AddressType, port int32, endpoints ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: family,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: &port}},
	}
	for _, text := range endpoints {
		address, what, _ := strings.Cut(text, " ")
		e := discoveryv1.Endpoint{Addresses: []string{address}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "pod-" + address}}
		if what != "" {
			e.Conditions.Ready, e.Conditions.Serving = new(what == "ready"), new(what != "unready")
			e.Conditions.Terminating = new(what == "terminating")
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// pod of a Deployment.
func pod(deployment, address string, changes ...func(*ir.Pod)) ir.Pod {
	p := ir.Pod{
		Namespace: "shop", Name: "pod-" + address, Ready: true,
		Labels:    map[string]string{"version": deployment},
		Workload:  traffic.Workload{Namespace: "shop", Kind: "Deployment", Name: deployment},
		Addresses: []netip.Addr{netip.MustParseAddr(address)},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// tenth gives a tenth of web to the canary.
func tenth(changes ...func(*traffic.Split)) traffic.Split {
	s := traffic.Split{
		Namespace: "shop", Name: "release", Service: "web", Sequence: 7,
		Variations: []traffic.Variation{
			{Name: "stable", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"version": "stable"}}},
			{Name: "canary", Workload: &traffic.Workload{Namespace: "shop", Kind: "Deployment", Name: "canary"}},
		},
		Routing: traffic.Routing{
			Shares: traffic.Shares{{Variation: "stable", Weight: 9_000}, {Variation: "canary", Weight: 1_000, Reserved: 10_000}},
			Key:    traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"}, Salt: "s1",
		},
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// written says what a mesh has in few words: "shop/web 10.0.0.1:80 HTTP stable=10.1.0.1:8080 ...".
func written(m ir.Mesh) string {
	var lines []string
	for _, s := range m.Services {
		for _, p := range s.Ports {
			words := []string{s.Namespace + "/" + s.Name}
			for _, a := range s.Addresses {
				words = append(words, netip.AddrPortFrom(a, p.Number).String())
			}
			words = append(words, p.Protocol.String())
			for _, slot := range p.Slots {
				words = append(words, slot.Variation+"=["+endpoints(slot)+"]")
			}
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return strings.Join(lines, "\n")
}

func endpoints(slot ir.Slot) string {
	var words []string
	for _, e := range slot.Endpoints {
		word := e.Address.String()
		if e.Locality != (ir.Locality{}) {
			word += "@" + e.Locality.Region + "/" + e.Locality.Zone
		}
		if e.State != ir.Ready {
			word += "-" + e.State.String()
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func problems(m ir.Mesh) string {
	var lines []string
	for _, p := range m.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}
