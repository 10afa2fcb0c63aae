// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// power is a right that lets its holder around Plumbline.
type power struct {
	id, good string
	worst    Severity
	// what completes "... may <what>".
	what, fix string
	grants    func(*Snapshot) []grant
	// closed: the right leads nowhere, because a policy refuses the write.
	closed func(*Snapshot) bool
	// within: where a RoleBinding counts; nil for everywhere.
	within func(*Snapshot) func(namespace string) bool
	// usual: people are given it on purpose, so that it is no more than Info.
	usual bool
}

var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

const rbacFix = "remove the permission, or make sure that its holders are meant to have it:\n" +
	"kubectl get clusterrolebindings,rolebindings -A -o wide"

// powers are all of them. What they look for in rules is listed with each check
// in the documentation.
func powers() []power {
	own := v1alpha1.GroupVersion.Group
	static := func(grants ...grant) func(*Snapshot) []grant { return func(*Snapshot) []grant { return grants } }
	return []power{
		{id: "rbac.guards", worst: Critical, good: "only cluster administrators change cluster-wide guards", fix: rbacFix,
			what:   "change ClusterSpecGuards, GuardDefaults or Environments, and so switch guards off",
			grants: static(grant{group: own, resources: []string{"clusterspecguards", "guarddefaults", "environments"}, verbs: writeVerbs, cluster: true})},
		{id: "rbac.admission", worst: Critical, good: "only cluster administrators change Plumbline's webhooks and policies", fix: rbacFix,
			what: "change or delete Plumbline's webhook configurations or policies", grants: static(admissionGrants()...)},
		{id: "rbac.status", worst: Critical, good: "only controllers write the status of guarded kinds", fix: rbacFix,
			what: "write the status of guarded kinds, and forge stamps by it", grants: (*Snapshot).statusGrants,
			closed: func(s *Snapshot) bool { return s.inForce(expectStampStatus(s)) }},
		{id: "rbac.baselines", worst: Critical, good: "only the assessor writes the authorized content", fix: rbacFix,
			what: "write Baselines or their status, and so authorize anything", grants: static(baselineGrants()...),
			closed: func(s *Snapshot) bool { return s.inForce(expectBaselineWriters()) && !s.baselineProbePassed() }},
		{id: "rbac.breakglass", worst: Critical, good: "only cluster administrators can break the glass", usual: true,
			what:   "break the glass: write past a guard in mode Deny, with a reason",
			fix:    "if they are not meant to, take them out of the binding",
			grants: static(grant{group: own, resources: []string{"baselines"}, verbs: []string{"breakglass"}})},
		{id: "rbac.delegate", worst: Critical, good: "only cluster administrators have policies act as service accounts", usual: true,
			what:   "have a RemediationPolicy act as any service account",
			fix:    "if they are not meant to, take them out of the binding, or name single policies in resourceNames of a role",
			grants: static(grant{group: own, resources: []string{"remediationpolicies"}, verbs: []string{"delegate"}, cluster: true})},
		{id: "rbac.impersonate", worst: Critical, good: "only cluster administrators act as others", fix: rbacFix,
			what:   "act as any user, and so as a trusted writer",
			grants: static(grant{resources: []string{"users", "groups"}, verbs: []string{"impersonate"}, cluster: true})},
		{id: "rbac.trusted-accounts", worst: Critical, good: "no other user acts as a trusted service account", usual: true,
			what:   "act as a service account that a guard trusts",
			fix:    "give trusted service accounts a namespace of their own, in which no user has the role edit",
			grants: static(grant{resources: []string{"serviceaccounts"}, verbs: []string{"impersonate"}}, grant{resources: []string{"serviceaccounts/token"}, verbs: []string{"create"}}),
			within: trustedNamespaces},
		{id: "rbac.namespaces", worst: Critical, good: "no user takes a namespace out of a guard by its labels", fix: rbacFix,
			what: "change the labels of namespaces, by which ClusterSpecGuards select", grants: namespaceGrants},
		{id: "rbac.admins", worst: Critical, good: "only the cluster's own groups may do everything", usual: true,
			what: "do everything, the above included", fix: "keep their number small"},
	}
}

func admissionGrants() []grant {
	const group = "admissionregistration.k8s.io"
	verbs := []string{"update", "patch", "delete", "deletecollection"}
	return []grant{
		{group: group, resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, verbs: verbs, names: []string{ConfigurationName}, cluster: true},
		{group: group, verbs: verbs, names: policyNames, cluster: true, resources: []string{
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings"}},
	}
}

func baselineGrants() []grant {
	own := v1alpha1.GroupVersion.Group
	return []grant{
		{group: own, resources: []string{"baselines"}, verbs: []string{"create", "delete", "deletecollection"}},
		{group: own, resources: []string{"baselines/status"}, verbs: []string{"update", "patch"}},
		{group: own, resources: []string{"baselinerevisions"}, verbs: writeVerbs},
	}
}

// namespaceGrants matter only where some guard goes by labels.
func namespaceGrants(s *Snapshot) []grant {
	if !slices.ContainsFunc(s.Guards.Value, func(g Guard) bool { return !isEmptySelector(g.NamespaceSelector) }) {
		return nil
	}
	return []grant{{resources: []string{"namespaces"}, verbs: []string{"update", "patch"}}}
}

// trustedNamespaces are those whose service accounts some guard trusts.
func trustedNamespaces(s *Snapshot) func(string) bool {
	trusted := map[string]bool{}
	for i := range s.Guards.Value {
		w := s.Guards.Value[i].Spec.TrustedWriters
		for _, account := range w.ServiceAccounts {
			trusted[account.Namespace] = true
		}
		for _, namespace := range w.ServiceAccountNamespaces {
			trusted[namespace] = true
		}
	}
	return func(namespace string) bool { return trusted[namespace] }
}

func (s *Snapshot) baselineProbePassed() bool {
	return s.Probes.Baseline.present() && !s.Probes.Baseline.Value.Refused
}

func (p power) check(s *Snapshot) []Finding {
	if !s.Roles.known() {
		return []Finding{s.Roles.unknown("who may " + p.what)}
	}
	if p.id == "rbac.trusted-accounts" || p.id == "rbac.namespaces" {
		if !s.Guards.known() {
			return []Finding{s.Guards.unknown("who may " + p.what)}
		}
	}
	var holders []holder
	if p.grants == nil {
		holders = s.admins()
	} else {
		within := func(string) bool { return true }
		if p.within != nil {
			within = p.within(s)
		}
		holders = s.heldBy(p.grants(s), within)
	}
	if len(holders) == 0 {
		return nil
	}
	return []Finding{p.finding(s, holders)}
}

func (p power) finding(s *Snapshot, holders []holder) Finding {
	f := Finding{Severity: Warning, Fix: p.fix, Message: fmt.Sprintf("%s may %s", named(holderNames(holders)), p.what)}
	switch {
	case p.closed != nil && p.closed(s):
		f.Severity, f.Fix = Info, ""
		f.Message += "; a policy refuses it"
	case holders[0].broad:
		f.Severity = Critical // the broad ones come first
	case p.usual:
		f.Severity = Info
	}
	return f
}
