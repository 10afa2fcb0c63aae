// SPDX-License-Identifier: Apache-2.0

//go:build integration

package remediate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// BenchmarkDriftToPlan measures from the API server's answer to a write that
// drifts an object until the plan for it can be read, under an Immediate trigger.
func BenchmarkDriftToPlan(b *testing.B) {
	const objects = 40
	w := newWorld(b)
	start(b)
	w.UnderGuard()
	for i := range objects {
		w.running(fmt.Sprint("web-", i))
	}
	w.policy()
	w.untilPolicy("all are selected", counts(objects, 0, 0))
	var took []time.Duration
	i := 0
	for b.Loop() {
		name := fmt.Sprint("web-", i%objects) // with more rounds than objects writers would fight
		i++
		w.SetImage(alice, name, evil)
		at := time.Now()
		var plan v1alpha1.RemediationPlan
		poll.Confirmation.Until(b, patience, "there is a plan", func() error {
			for _, p := range w.plans() {
				if p.Status.Phase == "" && p.Spec.Plan.Targets[0].Name == name {
					plan = p
					return nil
				}
			}
			return fmt.Errorf("there is none")
		})
		took = append(took, time.Since(at))
		b.StopTimer()
		w.SetImage(alice, name, "registry.example/shop:1")
		w.UntilIs(name, "InSync")
		w.ready(name)
		w.end(&plan, v1alpha1.PlanSucceeded, v1alpha1.StepVerified, "")
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
}
