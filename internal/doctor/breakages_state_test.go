// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func guards(guards ...Guard) breakage { return on(func(s *Snapshot) { s.Guards = Got(guards) }) }

func changed(g Guard, change func(*Guard)) Guard {
	change(&g)
	return g
}

func guardBreakages() map[string]map[string]breakage {
	shop := specGuard("shop", "shop", v1alpha1.GuardModeWarn, "Deployment")
	ready := func(status metav1.ConditionStatus) Guard {
		return changed(shop, func(g *Guard) {
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: "KindNotServed", Message: "spec.resources[0]: not served"}}
		})
	}
	return map[string]map[string]breakage{
		"guards.coverage": {
			"no guards":                     guards(),
			"a kind that is not registered": guards(specGuard("shop", "jobs", v1alpha1.GuardModeWarn, "Job")),
			"a category that is not registered": guards(changed(specGuard("shop", "jobs", v1alpha1.GuardModeWarn, "Deployment"), func(g *Guard) {
				g.Spec.Categories = []v1alpha1.ResourceCategory{v1alpha1.CategoryWorkloads}
			})),
			"a kind that is not served":      guards(changed(shop, func(g *Guard) { g.Spec.Resources[0].Kind = "Widget"; g.Spec.Resources[0].APIVersion = "example.com/v1" })),
			"a kind whose scale is not seen": both(guards(shop), validatingHook(func(w *Webhook) { w.Rules = append(w.Rules[:3:3], w.Rules[4:]...) })),
			"a guard of kube-system":         guards(specGuard("kube-system", "dns", v1alpha1.GuardModeWarn, "Deployment")),
			"guards cannot be read":          hide("guards"),
			"webhooks cannot be read":        hide("webhooks"),
			"discovery fails":                hide("resources"),
		},
		"guards.conditions": {
			"no guards":     guards(),
			"not ready":     guards(ready(metav1.ConditionFalse)),
			"ready unknown": guards(ready(metav1.ConditionUnknown)),
			"says nothing":  guards(changed(shop, func(g *Guard) { g.Status.Conditions = nil })),
			"not taken in":  guards(changed(shop, func(g *Guard) { g.Generation = 3 })),
			"suspended": guards(changed(shop, func(g *Guard) {
				g.Spec.Suspend = &v1alpha1.Suspension{Reason: "migration", EndTime: metav1.NewTime(testNow.Add(time.Hour))}
			})),
			"suspended for longer than was said": guards(changed(specGuard("", "platform", v1alpha1.GuardModeDeny, "Deployment"), func(g *Guard) {
				g.Spec.Suspend = &v1alpha1.Suspension{Reason: "migration", EndTime: metav1.NewTime(testNow.Add(-time.Hour))}
			})),
			"suspended once": guards(changed(specGuard("", "platform", v1alpha1.GuardModeDeny, "Deployment"), func(g *Guard) {
				g.Spec.Suspend = &v1alpha1.Suspension{Reason: "migration", EndTime: metav1.NewTime(testNow.Add(-time.Hour))}
				g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionFalse, ObservedGeneration: 1})
			})),
			"mass drift": guards(changed(shop, func(g *Guard) {
				g.Status.Conditions = append(g.Status.Conditions[:1:1], metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMassDrift, Message: "12 of 20 drift"})
			})),
			"guards cannot be read": hide("guards"),
		},
	}
}

func assessorBreakages() map[string]map[string]breakage {
	baselines := func(change func(b *Baselines)) breakage {
		return on(func(s *Snapshot) { change(&s.Baselines.Value) })
	}
	metric := func(pod int, m Metrics) breakage {
		return on(func(s *Snapshot) { s.Pods.Value[pod].Metrics = Got(m) })
	}
	idle := both(metric(0, Metrics{}), metric(1, Metrics{metricRedisUp: 1}))
	return map[string]map[string]breakage{
		"assessor.leader": {
			"no lease":          on(func(s *Snapshot) { s.AssessorLease = Gone[Lease]() }),
			"nobody holds it":   on(func(s *Snapshot) { s.AssessorLease.Value.Holder = "" }),
			"it has gone stale": on(func(s *Snapshot) { s.AssessorLease.Value.Renewed = testNow.Add(-time.Hour) }),
			"cannot be read":    hide("lease"),
		},
		"assessor.staleness": {
			"three unread":    baselines(func(b *Baselines) { b.Unread, b.UnreadNames = 1, []string{"shop/deployments.apps.web"} }),
			"many overdue":    baselines(func(b *Baselines) { b.Total, b.Overdue, b.OverdueNames = 40, 12, []string{"shop/a", "shop/b"} }),
			"never compared":  baselines(func(b *Baselines) { b.Unchecked = 1 }),
			"nothing guarded": baselines(func(b *Baselines) { *b = Baselines{} }),
			"cannot be read":  hide("baselines"),
		},
		"details.redis": {
			"one replica is cut off":       metric(1, Metrics{metricWritten: 4}),
			"details are dropped":          metric(0, Metrics{metricDropped: 4}),
			"not used yet":                 idle,
			"not used yet, and elsewhere":  both(idle, on(func(s *Snapshot) { s.Workloads.Value = s.Workloads.Value[:2] })),
			"none configured":              on(func(s *Snapshot) { s.Workloads.Value[0].Args = []string{"--redis-address="} }),
			"replicas cannot be asked":     on(func(s *Snapshot) { s.Pods.Value[0].Metrics = forbidden[Metrics]("get pods/proxy") }),
			"no replica of the webhook":    on(func(s *Snapshot) { s.Pods = Got([]Pod{}) }),
			"pods cannot be listed":        hide("pods"),
			"Deployments cannot be listed": hide("workloads"),
		},
	}
}

