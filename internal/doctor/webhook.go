// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Names that the chart gives; they do not depend on the release.
const (
	// ConfigurationName is that of both webhook configurations.
	ConfigurationName = "plumbline"
	// InjectionName is that of the configuration for pods that ask for a proxy, which is
	// there with the mesh.
	InjectionName = "plumbline-inject"
	// WebhookName is that of the webhook's Deployment, Service and lease.
	WebhookName = "plumbline-webhook"
	// AssessorName is that of the assessor's Deployment and lease.
	AssessorName = "plumbline-assessor"
	// RedisName is that of the Deployment of Redis.
	RedisName = "plumbline-redis"
	// SecretName holds the webhook's certificates.
	SecretName = "plumbline-webhook-tls"

	hashWebhook      = "spec-hash.plumbline.dev"
	verdictWebhook   = "verdict.plumbline.dev"
	conditionName    = "watched-content-changed"
	podConditionName = "not-a-controllers-pod"
	maxTimeout       = 5
	ourWebhooksCount = 2
)

func isOurs(w *Webhook) bool { return w.Configuration == ConfigurationName }

func (w *Webhook) object() string {
	if w.Mutating {
		return "MutatingWebhookConfiguration/" + w.Configuration
	}
	return "ValidatingWebhookConfiguration/" + w.Configuration
}

// ours are Plumbline's own two webhooks, as far as they are registered.
func (s *Snapshot) ours() []*Webhook {
	var out []*Webhook
	for i := range s.Webhooks.Value {
		w := &s.Webhooks.Value[i]
		if isOurs(w) && (w.Name == hashWebhook && w.Mutating || w.Name == verdictWebhook && !w.Mutating) {
			out = append(out, w)
		}
	}
	return out
}

// injection are the webhooks for pods that ask for a proxy.
func (s *Snapshot) injection() []*Webhook {
	var out []*Webhook
	for i := range s.Webhooks.Value {
		if w := &s.Webhooks.Value[i]; w.Mutating && w.Configuration == InjectionName {
			out = append(out, w)
		}
	}
	return out
}

func checkRegistration(s *Snapshot) []Finding {
	if !s.Webhooks.known() {
		return []Finding{s.Webhooks.unknown("how the webhooks are registered")}
	}
	var out []Finding
	for _, mutating := range []bool{true, false} {
		name := verdictWebhook
		if mutating {
			name = hashWebhook
		}
		i := slices.IndexFunc(s.Webhooks.Value, func(w Webhook) bool {
			return isOurs(&w) && w.Mutating == mutating && w.Name == name
		})
		if i < 0 {
			missing := Webhook{Mutating: mutating, Configuration: ConfigurationName}
			out = append(out, Finding{Severity: Critical, Object: missing.object(),
				Message: fmt.Sprintf("the webhook %s is not registered: the API server does not call it", name), Fix: reinstallFix})
			continue
		}
		out = append(out, s.registrationOf(&s.Webhooks.Value[i])...)
	}
	return append(out, differingConditions(s)...)
}

// registrationOf compares one webhook with what the chart registers.
func (s *Snapshot) registrationOf(w *Webhook) []Finding {
	var out []Finding
	say := func(severity Severity, format string, args ...any) {
		out = append(out, Finding{Severity: severity, Object: w.object(), Message: w.Name + ": " + fmt.Sprintf(format, args...), Fix: reinstallFix})
	}
	if w.FailurePolicy != admissionv1.Ignore {
		say(Critical, "failurePolicy is %s: while the webhook is away every write of a registered kind fails", w.FailurePolicy)
	}
	if w.TimeoutSeconds > maxTimeout {
		say(Warning, "timeoutSeconds is %d: a hanging webhook holds every write up for so long", w.TimeoutSeconds)
	}
	if want := admissionv1.SideEffectClassNoneOnDryRun; w.SideEffects != want {
		say(Warning, "sideEffects is %s and not %s: dry runs may be refused or not be told apart", w.SideEffects, want)
	}
	if w.MatchPolicy != admissionv1.Equivalent {
		say(Critical, "matchPolicy is %s: a write through another version of the API is not seen", w.MatchPolicy)
	}
	if w.Mutating && !w.Reinvoked {
		say(Warning, "reinvocationPolicy is Never: a mutator that comes later leaves the hash stale")
	}
	if !isEmptySelector(w.ObjectSelector) {
		say(Critical, "it has an objectSelector: a user that edits the labels of an object takes it out of sight")
	}
	if want := s.wantedConditions(); !slices.Equal(conditionNames(w), want) {
		say(Critical, "its matchConditions are %s and not %s alone: writes may be kept from it", named(conditionNames(w)), named(want))
	}
	out = append(out, selectorOf(w, s.Namespace)...)
	return append(out, serviceOf(w, s.Namespace)...)
}

