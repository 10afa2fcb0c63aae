// SPDX-License-Identifier: Apache-2.0

package ir_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

func TestSinceWhenAServiceHasItsLabel(t *testing.T) {
	early, late := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), metav1.NewTime(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	record := func(at *metav1.Time, fields string) func(*corev1.Service) {
		return func(s *corev1.Service) {
			e := metav1.ManagedFieldsEntry{Manager: "kubectl", Time: at, FieldsV1: metav1.NewFieldsV1(fields)}
			s.ManagedFields = append(s.ManagedFields, e)
		}
	}
	const label, other = `{"f:metadata":{"f:labels":{"f:plumbline.dev/managed":{}}}}`, `{"f:spec":{"f:ports":{}}}`
	unlabeled := func(s *corev1.Service) { s.Labels, s.Spec.Ports[0].AppProtocol = nil, new("http") }
	tests := map[string]struct {
		changes []func(*corev1.Service)
		want    time.Time
	}{
		"there is no record":                       {nil, time.Time{}},
		"its manager's last change":                {[]func(*corev1.Service){record(&late, label)}, late.Time},
		"of two managers the earlier":              {[]func(*corev1.Service){record(&late, label), record(&early, label)}, early.Time},
		"a manager of other fields does not count": {[]func(*corev1.Service){record(&early, other), record(&late, label)}, late.Time},
		"a record without a time does not count":   {[]func(*corev1.Service){record(nil, label)}, time.Time{}},
		"a Service that lost it does not have it":  {[]func(*corev1.Service){record(&late, label), unlabeled}, time.Time{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			svc := web(tc.changes...)
			svc.ManagedFields = ir.LabelOwners(svc) // as a cache keeps it
			in := ir.Inputs{Services: []*corev1.Service{svc}}
			if svc.Labels == nil {
				in.Splits = []traffic.Split{tenth()}
			}
			services := ir.Build(in).Services
			if len(services) != 1 || !services[0].LabeledSince.Equal(tc.want) {
				t.Errorf("%+v, want one since %s", services, tc.want)
			}
		})
	}
}
