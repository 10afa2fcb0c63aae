// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/monitoring"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// alertOf is an alert about the Deployment web of a world, from a sender that renews it for the whole test.
func (w *world) alertOf(since, ends time.Time) monitoring.Alert {
	return monitoring.Alert{Labels: map[string]string{"alertname": "HighErrorRate", "namespace": w.Name, "deployment": "web"}, Starts: since, Ends: ends}
}

// A real Alertmanager tells the assessor what became of the alerts about a target. The assessor asks in the rights
// that the chart gives.
func TestAlertsTellWhetherARepairHelped(t *testing.T) {
	alerts := monitoring.StartAlertmanager(t, `{route: {receiver: "none"}, receivers: [{name: "none"}]}`)
	alerts.PostAlerts(monitoring.Alert{Labels: map[string]string{"alertname": "Watchdog"}, Starts: time.Now().Add(-time.Hour), Ends: time.Now().Add(time.Hour)})
	startAssessor(t, assessesEffects, func(s *assessor.Setup) {
		s.Effectiveness.Alertmanager.URL, s.Effectiveness.Watchdog = alerts.URL(), "Watchdog"
	})
	startExecutor(t, newEvidence(t))
	tests := map[string]struct {
		// after happens when the alerts of before the write are known.
		after    func(w *world, first monitoring.Alert)
		want     end
		measured v1alpha1.MeasuredAlerts
	}{
		"an alert that is resolved": {
			func(w *world, first monitoring.Alert) {
				first.Ends = time.Now().Add(-time.Second)
				alerts.PostAlerts(first)
			},
			effective(), v1alpha1.MeasuredAlerts{Before: 1, Resolved: 1},
		},
		"an alert that fires again since the write": {
			func(w *world, first monitoring.Alert) {
				first.Ends = time.Now().Add(-time.Second)
				alerts.PostAlerts(first)
				alerts.PostAlerts(w.alertOf(time.Now(), time.Now().Add(time.Hour)))
			},
			end{v1alpha1.AssessmentCompleted, v1alpha1.AssessedFull, v1alpha1.VerdictIneffective, 5_333, v1alpha1.IntegrityUnchanged},
			v1alpha1.MeasuredAlerts{Before: 1, Firing: 1, New: 1},
		},
	}
	t.Run("cases", func(t *testing.T) {
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.Rollouts()
				w.UnderGuard()
				first := w.alertOf(time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
				alerts.PostAlerts(first)
				plan := reconciled(w)
				w.Pods("web", remediation.PodReady, remediation.PodReady)
				w.assessed(plan, 0, "the alerts of before the write are known", func(a *v1alpha1.EffectivenessAssessment) bool {
					return a.Status.AlertsBefore != nil && len(a.Status.AlertsBefore.Alerts) == 1
				})
				tc.after(w, first)
				a := w.assessed(plan, 0, "the assessment ends", hasEnded)
				if diff := cmp.Diff(tc.want, endOf(a)); diff != "" {
					t.Errorf("the end (-want +got):\n%s%+v", diff, a.Status.Components)
				}
				for _, c := range a.Status.Components {
					if c.Name != v1alpha1.ComponentAlerts {
						continue
					}
					if diff := cmp.Diff(&tc.measured, c.Alerts); diff != "" {
						t.Errorf("the alerts (-want +got):\n%s", diff)
					}
				}
			})
		}
	})
}
