// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// forgeryBreakages are those of the policies on the kinds of remediation.
func forgeryBreakages() map[string]map[string]breakage {
	out := map[string]map[string]breakage{}
	for id, name := range map[string]string{
		"policy.policy-writers": policyWritersPolicy, "policy.plan-writers": planWritersPolicy,
		"policy.request-writers": requestWritersPolicy, "policy.assessment-writers": assessmentWritersPolicy,
		"policy.ledger-writers": ledgerWritersPolicy, "policy.executor-marks": executorMarksPolicy,
	} {
		cases := validatingCases(name)
		cases["a matchCondition"] = policyIn(name, func(p *Policy) { p.Conditions = []string{"never"} })
		cases["a rule of another scope"] = policyIn(name, func(p *Policy) {
			other := onCluster(p.Rules[0].RuleWithOperations)
			if *p.Rules[0].Scope == *other.Scope {
				other = rule(other.Operations, other.APIGroups[0], other.Resources[0])
			}
			p.Rules[0].RuleWithOperations = other
		})
		cases["a forged write passes"] = on(func(s *Snapshot) {
			for i := range s.Probes.Forgeries {
				if s.Probes.Forgeries[i].Policy == name {
					s.Probes.Forgeries[i].Read = Got(Outcome{})
				}
			}
		})
		cases["the executor is not enabled, and a rule is gone"] = both(withoutExecutor, cases["a rule is gone"])
		out[id] = cases
	}
	return out
}

// withoutExecutor is an installation that has none.
var withoutExecutor = on(func(s *Snapshot) {
	s.Workloads.Value = slices.DeleteFunc(s.Workloads.Value, func(w Workload) bool { return w.Name == ExecutorName })
	s.Workloads.Value[1].Args = nil
})

// oneProcess has the assessor carry plans out, under the executor's account.
var oneProcess = on(func(s *Snapshot) {
	own := s.executorWorkload()
	assessor := &s.Workloads.Value[1]
	assessor.Args = slices.Concat([]string{"--role=assess,execute", executorUserFlag + executorUser}, own.Args[1:])
	s.Workloads.Value = s.Workloads.Value[:3]
	s.Pods.Value[2].Component = assessorComponent
	s.Roles.Value.ClusterRoles[AssessorName] = []rbacv1.PolicyRule{rights("plumbline.dev", "baselines", "create", "delete")}
	s.Roles.Value.ClusterBindings = append(s.Roles.Value.ClusterBindings, RoleBinding{
		Role: rbacv1.RoleRef{Kind: "ClusterRole", Name: AssessorName}, Subjects: []rbacv1.Subject{account(s.Namespace, ExecutorName)},
	})
})

// observing makes all policies observe only.
var observing = remediation(func(r *Remediation) { r.Policies.Value[0].Spec.Mode = v1alpha1.PolicyModeObserveOnly })

func remediation(change func(*Remediation)) breakage {
	return on(func(s *Snapshot) { change(&s.Remediation) })
}

func executorDeployment(change func(w *Workload)) breakage {
	return on(func(s *Snapshot) { change(s.executorWorkload()) })
}

// whileOff adds what every check of the executor says where there is none, or
// nobody knows.
func whileOff(cases map[string]breakage) map[string]breakage {
	maps.Copy(cases, map[string]breakage{
		"the executor is not enabled":      both(withoutExecutor, observing),
		"in one process with the assessor": oneProcess,
		"Deployments cannot be read":       hide("workloads"),
		"no installation":                  on(func(s *Snapshot) { s.Namespace = "" }),
		"no Deployment but the webhook's":  on(func(s *Snapshot) { s.Workloads.Value = s.Workloads.Value[:1] }),
	})
	return cases
}

// standbyCases are what can be wrong with the policy on standbys, beside a mesh.
func standbyCases() map[string]breakage {
	meshed := executorDeployment(func(w *Workload) { w.Args = append(w.Args, meshFlag) })
	cases := map[string]breakage{"there is no mesh": on(func(*Snapshot) {})}
	for what, breaks := range validatingCases(executorStandbysPolicy) {
		cases[what] = both(meshed, breaks)
	}
	return whileOff(cases)
}

