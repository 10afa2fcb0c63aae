// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// What the chart lets the executor do. A right that is missing stops it; one that
// it does not need is one that whoever takes it over has.
var (
	readVerbs  = []string{"get", "list", "watch"}
	markVerbs  = []string{"get", "update", "patch"}
	eventVerbs = []string{"create", "patch"}

	// executorEverywhere are its rights in the whole cluster.
	executorEverywhere = []grant{
		{group: v1alpha1.GroupVersion.Group, verbs: readVerbs, resources: []string{
			"remediationpolicies", "remediationplans", "environments", "specguards", "specguardexceptions", "clusterspecguards", "guarddefaults", "baselines"}},
		{group: v1alpha1.GroupVersion.Group, verbs: []string{"get"}, resources: []string{"baselinerevisions"}},
		{group: v1alpha1.GroupVersion.Group, verbs: markVerbs, resources: []string{"remediationplans/status", "baselines/status", "environments/status"}},
		{verbs: readVerbs, resources: []string{"namespaces"}},
		{group: "policy", verbs: []string{"list"}, resources: []string{"poddisruptionbudgets"}},
		{group: "authorization.k8s.io", verbs: []string{"create"}, resources: []string{"subjectaccessreviews"}},
		{verbs: []string{"get"}, resources: []string{"serviceaccounts"}},
		{group: "events.k8s.io", verbs: eventVerbs, resources: []string{"events"}},
	}
	// executorDelivery are its further rights in the whole cluster where it carries ReleaseWorks out.
	executorDelivery = []grant{
		{group: v1alpha1.GroupVersion.Group, verbs: []string{"get", "list", "watch", "delete"}, resources: []string{"releaseworks"}},
		{group: v1alpha1.GroupVersion.Group, verbs: markVerbs, resources: []string{"releaseworks/status"}},
		{group: v1alpha1.GroupVersion.Group, verbs: []string{"get", "list", "watch"}, resources: []string{"abreleases"}},
		{verbs: []string{"get"}, resources: []string{"services"}},
	}
	// executorMesh are its further rights in the whole cluster where it puts objects into quarantine.
	executorMesh = []grant{
		{verbs: []string{"list"}, resources: []string{"services", "pods"}},
		{group: "discovery.k8s.io", verbs: []string{"list"}, resources: []string{"endpointslices"}},
		{group: v1alpha1.GroupVersion.Group, verbs: []string{"list"}, resources: []string{"abreleases"}},
	}
	// executorEffects are its further rights in the whole cluster where it copies verdicts into plans.
	executorEffects = []grant{
		{group: v1alpha1.GroupVersion.Group, verbs: readVerbs, resources: []string{"effectivenessassessments"}},
	}
	// executorStandbys are those that the owner of a namespace may give it beside the targets.
	executorStandbys = []grant{
		{group: v1alpha1.GroupVersion.Group, verbs: []string{"get", "create", "update", "delete"}, resources: []string{"abreleases"}},
		autoscalersFound,
	}
	// executorAtHome are those in Plumbline's own namespace.
	executorAtHome = []grant{
		{group: v1alpha1.GroupVersion.Group, verbs: []string{"get", "list", "watch", "create", "update"}, resources: []string{"remediationledgers"}},
		{group: v1alpha1.GroupVersion.Group, verbs: markVerbs, resources: []string{"remediationledgers/status"}},
		{group: "coordination.k8s.io", verbs: []string{"create"}, resources: []string{"leases"}},
		{group: "coordination.k8s.io", verbs: markVerbs, resources: []string{"leases"}, names: []string{ExecutorName}},
		{verbs: markVerbs, resources: []string{"configmaps"}, names: []string{EvidenceName}},
		{verbs: eventVerbs, resources: []string{"events"}},
	}
	// targetVerbs are what it may do to guarded objects where it is bound.
	targetVerbs = []string{"get", "watch", "create", "update", "patch"}

	// ownSecrets are the chart's, which no channel may be told of.
	ownSecrets = []string{SecretName, RedisName, AssessorName, EvidenceName}
	// neverTargets are the API groups that the chart gives the executor nothing of,
	// even where they are registered; of the core group it is serviceaccounts.
	neverTargets = []string{
		"plumbline.dev", "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io",
		"authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "events.k8s.io",
		"flowcontrol.apiserver.k8s.io", "node.k8s.io",
	}
)

// executorTargetGrants are the guarded kinds, as the chart gives them.
func (s *Snapshot) executorTargetGrants() []grant {
	var out []grant
	for _, t := range s.registered() {
		if !slices.Contains(neverTargets, t.group) && t != (target{"", "serviceaccounts"}) {
			out = append(out, grant{group: t.group, resources: []string{t.resource}, verbs: targetVerbs})
		}
	}
	if s.carriesWorks() && len(out) > 0 {
		out = append(out, autoscalersFound)
	}
	return out
}

// autoscalersFound has the executor find the autoscaler whose minimum a rollout holds, and those that scale the
// groups of one or the target of a standby.
var autoscalersFound = grant{group: "autoscaling", resources: []string{"horizontalpodautoscalers"}, verbs: []string{"list"}}

// releaseWorksFlag has the executor carry ReleaseWorks out.
const releaseWorksFlag = "--release-works=true"

// meshFlag has the executor put objects into quarantine, and make standbys.
const meshFlag = "--mesh=true"

func (s *Snapshot) carriesWorks() bool { return s.executorHas(releaseWorksFlag) }

func (s *Snapshot) executorHas(flag string) bool {
	w := s.executorWorkload()
	return w != nil && slices.Contains(w.Args, flag)
}

