// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"cmp"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// labelComponent names the component that an object belongs to.
const labelComponent = "app.kubernetes.io/name"

// setSeverity rates the drift; an object without drift has no severity.
func (r *Reconciler) setSeverity(s *subject, d *decision, status *v1alpha1.BaselineStatus) {
	status.Severity = worstSeverity(status.Findings, r.Environments.Of(s.key.Namespace), s.components(d), s.now)
	if status.Severity == nil {
		return
	}
	keepFirst(status.Severity, &d.before)
}

// keepFirst sets the level and the score at the first detection of the drift. A drift that
// goes on keeps those that it has; where no first score was stored, the last score is the
// earliest one that is known.
func keepFirst(rated *v1alpha1.Severity, before *v1alpha1.BaselineStatus) {
	rated.First, rated.FirstScore = rated.Level, new(rated.Score)
	if before.Severity == nil || before.FirstSeenTime == nil {
		return
	}
	rated.First = cmp.Or(before.Severity.First, rated.First)
	rated.FirstScore = cmp.Or(before.Severity.FirstScore, new(before.Severity.Score))
}

// worstSeverity gives the worst severity over all findings and components, nil without
// findings.
func worstSeverity(findings []v1alpha1.Finding, environment *v1alpha1.Environment, components []string, now time.Time) *v1alpha1.Severity {
	all := make([]v1alpha1.Severity, 0, len(components)*len(findings))
	for _, component := range components {
		in := surroundings(environment, component)
		for i := range findings {
			in.DriftType, in.Class = findings[i].Type, findings[i].Class
			in.Age = now.Sub(findings[i].FirstSeenTime.Time)
			all = append(all, severity.Score(in))
		}
	}
	return severity.Worst(all...)
}

// surroundings are the factors that do not depend on the finding.
func surroundings(environment *v1alpha1.Environment, component string) severity.Input {
	if environment == nil {
		return severity.Input{}
	}
	in := severity.Input{
		Criticality: environment.Spec.Criticality,
		Dependents:  severity.Dependents(component, environment.Spec.Dependencies),
	}
	for _, c := range environment.Spec.ComponentCriticality {
		if c.Component == component && c.Criticality != nil {
			in.ComponentCriticality = new(int(*c.Criticality))
		}
	}
	return in
}

// components lists the components that the object may belong to: the object's name,
// and the label of the newest version that is known. The write that drifts may set the
// label, so the label alone must not lower a severity.
func (s *subject) components(d *decision) []string {
	object := d.last.object
	for i := len(s.view.Pending) - 1; object == nil && i >= 0; i-- {
		object = s.view.Pending[i].Prev
	}
	if object == nil || object.Labels[labelComponent] == "" || object.Labels[labelComponent] == s.key.Name {
		return []string{s.key.Name}
	}
	return []string{s.key.Name, object.Labels[labelComponent]}
}