func executorBreakages() map[string]map[string]breakage {
	down := executorDeployment(func(w *Workload) { w.Ready = 0 })
	lease := func(change func(l *Lease)) breakage {
		return remediation(func(r *Remediation) { change(&r.Lease.Value) })
	}
	return map[string]map[string]breakage{
		"executor.workload": whileOff(map[string]breakage{
			"its Deployment was deleted":                     on(func(s *Snapshot) { s.Workloads.Value = s.Workloads.Value[:3] }),
			"no replica is ready":                            down,
			"no replica is ready, and no policy is Active":   both(down, observing),
			"no replica is ready, and policies are not read": both(down, hide("remediation policies")),
			"scaled to 0":                    executorDeployment(func(w *Workload) { w.Desired, w.Ready = 0, 0 }),
			"one replica of two":             executorDeployment(func(w *Workload) { w.Desired = 2 }),
			"not enabled, a policy Active":   withoutExecutor,
			"not enabled, a policy notifies": both(withoutExecutor, remediation(func(r *Remediation) { r.Policies.Value[0].Spec.Action = v1alpha1.ActionNotifyOnly })),
			"not enabled, policies unread":   both(withoutExecutor, hide("remediation policies")),
			"not enabled, of no Environment": both(withoutExecutor, remediation(func(r *Remediation) { r.Environments.Value = nil })),
		}),
		"executor.leader": whileOff(map[string]breakage{
			"nobody holds it, in one process": both(oneProcess, lease(func(l *Lease) { l.Holder = "" })),
			"no lease":                        remediation(func(r *Remediation) { r.Lease = Gone[Lease]() }),
			"nobody holds it":                 lease(func(l *Lease) { l.Holder = "" }),
			"it has gone stale":               lease(func(l *Lease) { l.Renewed = testNow.Add(-time.Hour) }),
			"cannot be read":                  hide("executor lease"),
		}),
		"executor.rights":     whileOff(rightsCases()),
		"executor.namespaces": whileOff(namespacesCases()),
		"executor.evidence":   whileOff(evidenceCases()),

		"policy.executor-creations": whileOff(validatingCases(executorCreationsPolicy)),
		"policy.executor-standbys":  standbyCases(),
	}
}

// give binds a role of one rule to the executor, as its own account.
func give(namespace string, r rbacv1.PolicyRule) breakage {
	return bind(namespace, r, account(own, ExecutorName))
}

func clusterRole(name string, change func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) breakage {
	return on(func(s *Snapshot) { s.Roles.Value.ClusterRoles[name] = change(s.Roles.Value.ClusterRoles[name]) })
}

// targetsBound binds the role of the targets once more.
func targetsBound(namespace string) breakage {
	return on(func(s *Snapshot) {
		b := RoleBinding{Namespace: namespace, Role: rbacv1.RoleRef{Kind: "ClusterRole", Name: executorTargets}, Subjects: []rbacv1.Subject{account(own, ExecutorName)}}
		if namespace == "" {
			s.Roles.Value.ClusterBindings = append(s.Roles.Value.ClusterBindings, b)
		} else {
			s.Roles.Value.Bindings = append(s.Roles.Value.Bindings, b)
		}
	})
}