// executorClusterGrants are the rights of the executor in the whole cluster.
func (s *Snapshot) executorClusterGrants() []grant {
	grants := slices.Clone(executorEverywhere)
	if s.carriesWorks() {
		grants = append(grants, executorDelivery...)
	}
	if s.executorHas(meshFlag) {
		grants = append(grants, executorMesh...)
	}
	if s.assessesEffects() {
		grants = append(grants, executorEffects...)
	}
	return grants
}

// heldRole is a role that the executor has, everywhere or in a namespace.
type heldRole struct {
	namespace, role string
	rules           []rbacv1.PolicyRule
	// broad: it has it as everybody does.
	broad bool
}

// ofExecutor tells whether a binding is the executor's, by its name or a group.
func (s *Snapshot) ofExecutor(b RoleBinding) bool {
	own, broad := s.isExecutor(b)
	return own || broad
}

func (s *Snapshot) isExecutor(b RoleBinding) (own, broad bool) {
	for _, subject := range b.Subjects {
		switch subject.Kind {
		case rbacv1.ServiceAccountKind:
			own = own || subject.Namespace == s.Namespace && subject.Name == ExecutorName
		case rbacv1.UserKind:
			own = own || subject.Name == "system:serviceaccount:"+s.Namespace+":"+ExecutorName
		case rbacv1.GroupKind:
			own = own || subject.Name == "system:serviceaccounts:"+s.Namespace
			broad = broad || subject.Name == "system:serviceaccounts" || subject.Name == "system:authenticated"
		}
	}
	return own, broad
}

// executorRoles are all roles that the executor has. Those that the cluster itself
// gives to everybody (system:…) are left out, and the assessor's where both are one
// process.
func (s *Snapshot) executorRoles() []heldRole {
	var out []heldRole
	w := s.executorWorkload()
	together := w != nil && w.Name == AssessorName
	for _, b := range slices.Concat(s.Roles.Value.ClusterBindings, s.Roles.Value.Bindings) {
		own, broad := s.isExecutor(b)
		if !own && (!broad || strings.HasPrefix(b.Role.Name, "system:")) {
			continue
		}
		if together && b.Role.Name == AssessorName && (b.Namespace == "" || b.Namespace == s.Namespace) {
			continue
		}
		role := b.Role.Kind + "/" + b.Role.Name
		if b.Role.Kind == "Role" {
			role = b.Role.Kind + "/" + b.Namespace + "/" + b.Role.Name
		}
		out = append(out, heldRole{b.Namespace, role, s.Roles.Value.of(b), !own})
	}
	return out
}

// checkExecutorRights compares the permissions of the executor with what the chart gives
// it: not less, and not more.
func checkExecutorRights(s *Snapshot) []Finding {
	const what = "the permissions of the executor"
	switch {
	case !s.Roles.known():
		return []Finding{s.Roles.unknown(what)}
	case !s.Webhooks.known():
		return []Finding{s.Webhooks.unknown("which kinds the executor should be able to write")}
	case len(s.registered()) == 0:
		return []Finding{{Severity: Unknown, Message: "cannot tell which kinds the executor should be able to write: no kind is registered"}}
	}
	held := s.executorRoles()
	return append(s.lacking(held), s.exceeding(held)...)
}

func (s *Snapshot) lacking(held []heldRole) []Finding {
	within := func(namespace string) []rbacv1.PolicyRule {
		var out []rbacv1.PolicyRule
		for _, h := range held {
			if h.namespace == "" || h.namespace == namespace {
				out = append(out, h.rules...)
			}
		}
		return out
	}
	account := "ServiceAccount/" + s.Namespace + "/" + ExecutorName
	var out []Finding
	say := func(object string, missing *verbsOf, format string) {
		if len(missing.targets) == 0 {
			return
		}
		f := Finding{Severity: Critical, Object: object, Fix: reinstallFix, Message: fmt.Sprintf(format, named(missing.words()))}
		if missing.only("events") {
			f.Severity = Warning // it works, and tells less
		}
		out = append(out, f)
	}
	say(account, missingOf(s.executorClusterGrants(), within("")), "it may not %s everywhere, which it needs")
	say(account, missingOf(executorAtHome, within(s.Namespace)), "it may not %s in its own namespace, which it needs")
	say("ClusterRole/"+executorTargets, missingOf(s.executorTargetGrants(), s.Roles.Value.ClusterRoles[executorTargets]),
		"it does not let the executor %s, wherever it is bound: such drift is not remediated")
	return out
}

// missingOf are the parts of grants that no rule gives.
func missingOf(grants []grant, rules []rbacv1.PolicyRule) *verbsOf {
	var missing verbsOf
	for _, g := range grants {
		for _, resource := range g.resources {
			for _, verb := range g.verbs {
				one := grant{group: g.group, resources: []string{resource}, verbs: []string{verb}, names: g.names}
				if !slices.ContainsFunc(rules, one.in) {
					missing.add(target{g.group, resource}, verb)
				}
			}
		}
	}
	return &missing
}

// verbsOf lists verbs by what they are about, in the order of the first of each.
type verbsOf struct {
	targets []target
	verbs   map[target][]string
}

func (v *verbsOf) add(t target, verb string) {
	if v.verbs == nil {
		v.verbs = map[target][]string{}
	}
	if len(v.verbs[t]) == 0 {
		v.targets = append(v.targets, t)
	}
	if !slices.Contains(v.verbs[t], verb) {
		v.verbs[t] = append(v.verbs[t], verb)
	}
}

func (v *verbsOf) words() []string {
	out := make([]string, 0, len(v.targets))
	for _, t := range v.targets {
		out = append(out, strings.Join(v.verbs[t], ",")+" "+t.String())
	}
	return out
}

func (v *verbsOf) only(resource string) bool {
	return !slices.ContainsFunc(v.targets, func(t target) bool { return t.resource != resource })
}
