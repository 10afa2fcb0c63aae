// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// checkCoverage compares what guards name with what is registered.
func checkCoverage(s *Snapshot) []Finding {
	switch {
	case !s.Guards.known():
		return []Finding{s.Guards.unknown("the objects that the guards cover")}
	case !s.Webhooks.known():
		return []Finding{s.Webhooks.unknown("which kinds are registered")}
	case !s.Resources.known():
		return []Finding{s.Resources.unknown("which kinds the API server serves")}
	case len(s.Guards.Value) == 0:
		return []Finding{{Severity: Info, Message: "there is no guard: no object is watched yet",
			Fix: "kubectl apply -f examples/guard.yaml"}}
	}
	var out []Finding
	for i := range s.Guards.Value {
		g := &s.Guards.Value[i]
		for _, r := range specguard.ListResources(&g.Spec) {
			if f, found := coverageOf(s, g, r); found {
				out = append(out, f)
			}
		}
		if slices.Contains(specguard.ExcludedNamespaces(s.Namespace), g.Namespace) && g.Namespace != "" {
			out = append(out, Finding{Severity: Warning, Object: g.ID(), Message: "its namespace is excluded from admission and never guarded", Fix: "remove the guard"})
		}
	}
	return out
}

func coverageOf(s *Snapshot, g *Guard, r specguard.NamedResource) (Finding, bool) {
	f := Finding{Severity: Warning, Object: g.ID()}
	served, found := s.resourceOf(r.GuardedResource)
	if !found {
		f.Message = fmt.Sprintf("it guards %s of %s, which the API server does not serve: no object of it is watched", r.Kind, r.APIVersion)
		f.Fix = "install the kind, or take it out of " + r.Path.String()
		return f, true
	}
	t := target{served.Group, served.Name}
	rules := verdictRules(s)
	if !t.request(admissionv1.Create).matchesAny(rules) {
		f.Message = fmt.Sprintf("it guards %s, which is not registered: changes are not seen at admission, and the assessor may lack the permission to read them", t)
		f.Fix = "add to guard.resources of the chart's values, and apply the chart again:\n" + entryOf(s, r.Category, served)
		return f, true
	}
	if scale := t.sub("scale"); s.serves(scale.group, scale.resource) && !scale.request(admissionv1.Update).matchesAny(rules) {
		f.Message = fmt.Sprintf("it guards %s without a registered /scale: the writers of scalings are unknown", t)
		f.Fix = "set scale: true on its entry in guard.resources, and apply the chart again"
		return f, true
	}
	return Finding{}, false
}

// entryOf returns the entry of guard.resources that registers a kind.
func entryOf(s *Snapshot, category v1alpha1.ResourceCategory, served Resource) string {
	if category != "" {
		return fmt.Sprintf("- %s", category)
	}
	return fmt.Sprintf("- {group: %q, version: %s, resource: %s%s}", served.Group, served.Version, served.Name, scaleWords(s, target{served.Group, served.Name}))
}

func scaleWords(s *Snapshot, t target) string {
	if s.serves(t.group, t.sub("scale").resource) {
		return ", scale: true"
	}
	return ""
}

func verdictRules(s *Snapshot) []admissionv1.RuleWithOperations {
	for _, w := range s.ours() {
		if !w.Mutating {
			return w.Rules
		}
	}
	return nil
}

// resourceOf finds the resource of a guarded kind, in any version of its group.
func (s *Snapshot) resourceOf(r v1alpha1.GuardedResource) (Resource, bool) {
	version, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return Resource{}, false
	}
	for _, served := range s.Resources.Value {
		// A subresource may have its parent's kind.
		if served.Group == version.Group && served.Kind == r.Kind && served.Namespaced && !slices.Contains([]byte(served.Name), '/') {
			return served, true
		}
	}
	return Resource{}, false
}

// checkGuardConditions repeats what the assessor says about guards.
func checkGuardConditions(s *Snapshot) []Finding {
	if !s.Guards.known() {
		return []Finding{s.Guards.unknown("whether the guards are active")}
	}
	if len(s.Guards.Value) == 0 {
		return []Finding{{Severity: OK, Message: "there is no guard that could be out of force"}}
	}
	var out []Finding
	for i := range s.Guards.Value {
		out = append(out, conditionsOf(s, &s.Guards.Value[i])...)
	}
	return out
}

func conditionsOf(s *Snapshot, g *Guard) []Finding {
	describe := "kubectl describe " + g.ID()
	if g.Namespace != "" {
		describe = fmt.Sprintf("kubectl describe specguard %s -n %s", g.Name, g.Namespace)
	}
	var out []Finding
	say := func(severity Severity, format string, args ...any) {
		out = append(out, Finding{Severity: severity, Object: g.ID(), Message: fmt.Sprintf(format, args...), Fix: describe})
	}
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case g.Status.ObservedGeneration < g.Generation:
		say(Unknown, "the assessor has not taken in its generation %d yet", g.Generation)
	case ready == nil:
		say(Unknown, "the assessor has not reported on it")
	case g.suspended(s) && !s.Now.Before(g.Spec.Suspend.EndTime.Time):
		say(Warning, "its suspension ended at %s, and the assessor has not put it into force again", g.Spec.Suspend.EndTime.UTC().Format(time.RFC3339))
	case g.suspended(s):
		say(Info, "it is suspended until %s: %s", g.Spec.Suspend.EndTime.UTC().Format(time.RFC3339), g.Spec.Suspend.Reason)
	case ready.Status == metav1.ConditionFalse:
		say(Warning, "it is not ready (%s): %s", ready.Reason, ready.Message)
	case ready.Status != metav1.ConditionTrue:
		say(Unknown, "cannot tell whether it is active (%s): %s", ready.Reason, ready.Message)
	}
	if degraded := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionDegraded); degraded != nil && degraded.Status == metav1.ConditionTrue {
		say(Warning, "it is degraded (%s): %s", degraded.Reason, degraded.Message)
	}
	return out
}