func rightsCases() map[string]breakage {
	homeRole := func(change func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) breakage {
		return on(func(s *Snapshot) {
			key := own + "/" + ExecutorName
			s.Roles.Value.Roles[key] = change(s.Roles.Value.Roles[key])
		})
	}
	without := func(resource string) func([]rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
			return slices.DeleteFunc(slices.Clone(rules), func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, resource) })
		}
	}
	none := func([]rbacv1.PolicyRule) []rbacv1.PolicyRule { return nil }
	return map[string]breakage{
		"it may not write ledgers":           homeRole(without("remediationledgers/status")),
		"it may not ask for access":          clusterRole(ExecutorName, without("subjectaccessreviews")),
		"it may not read service accounts":   clusterRole(ExecutorName, without("serviceaccounts")),
		"it may not tell Events":             both(clusterRole(ExecutorName, without("events")), homeRole(without("events"))),
		"its ClusterRole is empty":           clusterRole(ExecutorName, none),
		"StatefulSets are not its targets":   clusterRole(executorTargets, without("statefulsets")),
		"its targets are gone":               clusterRole(executorTargets, none),
		"Secrets everywhere":                 give("", rights("", "secrets", "get", "list")),
		"Secrets in a namespace it works in": give("shop", rights("", "secrets", "get")),
		"the Secrets of channels":            give(own, named1(rights("", "secrets", "get"), "chat")),
		"all Secrets of its own namespace":   give(own, rights("", "secrets", "get")),
		"our own Secrets":                    give(own, named1(rights("", "secrets", "get"), SecretName)),
		"pods, in one process":               both(oneProcess, give("shop", rights("", "pods", "create"))),
		"it may make pods":                   give("shop", rights("", "pods", "create")),
		"it may delete": clusterRole(executorTargets, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
			return append(slices.Clone(rules), rights("apps", "deployments", "delete"))
		}),
		"it may read pods":                 give("shop", rights("", "pods", "get", "list")),
		"its targets everywhere":           targetsBound(""),
		"its targets in kube-system":       targetsBound("kube-system"),
		"a role of its own elsewhere":      give("others", rights("apps", "deployments", "update", "patch")),
		"everything":                       give("", rights("*", "*", "*")),
		"every lease of its own namespace": give(own, rights("coordination.k8s.io", "leases", "update")),
		"as everybody, Secrets":            bind("", rights("", "secrets", "get"), group("system:serviceaccounts")),
		"as everybody, ConfigMaps to read": bind("", rights("", "configmaps", "get"), group("system:authenticated")),
		"by the group of its namespace":    bind("", rights("", "configmaps", "get"), group("system:serviceaccounts:"+own)),
		"by its user name, twice": both(bind("shop", rights("", "pods", "create"), user(executorUser)), on(func(s *Snapshot) {
			b := s.Roles.Value.Bindings[len(s.Roles.Value.Bindings)-1]
			b.Namespace = "others"
			s.Roles.Value.Bindings = append(s.Roles.Value.Bindings, b)
		})),
		"the metrics of the API server": give("", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}),
		"what it needs, once more":      give("shop", rights("apps", "deployments", "get", "update")),
		"roles cannot be read":          hide("roles"),
		"webhooks cannot be read":       hide("webhooks"),
		"no kind is registered":         on(func(s *Snapshot) { s.Webhooks.Value, s.Policies.Value = nil, Policies{} }),
	}
}

func namespacesCases() map[string]breakage {
	unbound := on(func(s *Snapshot) {
		s.Roles.Value.Bindings = slices.DeleteFunc(s.Roles.Value.Bindings, func(b RoleBinding) bool { return b.Namespace == "shop" })
	})
	wider := both(on(func(s *Snapshot) { s.Namespaces.Value["web"] = map[string]string{} }),
		remediation(func(r *Remediation) { r.Environments.Value[0].Namespaces = []string{"shop", "web"} }))
	return map[string]breakage{
		"its namespace is not bound":                      unbound,
		"to somebody else":                                both(unbound, bind("shop", rights("apps", "deployments", "update"), account("shop", ExecutorName))),
		"by another role":                                 both(unbound, give("shop", rights("apps", "deployments", "get", "create", "update", "patch"))),
		"one of two is not, and nothing there is guarded": wider,
		"one of two is not": both(wider, on(func(s *Snapshot) {
			s.Guards.Value = append(s.Guards.Value, specGuard("web", "web", v1alpha1.GuardModeWarn, "Deployment"))
		})),
		"no Environment":                        remediation(func(r *Remediation) { r.Policies.Value[0].Spec.EnvironmentName = "staging" }),
		"no policy is Active":                   both(unbound, observing),
		"a policy that only notifies":           both(unbound, remediation(func(r *Remediation) { r.Policies.Value[0].Spec.Action = v1alpha1.ActionNotifyOnly })),
		"policies cannot be read":               hide("remediation policies"),
		"Environments cannot be read":           hide("environments"),
		"roles cannot be read":                  hide("roles"),
		"guards cannot be read":                 hide("guards"),
		"namespaces cannot be read":             hide("namespaces"),
		"no policy, and no Environments to see": both(observing, hide("environments")),
	}
}

