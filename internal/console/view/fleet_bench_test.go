// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// BenchmarkFleet makes the page of 10,000 objects in 200 namespaces.
func BenchmarkFleet(b *testing.B) {
	in := Fleet{Namespaces: map[string]labels.Set{}, Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	for i := range 10_000 {
		object := v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", i%200), Name: fmt.Sprintf("deployments.apps.web-%d", i)}}
		object.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprintf("web-%d", i)}
		object.Status.State = v1alpha1.StateInSync
		if i%50 == 0 {
			object.Status.State, object.Status.Severity = v1alpha1.StateDrifted, &v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 71}
		}
		in.Baselines = append(in.Baselines, object)
	}
	size := 0
	for b.Loop() {
		page := FleetOf(&in)
		body, _, err := Render(&page)
		if err != nil {
			b.Fatal(err)
		}
		size = len(body)
	}
	b.ReportMetric(float64(size), "bytes/page")
}