// pods is the resource of which Plumbline's webhooks leave out what controllers make.
var pods = target{"", "pods"}

// wantedConditions names the matchConditions that the chart gives both webhooks.
func (s *Snapshot) wantedConditions() []string {
	if slices.Contains(s.registered(), pods) {
		return []string{conditionName, podConditionName}
	}
	return []string{conditionName}
}

func conditionNames(w *Webhook) []string {
	if len(w.Conditions) == 0 {
		return []string{"(none)"}
	}
	names := make([]string, 0, len(w.Conditions))
	for _, c := range w.Conditions {
		names = append(names, c.Name)
	}
	return names
}

// platformKeys are label keys that managed platforms add to the selectors of
// every webhook, to keep their own namespaces out.
var platformKeys = []string{"control-plane", "kubernetes.azure.com/managedby"}

// selectorOf asks that the excluded namespaces, all of them and no others, are
// kept from the webhook.
func selectorOf(w *Webhook, namespace string) []Finding {
	excluded, unexpected := readSelector(w.NamespaceSelector)
	want := specguard.ExcludedNamespaces(namespace)
	if namespace == "" {
		want = want[:len(want)-1]
	}
	var missing []string
	for _, name := range want {
		if !slices.Contains(excluded, name) {
			missing = append(missing, name)
		}
	}
	var out []Finding
	if len(missing) > 0 {
		out = append(out, Finding{Severity: Critical, Object: w.object(), Fix: reinstallFix,
			Message: fmt.Sprintf("%s: its namespaceSelector does not exclude %s, which the cluster and Plumbline need to start", w.Name, named(missing))})
	}
	extra := slices.DeleteFunc(excluded, func(name string) bool { return slices.Contains(want, name) })
	if namespace != "" && len(extra) > 0 {
		out = append(out, Finding{Severity: Warning, Object: w.object(), Fix: reinstallFix,
			Message: fmt.Sprintf("%s: its namespaceSelector also excludes %s: writes there are not seen at admission", w.Name, named(extra))})
	}
	if len(unexpected) > 0 {
		out = append(out, Finding{Severity: Critical, Object: w.object(), Fix: reinstallFix,
			Message: fmt.Sprintf("%s: its namespaceSelector also asks for %s: a label takes a namespace out of sight", w.Name, named(unexpected))})
	}
	return out
}

// readSelector gives the namespaces that are excluded by name, and every other
// term but those that platforms are known to add.
func readSelector(selector *metav1.LabelSelector) (excluded, unexpected []string) {
	if selector == nil {
		return nil, nil
	}
	for key := range selector.MatchLabels {
		unexpected = append(unexpected, key)
	}
	for _, e := range selector.MatchExpressions {
		switch {
		case e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpNotIn:
			excluded = append(excluded, e.Values...)
		case slices.Contains(platformKeys, e.Key) && (e.Operator == metav1.LabelSelectorOpDoesNotExist || e.Operator == metav1.LabelSelectorOpNotIn):
		default:
			unexpected = append(unexpected, e.Key)
		}
	}
	slices.Sort(unexpected)
	return excluded, unexpected
}

func serviceOf(w *Webhook, namespace string) []Finding {
	service := w.Client.Service
	switch {
	case service == nil:
		return []Finding{{Severity: Warning, Object: w.object(), Fix: reinstallFix,
			Message: w.Name + ": it is called by URL and not through the Service " + WebhookName}}
	case service.Name != WebhookName || (namespace != "" && service.Namespace != namespace):
		return []Finding{{Severity: Critical, Object: w.object(), Fix: reinstallFix,
			Message: fmt.Sprintf("%s: it calls Service %s/%s: another server answers in Plumbline's name, or no server", w.Name, service.Namespace, service.Name)}}
	default:
		return nil
	}
}

