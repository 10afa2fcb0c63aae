// SPDX-License-Identifier: Apache-2.0

package envoyxds_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// releases is what a cluster has, as whoever decides leaves it: the sequence of a
// service grows with each decision about it, and outlives its split.
type releases struct {
	services   map[string]*corev1.Service
	splits     map[string]traffic.Split // by their own name
	remembered map[types.NamespacedName]uint64
	made       int64
}

var shopNames = []string{"a", "b", "c"}

// effective is the split of a service that counts.
func (r *releases) inForce(service string) (name string, found bool) {
	for _, n := range slices.Sorted(maps.Keys(r.splits)) {
		s := r.splits[n]
		if s.Service == service && (!found || s.Created.Before(r.splits[name].Created)) {
			name, found = n, true
		}
	}
	return name, found
}

func (r *releases) last(service string) uint64 {
	last := r.remembered[types.NamespacedName{Namespace: "shop", Name: service}]
	if name, found := r.inForce(service); found {
		last = max(last, r.splits[name].Sequence)
	}
	return last
}

// decide says that the split of a service has another weight; true when it has one.
func (r *releases) decide(t *rapid.T, service string) bool {
	name, found := r.inForce(service)
	if !found {
		return false
	}
	s := r.splits[name]
	canary := traffic.Weight(rapid.IntRange(0, 10_000).Draw(t, "weight"))
	s.Shares = traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}}
	s.Sequence = r.last(service) + 1
	r.splits[name] = s
	return true
}

// divide makes one more split of a service. The first one is decided about at once;
// another one may say of itself what it wants.
func (r *releases) divide(t *rapid.T, service string) bool {
	_, second := r.inForce(service)
	r.made++
	name := fmt.Sprint("release-", r.made)
	variation := func(name string) traffic.Variation {
		return traffic.Variation{Name: name, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"v": name}}}
	}
	r.splits[name] = traffic.Split{
		Namespace: "shop", Name: name, Created: time.Unix(r.made, 0), Service: service,
		Variations: []traffic.Variation{variation("stable"), variation("canary")},
		Routing:    traffic.Routing{Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total}, {Variation: "canary", Reserved: traffic.Total}}, Salt: "s"},
		Sequence:   rapid.Uint64Range(0, 9).Draw(t, "sequence"),
	}
	return !second && r.decide(t, service)
}

// end of a split, of which the last sequence stays if it was in force.
func (r *releases) end(t *rapid.T, service string) {
	var of []string
	for _, n := range slices.Sorted(maps.Keys(r.splits)) {
		if r.splits[n].Service == service {
			of = append(of, n)
		}
	}
	if len(of) == 0 {
		return
	}
	name := rapid.SampledFrom(of).Draw(t, "split")
	if first, _ := r.inForce(service); first == name {
		r.remembered[types.NamespacedName{Namespace: "shop", Name: service}] = r.last(service)
	}
	delete(r.splits, name)
}

// change a Service: whether it is there, managed, and under a host.
func (r *releases) change(t *rapid.T, service string) {
	if rapid.Bool().Draw(t, "is gone") {
		delete(r.services, service)
		return
	}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: service, Labels: map[string]string{}}}
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
	s.Spec.ClusterIPs = []string{netip.AddrFrom4([4]byte{10, 0, 0, service[0]}).String()}
	if rapid.Bool().Draw(t, "is managed") {
		s.Labels[ir.Managed] = "true"
	}
	if rapid.Bool().Draw(t, "has a host") {
		s.Annotations = map[string]string{ir.HostsAnnotation: rapid.SampledFrom([]string{"x.example.com", "y.example.com"}).Draw(t, "host")}
	}
	r.services[service] = s
}

func (r *releases) inputs() ir.Inputs {
	in := ir.Inputs{Sequences: r.remembered}
	for _, s := range r.services {
		in.Services = append(in.Services, s)
	}
	for _, s := range r.splits {
		in.Splits = append(in.Splits, s)
	}
	return in
}

// A proxy refuses to go back to a lower sequence, so no event may lower that of the
// gateways' route, whatever it does to hosts; and each decision has to make it
// greater, or a replica that is behind could undo it.
func TestTheRouteOfAGatewayNeverGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &releases{services: map[string]*corev1.Service{}, splits: map[string]traffic.Split{}, remembered: map[types.NamespacedName]uint64{}}
		g := envoyxds.Gateway{Port: 8080}
		before := uint64(0)
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			service, decided := rapid.SampledFrom(shopNames).Draw(t, "service"), false
			switch rapid.SampledFrom([]string{"decide", "divide", "end", "change"}).Draw(t, "event") {
			case "decide":
				decided = r.decide(t, service)
			case "divide":
				decided = r.divide(t, service)
			case "end":
				r.end(t, service)
			case "change":
				r.change(t, service)
			}
			now := gatewayRoute(t, g, ir.Build(r.inputs()), "gateway|8080").Version.Sequence
			if now < before || decided && now == before {
				t.Fatalf("the sequence goes from %d to %d (decided: %t)", before, now, decided)
			}
			before = now
		}
	})
}
