// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	mutatingPolicy   = "MutatingAdmissionPolicy"
	validatingPolicy = "ValidatingAdmissionPolicy"

	writerPolicy          = "plumbline-writer"
	stampStatusPolicy     = "plumbline-stamp-status"
	requestedByPolicy     = "plumbline-requested-by"
	baselineWritersPolicy = "plumbline-baseline-writers"
	denyPolicy            = "plumbline-deny"
)

// policyNames are all policies of the chart.
var policyNames = []string{
	writerPolicy, stampStatusPolicy, requestedByPolicy, baselineWritersPolicy, denyPolicy,
	policyWritersPolicy, planWritersPolicy, requestWritersPolicy, assessmentWritersPolicy, ledgerWritersPolicy, executorMarksPolicy, executorCreationsPolicy, executorStandbysPolicy,
	releaseWritersPolicy, releaseWorkWritersPolicy, releaseSupersedePolicy,
}

// expected is what the chart installs under one name.
type expected struct {
	kind, name string
	// requests must all be matched.
	requests []request
	// selector: the excluded namespaces are kept out.
	selector bool
	param    string
	// harm completes "...: " when the policy is not there.
	harm string
	// derived: requests follow from what the webhooks are registered for.
	derived bool
	// eitherFailure: the installation chooses its failurePolicy.
	eitherFailure bool
	// unconditional: it has no matchConditions.
	unconditional bool
}

func (e expected) object() string { return e.kind + "/" + e.name }

func (s *Snapshot) policy(name string) *Policy {
	for i := range s.Policies.Value.Policies {
		if p := &s.Policies.Value.Policies[i]; p.Name == name {
			return p
		}
	}
	return nil
}

// inForce tells whether a policy is there with all that it needs.
func (s *Snapshot) inForce(e expected) bool {
	return s.Policies.present() && len(policyFindings(s, e)) == 0
}

// policyFindings compares a policy and its binding with what the chart installs.
// Expressions are not compared, they belong to the version of the chart; probes
// show what policies do.
func policyFindings(s *Snapshot, e expected) []Finding {
	if !s.Policies.known() {
		return []Finding{s.Policies.unknown("whether the policy " + e.name + " is in force")}
	}
	p := s.policy(e.name)
	if p == nil || p.Kind != e.kind {
		return []Finding{{Severity: Critical, Object: e.object(), Fix: reinstallFix, Message: "it does not exist: " + e.harm}}
	}
	var out []Finding
	say := func(severity Severity, format string, args ...any) {
		out = append(out, Finding{Severity: severity, Object: e.object(), Fix: reinstallFix, Message: fmt.Sprintf(format, args...)})
	}
	if p.FailurePolicy != admissionv1.Fail && !e.eitherFailure {
		say(Warning, "failurePolicy is %s: a write on which its expressions fail passes", p.FailurePolicy)
	}
	if missing := missingRequests(e.requests, p); len(missing) > 0 {
		say(Critical, "its rules lack %s: %s", named(missing), e.harm)
	}
	if p.Effects == 0 {
		say(Critical, "it has no effect: it has no validations and no mutations")
	}
	if p.ParamKind != e.param {
		say(Critical, "its parameters are of kind %q and not %q: %s", p.ParamKind, e.param, e.harm)
	}
	if !isEmptySelector(p.ObjectSelector) {
		say(Critical, "it has an objectSelector: a user that edits the labels of an object takes it out of sight")
	}
	if e.unconditional && len(p.Conditions) > 0 {
		say(Critical, "it has the matchConditions %s: writes may be kept from it", named(p.Conditions))
	}
	for _, text := range p.TypeWarnings {
		say(Warning, "the API server warns about its expressions: %s", text)
	}
	if e.derived && !s.Webhooks.known() {
		out = append(out, s.Webhooks.unknown("whether the policy "+e.name+" holds for all registered kinds"))
	}
	out = append(out, policySelector(s, e, p)...)
	return append(out, bindingFindings(s, e)...)
}

func policySelector(s *Snapshot, e expected, p *Policy) []Finding {
	if !e.selector {
		if isEmptySelector(p.NamespaceSelector) {
			return nil
		}
		return []Finding{{Severity: Critical, Object: e.object(), Fix: reinstallFix, Message: "it has a namespaceSelector: it holds in some namespaces only"}}
	}
	out := selectorOf(&Webhook{Name: e.name, NamespaceSelector: p.NamespaceSelector}, s.Namespace)
	for i := range out {
		out[i].Object = e.object()
	}
	return out
}

