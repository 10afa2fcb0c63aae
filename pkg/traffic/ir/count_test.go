// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

func unready(p *ir.Pod) { p.Ready = false }

func ending(p *ir.Pod) { p.Terminating = true }

func TestCountEndpoints(t *testing.T) {
	type counts = map[string]traffic.Endpoints
	metrics := func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "metrics", Port: 9090, TargetPort: intstr.FromString("metrics")})
	}
	one := []ir.Pod{pod("stable", "10.1.0.1"), pod("canary", "10.1.0.2")}
	tests := map[string]struct {
		service     *corev1.Service
		pods        []ir.Pod
		quarantined []traffic.Workload
		change      func(*traffic.Split)
		want        counts
	}{
		"pods of a selector and of a workload":            {pods: append(one, pod("stable", "10.1.0.3"), pod("other", "10.1.0.4")), want: counts{"stable": {Ready: 2, Targets: 2}, "canary": {Ready: 1, Targets: 1}}},
		"one that ends is a target, and is not ready":     {pods: []ir.Pod{pod("stable", "10.1.0.1"), pod("canary", "10.1.0.2", ending)}, want: counts{"stable": {Ready: 1, Targets: 1}, "canary": {Targets: 1}}},
		"one that is not ready of those who have better":  {pods: append(one, pod("canary", "10.1.0.3", unready)), want: counts{"stable": {Ready: 1, Targets: 1}, "canary": {Ready: 1, Targets: 1}}},
		"a workload in quarantine is not ready":           {pods: one, quarantined: []traffic.Workload{{Namespace: "shop", Kind: "Deployment", Name: "canary"}}, want: counts{"stable": {Ready: 1, Targets: 1}, "canary": {Targets: 1}}},
		"a port that is not declared HTTP does not count": {service: web(metrics), pods: one, want: counts{"stable": {Ready: 1, Targets: 1}, "canary": {Ready: 1, Targets: 1}}},
		"unless none is": {service: web(metrics, func(s *corev1.Service) { s.Spec.Ports[0].Name = "main" }), pods: []ir.Pod{
			pod("stable", "10.1.0.1", func(p *ir.Pod) { p.Ports = map[string]uint16{"metrics": 9090} }), pod("canary", "10.1.0.2"),
		}, want: counts{"stable": {Ready: 1, Targets: 1}, "canary": {}}},
		"a Service that proxies leave alone is counted": {service: web(func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.ClusterIPs = corev1.ServiceAffinityClientIP, []string{corev1.ClusterIPNone}
		}), pods: one, want: counts{"stable": {Ready: 1, Targets: 1}, "canary": {Ready: 1, Targets: 1}}},
		"of a Service without ports nothing is counted": {service: web(func(s *corev1.Service) { s.Spec.Ports = nil }), pods: one, want: counts{}},
		"nor of a split that is not whole":              {pods: one, change: func(s *traffic.Split) { s.Variations = nil }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			split := tenth()
			if tc.change != nil {
				tc.change(&split)
			}
			service := tc.service
			if service == nil {
				service = web()
			}
			if d := cmp.Diff(tc.want, ir.CountEndpoints(service, split, tc.pods, tc.quarantined)); d != "" {
				t.Errorf("the endpoints (-want +got):\n%s", d)
			}
		})
	}
}

// What a release is clamped by must not depend on who routes its requests.
func TestEndpointsAreCountedAsProxiesHaveThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in ir.Inputs
		for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
			deployment := rapid.SampledFrom([]string{"stable", "canary", "other"}).Draw(t, "deployment")
			in.Pods = append(in.Pods, pod(deployment, fmt.Sprint("10.1.0.", i+1), func(p *ir.Pod) {
				p.Ready, p.Terminating = rapid.Bool().Draw(t, "ready"), rapid.Bool().Draw(t, "ends")
				if rapid.Bool().Draw(t, "has the port") {
					p.Ports = map[string]uint16{"admin": 9090}
				}
			}))
		}
		if rapid.Bool().Draw(t, "quarantine") {
			in.Quarantined = []traffic.Workload{{Namespace: "shop", Kind: "Deployment", Name: "canary"}}
		}
		svc := web(func(s *corev1.Service) {
			s.Spec.PublishNotReadyAddresses = rapid.Bool().Draw(t, "not ready addresses")
			for i, name := range []string{"http-admin", "metrics"} {
				if rapid.Bool().Draw(t, name) {
					s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: name, Port: 81 + int32(i), TargetPort: intstr.FromString("admin")}) //nolint:gosec // it is small
				}
			}
		})
		in.Services, in.Splits = []*corev1.Service{svc}, []traffic.Split{tenth()}
		if d := cmp.Diff(ir.Build(in).Services[0].Endpoints(), ir.CountEndpoints(svc, tenth(), in.Pods, in.Quarantined)); d != "" {
			t.Fatalf("the endpoints (-in the mesh +counted):\n%s", d)
		}
	})
}
