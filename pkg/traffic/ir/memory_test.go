// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// versioned is a cluster of which each change gives an object another version.
type versioned struct {
	t       *rapid.T
	version int
	in      ir.Inputs
}

func (v *versioned) next() string { v.version++; return fmt.Sprint(v.version) }

func (v *versioned) service(i int) *corev1.Service {
	return web(func(s *corev1.Service) {
		s.Name, s.ResourceVersion = fmt.Sprint("web", i), v.next()
		s.Spec.ClusterIPs = []string{fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 4).Draw(v.t, "address"))} // two may want one
		if rapid.IntRange(0, 4).Draw(v.t, "unlabelled") == 0 {
			s.Labels = nil
		}
		if rapid.IntRange(0, 4).Draw(v.t, "refused") == 0 {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}
		if rapid.Bool().Draw(v.t, "hosted") {
			s.Annotations = map[string]string{ir.HostsAnnotation: rapid.SampledFrom([]string{"a.example.com", "b.example.com", "no host"}).Draw(v.t, "host")}
		}
		if rapid.IntRange(0, 4).Draw(v.t, "near") == 0 {
			s.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
		}
		if rapid.IntRange(0, 9).Draw(v.t, "unversioned") == 0 {
			s.ResourceVersion = ""
		}
	})
}

func (v *versioned) slice(i int) *discoveryv1.EndpointSlice {
	at := fmt.Sprintf("10.1.0.%d", rapid.IntRange(1, 3).Draw(v.t, "endpoint"))
	s := slice(discoveryv1.AddressTypeIPv4, 8080, at+rapid.SampledFrom([]string{"", " unready", " terminating"}).Draw(v.t, "state"))
	s.Name, s.ResourceVersion = fmt.Sprint("slice", i), v.next()
	s.Labels[discoveryv1.LabelServiceName] = fmt.Sprint("web", rapid.IntRange(0, 2).Draw(v.t, "of"))
	node := rapid.SampledFrom([]string{"n1", "n2"}).Draw(v.t, "node")
	s.Endpoints[0].NodeName = &node
	return s
}

// step changes something.
func (v *versioned) step() {
	switch rapid.SampledFrom([]string{"service", "no service", "slice", "no slice", "nodes", "IPv6", "consent", "quarantine", "split", "sequence", "nothing"}).Draw(v.t, "step") {
	case "service":
		i := rapid.IntRange(0, 2).Draw(v.t, "service")
		v.in.Services = append(without(v.in.Services, fmt.Sprint("web", i)), v.service(i))
	case "no service":
		v.in.Services = without(v.in.Services, fmt.Sprint("web", rapid.IntRange(0, 2).Draw(v.t, "service")))
	case "slice":
		i := rapid.IntRange(0, 3).Draw(v.t, "slice")
		v.in.Slices = append(without(v.in.Slices, fmt.Sprint("slice", i)), v.slice(i))
	case "no slice":
		v.in.Slices = without(v.in.Slices, fmt.Sprint("slice", rapid.IntRange(0, 3).Draw(v.t, "slice")))
	case "IPv6":
		v.in.IPv6 = !v.in.IPv6
	case "consent":
		v.in.Exports = map[string]string{"shop": rapid.SampledFrom([]string{"*", "bank", "wrong entry!"}).Draw(v.t, "exports")}
	case "nodes":
		v.in.Localities = map[string]ir.Locality{"n1": {Zone: rapid.SampledFrom([]string{"a", "b"}).Draw(v.t, "zone")}}
	case "quarantine":
		v.in.Quarantined = nil
		if rapid.Bool().Draw(v.t, "quarantined") {
			v.in.Quarantined = []ir.Workload{{Namespace: "shop", Kind: "Deployment", Name: rapid.SampledFrom([]string{"web", "canary"}).Draw(v.t, "workload")}}
		}
	case "split":
		v.in.Splits = nil
		if rapid.Bool().Draw(v.t, "divided") {
			v.in.Splits = []ir.Split{tenth(func(s *ir.Split) {
				s.Service, s.Sequence = fmt.Sprint("web", rapid.IntRange(0, 2).Draw(v.t, "divides")), uint64(v.version)
			})}
		}
	case "sequence":
		v.in.Sequences = map[types.NamespacedName]uint64{{Namespace: "shop", Name: "web0"}: uint64(v.version)}
	}
}

func without[T metav1.Object](objects []T, name string) (left []T) {
	for _, o := range objects {
		if o.GetName() != name {
			left = append(left, o)
		}
	}
	return left
}

// M5 of the review of the mesh: a mesh with kept services equals one that is made anew.
func TestAMeshThatIsBuiltWithAMemoryIsTheMesh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := &versioned{t: t}
		for i := range 3 {
			v.in.Pods = append(v.in.Pods, pod([]string{"web", "canary", "other"}[i], fmt.Sprint("10.1.0.", i+1)))
			v.in.Services = append(v.in.Services, v.service(i))
			v.in.Slices = append(v.in.Slices, v.slice(i))
		}
		var memory ir.Memory
		for range rapid.IntRange(1, 12).Draw(t, "looks") {
			if diff := cmp.Diff(ir.Build(v.in), memory.Build(v.in), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})); diff != "" {
				t.Fatalf("(-made anew +kept):\n%s", diff)
			}
			v.step()
		}
	})
}