func missingRequests(requests []request, p *Policy) []string {
	var missing []string
	for _, r := range requests {
		if !r.matchesAny(policyRules(p.Rules)) || r.matchesAny(policyRules(p.Excluded)) {
			missing = append(missing, fmt.Sprintf("%s of %s", r.operation, target{r.group, r.resource}))
		}
	}
	return missing
}

func bindingFindings(s *Snapshot, e expected) []Finding {
	object := e.kind + "Binding/" + e.name
	var problems []Finding
	for _, b := range s.Policies.Value.Bindings {
		if b.Kind != e.kind+"Binding" || b.Policy != e.name {
			continue
		}
		problem := bindingProblem(b, e)
		if problem == "" {
			return nil // one good binding is enough
		}
		problems = append(problems, Finding{Severity: Critical, Object: e.kind + "Binding/" + b.Name, Message: problem, Fix: reinstallFix})
	}
	if len(problems) == 0 {
		return []Finding{{Severity: Critical, Object: object, Fix: reinstallFix, Message: "it does not exist: the policy is not active, and " + e.harm}}
	}
	return problems
}

func bindingProblem(b Binding, e expected) string {
	switch {
	case e.kind == validatingPolicy && !slices.Contains(b.Actions, admissionv1.Deny):
		actions := make([]string, 0, len(b.Actions))
		for _, a := range b.Actions {
			actions = append(actions, string(a))
		}
		return fmt.Sprintf("its validationActions are %s and not Deny: no write is rejected", strings.Join(actions, ", "))
	case b.Restricted:
		return "it has matchResources: the policy holds for some objects only"
	case e.param != "" && b.Param == nil:
		return "it names no parameters, so the policy holds for no " + e.param
	case e.param != "" && b.Param.Name != "":
		return "it takes one parameter by name: the policy holds for no other " + e.param
	case e.param != "" && !isEmptySelector(b.Param.Selector):
		return "it selects parameters by label: the policy holds for no " + e.param + " without that label"
	default:
		return ""
	}
}

// requestsOn makes one request per resource and operation.
func requestsOn(targets []target, operations ...admissionv1.OperationType) []request {
	var out []request
	for _, t := range targets {
		for _, operation := range operations {
			out = append(out, t.request(operation))
		}
	}
	return out
}

func subresources(targets []target, subresource string) []target {
	out := make([]target, 0, len(targets))
	for _, t := range targets {
		out = append(out, t.sub(subresource))
	}
	return out
}

// ownKind is a resource of ours.
func ownKind(resource string) target { return target{v1alpha1.GroupVersion.Group, resource} }

func expectStampStatus(s *Snapshot) expected {
	return expected{
		kind: validatingPolicy, name: stampStatusPolicy, selector: true, derived: true,
		requests: requestsOn(subresources(s.registered(), "status"), admissionv1.Update),
		harm:     "a user that may write the status of a workload can forge its writer",
	}
}

func expectRequestedBy() expected {
	return expected{
		kind: validatingPolicy, name: requestedByPolicy,
		requests: requestsOn([]target{ownKind("baselines")}, admissionv1.Create, admissionv1.Update),
		harm:     "any user can accept drift in another user's name",
	}
}

func expectBaselineWriters() expected {
	return expected{
		kind: validatingPolicy, name: baselineWritersPolicy,
		requests: append(
			requestsOn([]target{ownKind("baselines"), ownKind("baselinerevisions")}, admissionv1.Create, admissionv1.Update, admissionv1.Delete),
			ownKind("baselines/status").request(admissionv1.Update)),
		harm: "a user that may write a Baseline can authorize any content",
	}
}

func expectWriter(s *Snapshot) expected {
	return expected{
		kind: mutatingPolicy, name: writerPolicy, selector: true, derived: true,
		requests: requestsOn(s.registered(), admissionv1.Create, admissionv1.Update),
		harm:     "no write is stamped with its writer, and no new write is authorized",
	}
}

