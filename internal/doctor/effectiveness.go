// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Unanswered is a component that the newest assessment which asked for the component got no answer about.
type Unanswered struct {
	Component             v1alpha1.EffectComponent
	Namespace, Assessment string
	// Message says why, as the assessment does.
	Message string
	Time    time.Time
}

// effectivenessFlag is what the chart gives to an assessor that assesses effects.
const effectivenessFlag = "--effectiveness="

// checkSources finds sources that do not answer the assessor. Only the assessor reaches them.
func checkSources(s *Snapshot) []Finding {
	const what = "whether Alertmanager and Prometheus answer assessments"
	if s.Namespace == "" || !s.Workloads.known() {
		return []Finding{s.Workloads.unknown(what)}
	}
	switch {
	case !s.assessesEffects():
		return []Finding{{Severity: OK, Message: "the effect of remediations is not assessed"}}
	case !s.Remediation.Unanswered.known():
		return []Finding{s.Remediation.Unanswered.unknown(what)}
	}
	var out []Finding
	for _, u := range s.Remediation.Unanswered.Value {
		out = append(out, Finding{
			Severity: Warning, Object: "EffectivenessAssessment/" + u.Namespace + "/" + u.Assessment,
			Message: fmt.Sprintf("the newest assessment that asked for %s got no answer, at %s: %s", strings.ToLower(string(u.Component)), u.Time.UTC().Format(time.RFC3339), u.Message),
			Fix:     sourceFix(u.Component),
		})
	}
	return out
}

// assessesEffects tells whether the assessor assesses the effect of remediations.
func (s *Snapshot) assessesEffects() bool {
	return slices.ContainsFunc(s.Workloads.Value, func(w Workload) bool {
		return w.Name == AssessorName && w.arg(effectivenessFlag) == "true"
	})
}

func sourceFix(component v1alpha1.EffectComponent) string {
	const rest = ", at the NetworkPolicy of plumbline-assessor, and at the log of the assessor"
	switch component {
	case v1alpha1.ComponentAlerts:
		return "look at metrics.alertmanager in the values of the chart, at its watchdog too" + rest
	case v1alpha1.ComponentMetrics:
		return "look at metrics.prometheus in the values of the chart, at the queries of the policy" + rest
	case v1alpha1.ComponentHealth:
	}
	return "look at the permission of the assessor to list pods" + rest
}
