// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// RequestPasses says that the request of a person passes what holds a drift back, and that
// nothing else does. Limits and permissions that are not known yet may still hold the plan
// back.
func RequestPasses(in *Input, d *Drift) bool {
	spec := &in.Policy.Spec
	if in.Request != nil || spec.Mode != v1alpha1.PolicyModeActive || spec.Action == v1alpha1.ActionNotifyOnly {
		return false
	}
	asked := *in
	asked.Request = &Request{Namespace: d.Namespace, Targets: []Chosen{{Baseline: d.Baseline, DriftedHash: d.DriftedHash, Standing: StandingDrifted}}}
	return ObstacleTo(in, d).Reason != "" && ObstacleTo(&asked, d).Reason == ""
}

// RemediateCommand returns the command by which a person requests these drifts of one
// namespace.
func RemediateCommand(policy string, drifts ...*Drift) string {
	words := []string{"kubectl", "plumbline", "remediate"}
	for _, d := range drifts {
		kind := schema.FromAPIVersionAndKind(d.Target.APIVersion, d.Target.Kind).GroupKind()
		words = append(words, strings.ToLower(kind.String())+"/"+d.Target.Name)
	}
	return strings.Join(append(words, "-n", drifts[0].Namespace, "--policy", policy), " ")
}

// ExecuteCommand returns the command by which a person begins a plan that waits.
func ExecuteCommand(namespace, plan string) string {
	return "kubectl plumbline plan execute " + plan + " -n " + namespace
}

// WaitsForPerson says that a plan does not begin before a person executes it.
func WaitsForPerson(p *v1alpha1.PlannedRemediation) bool {
	return p.Trigger == v1alpha1.TriggerManual && p.Request == nil
}