func evidenceCases() map[string]breakage {
	records := func(r Read[struct{}]) breakage {
		return on(func(s *Snapshot) { s.Pods.Value[2].Records = r })
	}
	return map[string]breakage{
		"no ConfigMap":                 remediation(func(r *Remediation) { r.PublicKeys = Gone[string]() }),
		"no key in it":                 remediation(func(r *Remediation) { r.PublicKeys = Got("") }),
		"its ConfigMap cannot be read": hide("public keys"),
		"a volume that may be lost":    executorDeployment(func(w *Workload) { w.Fleeting = []string{"tmp", evidenceVolume} }),
		"a volume that may be lost, and a bucket": executorDeployment(func(w *Workload) {
			w.Fleeting, w.Args = []string{evidenceVolume}, []string{"--evidence=s3://bucket"}
		}),
		"it does not answer":                   records(Read[struct{}]{Reason: "the server could not find the requested resource"}),
		"it does not answer, and need not":     both(records(Read[struct{}]{Reason: "404"}), executorDeployment(func(w *Workload) { w.Args = w.Args[:2] })),
		"it does not answer, and is not ready": both(records(Read[struct{}]{Reason: "refused"}), on(func(s *Snapshot) { s.Pods.Value[2].Ready = false })),
		"it does not answer, in one process":   both(oneProcess, records(Read[struct{}]{Reason: "refused"})),
		"nobody may ask":                       records(forbidden[struct{}]("get pods/proxy in namespace " + own)),
		"pods cannot be listed":                hide("pods"),
		"its Deployment was deleted":           on(func(s *Snapshot) { s.Workloads.Value = s.Workloads.Value[:3] }),
	}
}

func remediationBreakages() map[string]map[string]breakage {
	return map[string]map[string]breakage{"remediation.ledgers": whileOff(ledgerCases()), "remediation.plans": whileOff(planCases()), "effectiveness.sources": sourceCases()}
}

// assessing has the assessor assess effects.
func assessing(change func(r *Remediation)) breakage {
	return on(func(s *Snapshot) {
		s.Workloads.Value = slices.Clone(s.Workloads.Value) // other snapshots share the old ones
		for i := range s.Workloads.Value {
			if w := &s.Workloads.Value[i]; w.Name == AssessorName {
				w.Args = append(slices.Clone(w.Args), effectivenessFlag+"true")
			}
		}
		change(&s.Remediation)
	})
}

func sourceCases() map[string]breakage {
	silent := func(component v1alpha1.EffectComponent, why string) Unanswered {
		return Unanswered{component, "shop", "production-7-0", why, testNow.Add(-time.Minute)}
	}
	return map[string]breakage{
		"effects are not assessed": on(func(*Snapshot) {}),
		"both sources answer":      assessing(func(*Remediation) {}),
		"nothing proves that alerts arrive, and Prometheus is away": assessing(func(r *Remediation) {
			r.Unanswered = Got([]Unanswered{
				silent(v1alpha1.ComponentAlerts, "no alert fires, and there is no proof that alerts arrive: name a watchdog"),
				silent(v1alpha1.ComponentMetrics, "no metric says anything: errors: no answer of Prometheus: the connection is refused"),
			})
		}),
		"pods cannot be listed": assessing(func(r *Remediation) {
			r.Unanswered = Got([]Unanswered{silent(v1alpha1.ComponentHealth, "pods is forbidden")})
		}),
		"assessments cannot be read": assessing(func(r *Remediation) {
			r.Unanswered = forbidden[[]Unanswered]("list effectivenessassessments.plumbline.dev")
		}),
		"workloads cannot be read": hide("workloads"),
	}
}

