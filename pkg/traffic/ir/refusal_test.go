// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// M9: a Service that asks for endpoints nearby is managed, and its owner is told what proxies do.
func TestAPreferenceForAZoneIsNamed(t *testing.T) {
	hint := func(value string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Annotations = map[string]string{corev1.AnnotationTopologyMode: value} }
	}
	const told = "Service shop/web: TrafficDistribution: proxies do not follow its "
	tests := map[string]struct {
		change func(*corev1.Service)
		want   string
	}{
		"a Service without a preference":   {func(*corev1.Service) {}, ""},
		"a field":                          {func(s *corev1.Service) { s.Spec.TrafficDistribution = new("PreferSameZone") }, told + "trafficDistribution PreferSameZone, and send requests to endpoints of all zones: take the field out, or take the Service out of the mesh"},
		"an annotation":                    {hint("Auto"), told + "service.kubernetes.io/topology-mode Auto, and send requests to endpoints of all zones: take the annotation out, or take the Service out of the mesh"},
		"an annotation that asks for none": {hint("disabled"), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mesh := ir.Build(ir.Inputs{Services: []*corev1.Service{web(tc.change)}})
			if d := cmp.Diff(tc.want, problems(mesh)); d != "" {
				t.Errorf("the problems (-want +got):\n%s", d)
			}
			if len(mesh.Services) != 1 {
				t.Error("the Service is left alone")
			}
		})
	}
}
