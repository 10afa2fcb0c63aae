// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// createVerb creates a policy from the values of an example that the caller has changed.
func createVerb() verb {
	v := editVerb()
	v.inputs = v.inputs[len(editInputs):] // a new policy has no version
	v.name, v.sent, v.asks, v.hasValues, v.creates = "create", "create the policy", nil, false, true
	v.inputs = append(v.inputs, "name", "environmentName")
	v.request = func(r *reader, _ client.ObjectKey) (*request, error) {
		body := map[string]any{"name": r.value("name"), "environmentName": r.value("environmentName")}
		applyFields(body, r.values)
		return post("/remediation/policies", body), nil
	}
	v.leads = func(r *reader) string { return view.PolicyPathOf(r.value("name")) }
	return v
}

// examplePolicy has the values of examples/remediation.yaml that the form has. Its times are those of the maintenance window there.
func examplePolicy() *v1alpha1.RemediationPolicy {
	return &v1alpha1.RemediationPolicy{Spec: v1alpha1.RemediationPolicySpec{
		Trigger: "AgeThreshold", Action: "Reconcile", Strategy: "Rolling", MinimumSeverity: v1alpha1.SeverityHigh,
		MinimumDriftAge: &metav1.Duration{Duration: 15 * time.Minute}, MaximumDriftAge: &metav1.Duration{Duration: 24 * time.Hour},
		Safety: v1alpha1.RemediationSafety{MaxConcurrent: 2, MaxPerHour: 10, Cooldown: &metav1.Duration{Duration: 5 * time.Minute}},
		Schedule: v1alpha1.RemediationSchedule{
			AllowedDays:  []v1alpha1.Weekday{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"},
			AllowedStart: "02:00", AllowedEnd: "06:00",
		},
	}}
}

// readCreation reads the Environments that a new policy can be of.
func readCreation(r *reader) (view.Page, error) {
	body, err := policyBody(examplePolicy())
	if err != nil {
		return view.Page{}, err
	}
	in := view.PolicyCreation{Example: fieldsOf(body), Unread: r.unread}
	environments := maybe[v1alpha1.Environment](r, "Environment", "", func() client.ObjectList { return &v1alpha1.EnvironmentList{} })
	for i := range environments {
		in.Environments = append(in.Environments, environments[i].Name)
	}
	in.Now = r.Now()
	return view.PolicyCreationOf(&in), nil
}