func ledgerCases() map[string]breakage {
	first := func(change func(l *v1alpha1.RemediationLedger)) breakage {
		return remediation(func(r *Remediation) { change(&r.Ledgers.Value[0]) })
	}
	renewed := first(func(l *v1alpha1.RemediationLedger) {
		l.Status.GrantStartTime = &metav1.Time{Time: testNow.Add(20 * time.Hour)}
	})
	breaker := func(b v1alpha1.LedgerBreaker) breakage {
		return first(func(l *v1alpha1.RemediationLedger) {
			l.Status.Breakers = []v1alpha1.LedgerBreaker{b}
			l.Status.Entries = []v1alpha1.LedgerEntry{{StepReference: v1alpha1.StepReference{Namespace: "shop", PlanName: "images-1"}, PolicyUID: b.PolicyUID}}
		})
	}
	open := v1alpha1.LedgerBreaker{PolicyUID: "uid-of-images", State: v1alpha1.BreakerOpen, Failures: 3, LastOpenTime: &metav1.Time{Time: testNow.Add(-time.Minute)}}
	half := open
	half.State, half.Probe = v1alpha1.BreakerHalfOpen, &v1alpha1.StepReference{Namespace: "shop", PlanName: "images-1"}
	odd := open
	odd.State, odd.LastOpenTime = "Ajar", nil
	closed, gone := open, open
	closed.State, gone.PolicyUID = v1alpha1.BreakerClosed, "uid-of-nothing"
	return map[string]breakage{
		"made anew": renewed,
		"made anew, and a person lets it grant": both(renewed, first(func(l *v1alpha1.RemediationLedger) {
			l.Spec.Override = &v1alpha1.LedgerOverride{RequestedBy: "alice", Reason: "quiet night"}
		})),
		"made anew a day ago":                  first(func(l *v1alpha1.RemediationLedger) { l.Status.GrantStartTime = &metav1.Time{Time: testNow} }),
		"an open breaker":                      breaker(open),
		"a breaker that is half open":          breaker(half),
		"a breaker in a state of tomorrow":     breaker(odd),
		"a breaker that is closed":             breaker(closed),
		"an open breaker of a policy gone":     breaker(gone),
		"an open breaker, policies are unread": both(breaker(open), hide("remediation policies")),
		"halted": first(func(l *v1alpha1.RemediationLedger) {
			l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "alice", Reason: "INC-9"}
		}),
		"the cluster is halted": remediation(func(r *Remediation) {
			r.Ledgers.Value[1].Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "alice", Reason: "INC-9"}
		}),
		"the ledger of an Environment is gone": remediation(func(r *Remediation) { r.Ledgers.Value = r.Ledgers.Value[1:] }),
		"it has another uid":                   first(func(l *v1alpha1.RemediationLedger) { l.UID = "uid-of-another" }),
		"the cluster's is gone":                remediation(func(r *Remediation) { r.Ledgers.Value = r.Ledgers.Value[:1] }),
		"all are gone, and nobody had one":     remediation(func(r *Remediation) { r.Ledgers.Value, r.Environments.Value[0].Ledger = nil, "" }),
		"ledgers cannot be read":               hide("ledgers"),
		"Environments cannot be read":          hide("environments"),
		"made anew, Environments are not read": both(renewed, hide("environments")),
	}
}

func planCases() map[string]breakage {
	ago := func(d time.Duration) time.Time { return testNow.Add(-d) }
	waits := func(plans ...WaitingPlan) breakage {
		return remediation(func(r *Remediation) {
			for i := range plans {
				plans[i].Namespace, plans[i].Name, plans[i].Policy = "shop", "images-"+string(rune('a'+i)), "images"
			}
			r.Plans = Got(Plans{Unfinished: len(plans), Waiting: plans})
		})
	}
	const window = "the maintenance window is closed"
	return map[string]breakage{
		"for two hours":                 waits(WaitingPlan{Since: ago(2 * time.Hour), Why: "Cooldown: a step ended a moment ago (ledger production)"}),
		"until a time that is over":     waits(WaitingPlan{Since: ago(2 * time.Hour), Why: window, Until: ago(time.Minute)}),
		"for a window that is to open":  waits(WaitingPlan{Since: ago(2 * time.Hour), Why: window, Until: testNow.Add(time.Hour)}),
		"for that, since yesterday":     waits(WaitingPlan{Since: ago(20 * time.Hour), Why: window, Until: testNow.Add(time.Hour)}),
		"nobody has taken it":           waits(WaitingPlan{Since: ago(20 * time.Minute)}),
		"it was made a moment ago":      waits(WaitingPlan{Since: ago(time.Minute)}, WaitingPlan{Since: ago(time.Minute), Why: window}),
		"for a person, since yesterday": waits(WaitingPlan{Since: ago(20 * time.Hour), Why: "it waits for a person to execute it", Person: true}),
		"for a person, for two hours":   waits(WaitingPlan{Since: ago(2 * time.Hour), Why: "paused by alice", Person: true}),
		"two of them":                   waits(WaitingPlan{Since: ago(3 * time.Hour), Why: "evidence cannot be written: full"}, WaitingPlan{Since: ago(2 * time.Hour), Why: window}),
		"plans cannot be read":          hide("plans"),
	}
}