// bind gives subjects a role of one rule, everywhere or in a namespace.
func bind(namespace string, r rbacv1.PolicyRule, subjects ...rbacv1.Subject) breakage {
	return on(func(s *Snapshot) {
		name := fmt.Sprintf("role-%d", len(s.Roles.Value.ClusterRoles))
		s.Roles.Value.ClusterRoles[name] = []rbacv1.PolicyRule{r}
		b := RoleBinding{Namespace: namespace, Role: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, Subjects: subjects}
		if namespace == "" {
			s.Roles.Value.ClusterBindings = append(s.Roles.Value.ClusterBindings, b)
		} else {
			s.Roles.Value.Bindings = append(s.Roles.Value.Bindings, b)
		}
	})
}

func rights(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func user(name string) rbacv1.Subject  { return rbacv1.Subject{Kind: "User", Name: name} }
func group(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }
func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
}

// grants are the cases of one power: held by a person, by everybody, by those
// who may, and unreadable.
func grants(r rbacv1.PolicyRule) map[string]breakage {
	return map[string]breakage{
		"held by alice":             bind("", r, user("alice")),
		"held by everybody":         bind("", r, user("bob"), group("system:authenticated")),
		"held by the cluster's own": bind("", r, group("system:nodes"), user("system:kube-scheduler"), account("kube-system", "job-controller"), account(own, AssessorName)),
		"held by everything rights": bind("", rights("*", "*", "*"), user("root")),
		"roles cannot be read":      hide("roles"),
		"held in a namespace":       bind("shop", r, user("carol")),
		"held under another name":   bind("", named1(r, "other"), user("dave")),
	}
}

func named1(r rbacv1.PolicyRule, name string) rbacv1.PolicyRule {
	r.ResourceNames = []string{name}
	return r
}

func rbacBreakages() map[string]map[string]breakage {
	const own = "plumbline.dev"
	status, baselines := grants(rights("apps", "deployments/status", "patch")), grants(rights(own, "baselines/status", "update"))
	for name, breaks := range map[string]breakage{"held by alice": status["held by alice"], "held by everybody": status["held by everybody"]} {
		status[name+", and no policy"] = both(breaks, policyIn(stampStatusPolicy, func(p *Policy) { p.Name = "gone" }))
	}
	baselines["held by everybody, and no policy"] = both(baselines["held by everybody"], policyIn(baselineWritersPolicy, func(p *Policy) { p.Name = "gone" }))
	baselines["held by alice, and a forged one passes"] = both(baselines["held by alice"], on(func(s *Snapshot) { s.Probes.Baseline = Got(Outcome{}) }))
	accounts := grants(rights("", "serviceaccounts", "impersonate"))
	accounts["held where a trusted account lives"] = bind("ci", rights("", "serviceaccounts/token", "create"), user("erin"))
	accounts["guards cannot be read"] = hide("guards")
	namespaces := map[string]breakage{"no guard goes by labels": bind("", rights("", "namespaces", "patch"), user("alice"))}
	byLabel := on(func(s *Snapshot) {
		g := specGuard("", "platform", v1alpha1.GuardModeWarn, "Deployment")
		g.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
		s.Guards.Value = append(s.Guards.Value, g)
	})
	for name, breaks := range grants(rights("", "namespaces", "patch")) {
		namespaces[name] = both(byLabel, breaks)
	}
	namespaces["guards cannot be read"] = hide("guards")
	var crowd []rbacv1.Subject
	for i := range 14 {
		crowd = append(crowd, user(fmt.Sprintf("user-%02d", i)))
	}
	admission := grants(rights("admissionregistration.k8s.io", "*", "*"))
	admission["held for our configurations"] = bind("", named1(rights("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "patch"), "plumbline"), user("alice"))
	admission["held by a crowd"] = bind("", rights("admissionregistration.k8s.io", "validatingadmissionpolicybindings", "delete"), crowd...)
	wide := bind("", rights("*", "*", "*"), user("root"), group("admins"))
	return map[string]map[string]breakage{
		"rbac.guards":           grants(rights(own, "clusterspecguards", "update")),
		"rbac.admission":        admission,
		"rbac.status":           status,
		"rbac.baselines":        baselines,
		"rbac.breakglass":       grants(rights(own, "baselines", "breakglass")),
		"rbac.delegate":         grants(rights(own, "remediationpolicies", "delegate")),
		"rbac.impersonate":      grants(rights("", "users", "impersonate")),
		"rbac.trusted-accounts": accounts,
		"rbac.namespaces":       namespaces,
		"rbac.admins": {
			"two more":             wide,
			"everybody":            bind("", rights("*", "*", "*"), group("system:authenticated")),
			"roles cannot be read": hide("roles"),
		},
	}
}