// differingConditions finds the two webhooks filtering differently. What the
// expression should be is not compared: it belongs to the version of the chart.
func differingConditions(s *Snapshot) []Finding {
	ours := s.ours()
	if len(ours) < ourWebhooksCount || len(ours[0].Conditions) != len(ours[1].Conditions) || slices.Equal(ours[0].Conditions, ours[1].Conditions) {
		return nil
	}
	return []Finding{{Severity: Critical, Object: ours[1].object(), Fix: reinstallFix,
		Message: "the two webhooks have different matchConditions; the chart gives both the same"}}
}

// registered are the resources that Plumbline is registered for: what any of
// its parts names, so that one which lacks it is found.
func (s *Snapshot) registered() []target {
	var rules []admissionv1.RuleWithOperations
	for _, w := range s.ours() {
		rules = append(rules, w.Rules...)
	}
	if p := s.policy(writerPolicy); p != nil {
		rules = append(rules, policyRules(p.Rules)...)
	}
	return objectTargets(rules)
}

// checkRules holds all parts against each other: the chart gives them the same
// kinds, so what one sees and another does not was changed by hand.
func checkRules(s *Snapshot) []Finding {
	switch {
	case !s.Webhooks.known():
		return []Finding{s.Webhooks.unknown("which kinds the webhooks see")}
	case len(s.registered()) == 0:
		return []Finding{{Severity: Critical, Message: "no kind is registered: no write is seen at admission", Fix: reinstallFix}}
	}
	var out []Finding
	for _, w := range s.ours() {
		if missing := s.missingRules(w); len(missing) > 0 {
			out = append(out, Finding{Severity: Critical, Object: w.object(), Fix: reinstallFix,
				Message: fmt.Sprintf("%s: its rules lack %s, which other parts of Plumbline are registered for", w.Name, named(missing))})
		}
	}
	if s.stampedByWebhook() == ReadUnknown {
		out = append(out, s.Workloads.unknown("whether verdict.plumbline.dev has to see updates, too"))
	}
	if !s.Policies.known() {
		out = append(out, s.Policies.unknown("which kinds the policies see"))
	}
	return append(out, subresourceRules(s)...)
}

// operationsOf lists the operations on a target that a webhook of Plumbline has to see. The webhook
// that stamps judges updates, too, unless it stamps the writer. A pod has no stamp of a webhook where a
// policy stamps the writer.
func (s *Snapshot) operationsOf(w *Webhook, t target) []admissionv1.OperationType {
	byWebhook := s.stampedByWebhook() == ReadValue
	switch {
	case w.Mutating && t == pods && !byWebhook:
		return nil
	case w.Mutating:
		return []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	case byWebhook || t == pods:
		return []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
	default:
		return []admissionv1.OperationType{admissionv1.Create, admissionv1.Delete}
	}
}

// missingRules names each registered target that a webhook of Plumbline has no rule for, with the operations.
func (s *Snapshot) missingRules(w *Webhook) []string {
	var missing []string
	for _, t := range s.registered() {
		var lacks []string
		for _, operation := range s.operationsOf(w, t) {
			if !t.request(operation).matchesAny(w.Rules) {
				lacks = append(lacks, string(operation))
			}
		}
		if len(lacks) > 0 {
			missing = append(missing, t.String()+" ("+strings.Join(lacks, ", ")+")")
		}
	}
	return missing
}

// subresourceRules looks for ways around the object itself.
func subresourceRules(s *Snapshot) []Finding {
	i := slices.IndexFunc(s.ours(), func(w *Webhook) bool { return !w.Mutating })
	if i < 0 {
		return nil
	}
	verdict := s.ours()[i]
	if !s.Resources.known() {
		return []Finding{s.Resources.unknown("which subresources the API server serves")}
	}
	ways := []target{{"", "pods/ephemeralcontainers"}, {"", "pods/resize"}}
	for _, t := range s.registered() {
		ways = append(ways, t.sub("scale"))
	}
	var missing []string
	for _, way := range ways {
		if s.serves(way.group, way.resource) && !way.request(admissionv1.Update).matchesAny(verdict.Rules) {
			missing = append(missing, way.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []Finding{{Severity: Warning, Object: verdict.object(),
		Message: fmt.Sprintf("%s: its rules lack %s: containers can be changed there, and the change is found without a name", verdict.Name, named(missing)),
		Fix:     "set scale: true on the entries of guard.resources, and list the subresources in guard.podSubresources, then apply the chart again"}}
}
