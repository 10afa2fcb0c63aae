// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// BenchmarkDriftToPutBack measures from the API server's answer to a write that
// drifts an object until the object is as authorised again: found, planned,
// granted, tried and written, with each of that stored in etcd.
func BenchmarkDriftToPutBack(b *testing.B) {
	const objects = 60 // a third of them within ten minutes would be a mass drift
	startAssessor(b)
	w := newWorld(b)
	w.rollouts()
	w.UnderGuard()
	for i := range objects {
		w.Deploy(ci, fmt.Sprint("web-", i))
	}
	for i := range objects {
		w.UntilIs(fmt.Sprint("web-", i), "InSync")
	}
	w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Safety.MaxPerHour, s.Safety.MaxPerDay, s.Safety.MaxConcurrent = 1000, 1000, 10
		s.Health.Stabilisation = &metav1.Duration{}
		s.Exceptions.ActiveWriter = v1alpha1.Allowed
	})
	startExecutor(b, newEvidence(b))
	var took []time.Duration
	for i := 0; b.Loop() && i < objects/4; i++ {
		name := fmt.Sprint("web-", i)
		w.SetImage(mallory, name, "registry.example/evil:1")
		at := time.Now()
		w.Eventually("it is put back", func() error {
			if got := imageOf(w.Live(name)); got != guarded.Image {
				return fmt.Errorf("it runs %s", got)
			}
			return nil
		})
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
}