func expectDeny(s *Snapshot) expected {
	return expected{
		kind: validatingPolicy, name: denyPolicy, selector: true, derived: true, eitherFailure: true, param: "ClusterSpecGuard",
		requests: requestsOn(s.registered(), admissionv1.Create, admissionv1.Update, admissionv1.Delete),
		harm:     "guards in mode Deny reject no write",
	}
}

func checkStampStatusPolicy(s *Snapshot) []Finding { return policyFindings(s, expectStampStatus(s)) }
func checkRequestedByPolicy(s *Snapshot) []Finding { return policyFindings(s, expectRequestedBy()) }

// checkBaselineWritersPolicy also looks at what became of a real write.
func checkBaselineWritersPolicy(s *Snapshot) []Finding {
	out := policyFindings(s, expectBaselineWriters())
	if probe := s.Probes.Baseline; probe.present() && !probe.Value.Refused {
		out = append(out, Finding{Severity: Critical, Object: validatingPolicy + "/" + baselineWritersPolicy, Fix: reinstallFix,
			Message: "a Baseline that your user made in a dry run was not rejected: a user that may write one can authorize any content"})
	}
	return out
}

// checkWriterPolicy asks for the stamp itself where a write could be tried.
func checkWriterPolicy(s *Snapshot) []Finding {
	var out []Finding
	switch s.stampedByWebhook() {
	case ReadValue:
		out = writerByWebhook(s)
		if s.stampedByBoth() {
			out = policyFindings(s, expectWriter(s))
		}
	case ReadAbsent:
		out = policyFindings(s, expectWriter(s))
	case ReadUnknown:
		out = append(policyFindings(s, expectWriter(s)), s.Workloads.unknown("whether the webhook is told to stamp the writer itself"))
	}
	if f, found := writerProbe(s); found {
		out = append(out, f)
	}
	return out
}

// stampedByWebhook says whether the installation lets the webhook stamp writers,
// as it does where the API server has no policies that mutate.
func (s *Snapshot) stampedByWebhook() ReadState {
	for _, w := range s.Workloads.Value {
		if w.Name != WebhookName {
			continue
		}
		if slices.Contains(w.Args, "--stamp-writer=true") {
			return ReadValue
		}
		return ReadAbsent
	}
	return ReadUnknown
}

// stampedByBoth tells whether a policy stamps writers beside the webhook, as it does
// during a switch between the two.
func (s *Snapshot) stampedByBoth() bool {
	return slices.ContainsFunc(s.Workloads.Value, func(w Workload) bool {
		return w.Name == AssessorName && slices.Contains(w.Args, "--stamp-policy=true")
	})
}

func writerByWebhook(s *Snapshot) []Finding {
	if !s.Resources.known() {
		return []Finding{s.Resources.unknown("whether this API server could stamp the writer itself")}
	}
	f := Finding{Severity: Info, Object: "Deployment/" + s.Namespace + "/" + WebhookName,
		Message: "the webhook stamps the writer: while it is away writes carry no name, and are not authorized"}
	if s.serves("admissionregistration.k8s.io", "mutatingadmissionpolicies") {
		f.Severity = Warning
		f.Message += "; this API server could stamp them itself"
		f.Fix = "set policies.writerStamp: Policy in the values of the chart, and apply the chart again"
	}
	return []Finding{f}
}

func writerProbe(s *Snapshot) (Finding, bool) {
	probe := s.Probes.Write
	switch {
	case !probe.known():
		return probe.unknown("whether the writer is really stamped, by a dry-run write"), true
	case !probe.present():
		return Finding{}, false
	case probe.Value.Refused:
		return Finding{Severity: Unknown, Message: "cannot tell whether the writer is really stamped: the dry-run write was refused: " + probe.Value.Message}, true
	case probe.Value.Writer == "":
		return Finding{Severity: Critical, Object: s.Probes.Plan.object(), Fix: reinstallFix,
			Message: "a dry-run write came back without " + v1alpha1.AnnotationWriter + ": no component stamps the writer"}, true
	case s.User.present() && probe.Value.Writer != s.User.Value.Name:
		return Finding{Severity: Critical, Object: s.Probes.Plan.object(), Fix: reinstallFix,
			Message: fmt.Sprintf("a dry-run write by %s was stamped with %s", s.User.Value.Name, probe.Value.Writer)}, true
	default:
		return Finding{}, false
	}
}
