// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// on adapts a change that needs no test.
func on(change func(*Snapshot)) breakage { return func(_ *testing.T, s *Snapshot) { change(s) } }

func hide(name string) breakage { return on(hidden[name]) }

func both(breaks ...breakage) breakage {
	return func(t *testing.T, s *Snapshot) {
		for _, b := range breaks {
			b(t, s)
		}
	}
}

// breakages are all cases, by check.
func breakages() map[string]map[string]breakage {
	all := map[string]map[string]breakage{}
	for _, part := range []map[string]map[string]breakage{
		installBreakages(), webhookBreakages(), policyBreakages(), clusterBreakages(), guardBreakages(), assessorBreakages(), rbacBreakages(), gitOpsBreakages(),
		forgeryBreakages(), executorBreakages(), remediationBreakages(), meshBreakages(), deliveryBreakages(), routerBreakages(), apiBreakages(),
	} {
		maps.Copy(all, part)
	}
	return all
}

func installBreakages() map[string]map[string]breakage {
	withoutKind := func(name string) breakage {
		return on(func(s *Snapshot) {
			var kept []Resource
			for _, r := range s.Resources.Value {
				if r.Name != name {
					kept = append(kept, r)
				}
			}
			s.Resources.Value = kept
		})
	}
	return map[string]map[string]breakage{
		"install.found": {
			"no installation":             on(func(s *Snapshot) { s.Namespace = "" }),
			"none in the namespace named": on(func(s *Snapshot) { s.Workloads = Got([]Workload{}) }),
			"nobody may look there":       hide("workloads"),
			"nothing readable": on(func(s *Snapshot) {
				s.Namespace = ""
				hidden["webhooks"](s)
				hidden["workloads"](s)
			}),
		},
		"install.kinds": {
			"the kind of cluster guards is gone": withoutKind("clusterspecguards"),
			"the kind of baselines is gone":      withoutKind("baselines"),
			"discovery fails":                    hide("resources"),
		},
		"install.workloads": {
			"the webhook is scaled to 0":      on(func(s *Snapshot) { s.Workloads.Value[0].Desired, s.Workloads.Value[0].Ready = 0, 0 }),
			"one replica of two is ready":     on(func(s *Snapshot) { s.Workloads.Value[0].Ready = 1 }),
			"the assessor has no ready pod":   on(func(s *Snapshot) { s.Workloads.Value[1].Ready = 0 }),
			"Redis is down":                   on(func(s *Snapshot) { s.Workloads.Value[2].Ready = 0 }),
			"the assessor was deleted":        on(func(s *Snapshot) { s.Workloads.Value = s.Workloads.Value[:1] }),
			"the Service was deleted":         on(func(s *Snapshot) { s.Service = Gone[ServiceStatus]() }),
			"the Service has no endpoints":    on(func(s *Snapshot) { s.Service.Value.Addresses = Got(0) }),
			"Deployments cannot be read":      hide("workloads"),
			"the Service cannot be read":      hide("service"),
			"no installation":                 on(func(s *Snapshot) { s.Namespace = "" }),
			"Redis is of others":              on(func(s *Snapshot) { s.Workloads.Value = s.Workloads.Value[:2] }),
			"endpoints cannot be read at all": on(func(s *Snapshot) { s.Service.Value.Addresses = forbidden[int]("list endpointslices") }),
		},
		"install.versions": {
			"an assessor of the version before": on(func(s *Snapshot) { s.Workloads.Value[1].Version = "0.0.9" }),
			"a policy of the version before":    on(func(s *Snapshot) { s.Policies.Value.Policies[0].Labels = map[string]string{versionLabel: "0.0.9"} }),
			"a pod of the version before":       on(func(s *Snapshot) { s.Pods.Value[0].Version = "0.0.9" }),
			"an image of another version":       on(func(s *Snapshot) { s.Pods.Value[0].Build = "v0.2.0" }),
			"an image built from source":        on(func(s *Snapshot) { s.Pods.Value[0].Build = "(devel)" }),
			"a newer plugin":                    on(func(s *Snapshot) { s.ClientVersion = "v0.2.0" }),
			"a plugin built from source":        on(func(s *Snapshot) { s.ClientVersion = "(devel)" }),
			"neither pods nor Deployments":      both(hide("pods"), hide("workloads")),
		},
		"install.apiserver": {
			"an old API server": on(func(s *Snapshot) { s.Server = Got(ServerVersion{GitVersion: "v1.29.4", Major: 1, Minor: 29}) }),
			"without policies that mutate": both(withoutKind("mutatingadmissionpolicies"),
				on(func(s *Snapshot) { s.Server = Got(ServerVersion{GitVersion: "v1.33.0", Major: 1, Minor: 33}) })),
			"three API servers":      on(func(s *Snapshot) { s.APIServers = Got([]string{"a", "b", "c"}) }),
			"a clock that is off":    on(func(s *Snapshot) { s.Skew = Got(-3 * time.Minute) }),
			"the version is unknown": hide("server"),
		},
	}
}

func mutating(change func(w *Webhook)) breakage {
	return on(func(s *Snapshot) { change(&s.Webhooks.Value[0]) })
}

func validatingHook(change func(w *Webhook)) breakage {
	return on(func(s *Snapshot) { change(&s.Webhooks.Value[1]) })
}

func webhookBreakages() map[string]map[string]breakage {
	expire := func(pod int, at time.Time) breakage {
		return on(func(s *Snapshot) { s.Pods.Value[pod].Metrics.Value[metricExpiry] = float64(at.Unix()) })
	}
	blind := on(func(s *Snapshot) {
		for i := range s.Pods.Value {
			s.Pods.Value[i].Metrics = forbidden[Metrics]("get pods/proxy")
		}
	})
	written := func(change func(w *Written)) breakage {
		return on(func(s *Snapshot) { change(&s.Probes.Write.Value) })
	}
	unguarded := on(func(s *Snapshot) {
		s.Guards = Got([]Guard{})
		s.Probes.Plan, _ = PlanWrite(s, "")
		s.Probes.Write.Value.Hash = ""
	})
	return map[string]map[string]breakage{
		"webhook.registration": {
			"the validating configuration is gone": on(func(s *Snapshot) { s.Webhooks.Value = s.Webhooks.Value[:1] }),
			"failurePolicy Fail":                   validatingHook(func(w *Webhook) { w.FailurePolicy = admissionv1.Fail }),
			"a timeout of 10 s":                    mutating(func(w *Webhook) { w.TimeoutSeconds = 10 }),
			"sideEffects Some":                     mutating(func(w *Webhook) { w.SideEffects = admissionv1.SideEffectClassSome }),
			"matchPolicy Exact":                    mutating(func(w *Webhook) { w.MatchPolicy = admissionv1.Exact }),
			"never reinvoked":                      mutating(func(w *Webhook) { w.Reinvoked = false }),
			"an objectSelector":                    mutating(func(w *Webhook) { w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} }),
			"a second matchCondition": validatingHook(func(w *Webhook) {
				w.Conditions = append(w.Conditions, admissionv1.MatchCondition{Name: "never", Expression: "false"})
			}),
			"no matchCondition":      validatingHook(func(w *Webhook) { w.Conditions = nil }),
			"another matchCondition": validatingHook(func(w *Webhook) { w.Conditions[0].Expression = "false" }),
			"kube-system is not excluded": validatingHook(func(w *Webhook) {
				w.NamespaceSelector.MatchExpressions[0].Values = []string{"kube-node-lease", "kube-public", own}
			}),
			"shop is excluded": validatingHook(func(w *Webhook) {
				w.NamespaceSelector.MatchExpressions[0].Values = append([]string{"shop"}, w.NamespaceSelector.MatchExpressions[0].Values...)
			}),
			"a label opens the door": validatingHook(func(w *Webhook) { w.NamespaceSelector.MatchLabels = map[string]string{"plumbline": "on"} }),
			"no namespaceSelector":   validatingHook(func(w *Webhook) { w.NamespaceSelector = nil }),
			"a platform adds its own": validatingHook(func(w *Webhook) {
				w.NamespaceSelector.MatchExpressions = append(w.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist})
			}),
			"another Service": validatingHook(func(w *Webhook) { w.Client.Service.Namespace = "evil" }),
			"called by URL":   validatingHook(func(w *Webhook) { w.Client.Service = nil }),
			"cannot be read":  hide("webhooks"),
		},
		"webhook.rules": {
			"statefulsets left out of one": validatingHook(func(w *Webhook) { w.Rules = append(w.Rules[:1:1], w.Rules[2:]...) }),
			"deletes left out":             validatingHook(func(w *Webhook) { w.Rules[0].Operations = storing }),
			"updates left out":             mutating(func(w *Webhook) { w.Rules[0].Operations = storing[:1] }),
			"updates left out where the webhook stamps the writer": on(func(s *Snapshot) {
				s.Workloads.Value[0].Args = []string{"--stamp-writer=true"}
			}),
			"all rules gone": both(mutating(func(w *Webhook) { w.Rules = nil }), validatingHook(func(w *Webhook) { w.Rules = nil }),
				on(func(s *Snapshot) { s.Policies.Value.Policies[0].Rules = nil })),
			"known to the policy alone": both(mutating(func(w *Webhook) { w.Rules = w.Rules[:2] }), validatingHook(func(w *Webhook) { w.Rules = append(w.Rules[:2:2], w.Rules[3:]...) })),
			"scale left out":            validatingHook(func(w *Webhook) { w.Rules = append(w.Rules[:3:3], w.Rules[5:]...) }),
			"resize left out":           validatingHook(func(w *Webhook) { w.Rules = w.Rules[:6] }),
			"cannot be read":            hide("webhooks"),
			"discovery fails":           hide("resources"),
			"policies cannot be read":   hide("policies"),
		},
		"webhook.bundle": {
			"empty":             validatingHook(func(w *Webhook) { w.Client.CABundle = nil }),
			"garbage":           validatingHook(func(w *Webhook) { w.Client.CABundle = []byte("garbage") }),
			"another authority": func(t *testing.T, s *Snapshot) { s.Webhooks.Value[0].Client.CABundle = newAuthority(t).bundle() },
			"an expired leaf": func(t *testing.T, s *Snapshot) {
				s.Certificate.Value.Leaf = newAuthority(t).leaf(t, testNow.Add(-48*time.Hour), testNow.Add(-time.Hour))
			},
			"empty, for pods that ask for a proxy": add(injection(nil)),
			"another authority, for such pods": func(t *testing.T, s *Snapshot) {
				add(injection(newAuthority(t).bundle()))(t, s)
			},
			"not registered":                      on(func(s *Snapshot) { s.Webhooks.Value = nil }),
			"no Secret, and nothing came back":    both(on(func(s *Snapshot) { s.Certificate = Gone[Certificate]() }), hide("write")),
			"no right to the Secret, no probe":    both(hide("certificate"), hide("write")),
			"no right to the Secret, but stamped": hide("certificate"),
			"cannot be read":                      hide("webhooks"),
		},
		"webhook.certificate": {
			"a replica's has expired":                         expire(1, testNow.Add(-time.Minute)),
			"a replica's is old":                              expire(1, testNow.Add(40*time.Hour)),
			"a replica has none":                              expire(0, time.Unix(0, 0)),
			"replicas cannot be asked":                        blind,
			"replicas cannot be asked, nor was a write tried": both(blind, hide("write")),
			"no pods":               on(func(s *Snapshot) { s.Pods = Got([]Pod{}); hidden["write"](s) }),
			"pods cannot be listed": both(hide("pods"), hide("write")),
			"what is stored has expired": both(blind, func(t *testing.T, s *Snapshot) {
				s.Certificate.Value.Leaf = newAuthority(t).leaf(t, testNow.Add(-8*24*time.Hour), testNow.Add(-24*time.Hour))
			}),
		},
		"webhook.reachable": {
			"no stamp comes back":         written(func(w *Written) { w.Hash = "" }),
			"somebody mutates later":      written(func(w *Written) { w.WantHash = "pl1:sha256:bb" }),
			"refused by a quota":          written(func(w *Written) { w.Outcome = Outcome{Refused: true, Message: "exceeded quota"} }),
			"no right to write":           hide("write"),
			"no guard, but asked":         unguarded,
			"no guard, and never asked":   both(unguarded, written(func(w *Written) { w.ReviewsAfter = w.ReviewsBefore })),
			"no guard, and counts hidden": both(unguarded, written(func(w *Written) { w.ReviewsAfter = forbidden[float64]("get pods/proxy") })),
		},
	}
}

// policyIn changes one policy.
func policyIn(name string, change func(p *Policy)) breakage {
	return on(func(s *Snapshot) { change(s.policy(name)) })
}

func bindingIn(name string, change func(b *Binding)) breakage {
	return on(func(s *Snapshot) {
		for i := range s.Policies.Value.Bindings {
			if b := &s.Policies.Value.Bindings[i]; b.Name == name {
				change(b)
			}
		}
	})
}

// policyCases are what can be wrong with any policy.
func policyCases(name string) map[string]breakage {
	return map[string]breakage{
		"the policy is gone":       policyIn(name, func(p *Policy) { p.Name = "gone" }),
		"the binding is gone":      bindingIn(name, func(b *Binding) { b.Policy = "gone" }),
		"failurePolicy Ignore":     policyIn(name, func(p *Policy) { p.FailurePolicy = admissionv1.Ignore }),
		"the binding is narrowed":  bindingIn(name, func(b *Binding) { b.Restricted = true }),
		"a rule is gone":           policyIn(name, func(p *Policy) { p.Rules = p.Rules[1:] }),
		"a rule is excluded":       policyIn(name, func(p *Policy) { p.Excluded = p.Rules[:1] }),
		"a rule names one object":  policyIn(name, func(p *Policy) { p.Rules[0].ResourceNames = []string{"one"} }),
		"it does nothing":          policyIn(name, func(p *Policy) { p.Effects = 0 }),
		"an objectSelector":        policyIn(name, func(p *Policy) { p.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} }),
		"a namespaceSelector":      policyIn(name, func(p *Policy) { p.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} }),
		"expressions do not check": policyIn(name, func(p *Policy) { p.TypeWarnings = []string{"spec.validations[0].expression: undefined field"} }),
		"cannot be read":           hide("policies"),
	}
}

func validatingCases(name string) map[string]breakage {
	cases := policyCases(name)
	cases["it only warns"] = bindingIn(name, func(b *Binding) { b.Actions = []admissionv1.ValidationAction{admissionv1.Warn, admissionv1.Audit} })
	return cases
}

func policyBreakages() map[string]map[string]breakage {
	writer, baselines, deny := policyCases(writerPolicy), validatingCases(baselineWritersPolicy), validatingCases(denyPolicy)
	written := func(change func(w *Written)) breakage {
		return on(func(s *Snapshot) { change(&s.Probes.Write.Value) })
	}
	writer["no stamp comes back"] = written(func(w *Written) { w.Writer = "" })
	writer["somebody else is stamped"] = written(func(w *Written) { w.Writer = "mallory" })
	writer["the write was refused"] = written(func(w *Written) { w.Outcome = Outcome{Refused: true, Message: "exceeded quota"} })
	writer["no right to write"] = hide("write")
	writer["the webhook stamps"] = on(func(s *Snapshot) { s.Workloads.Value[0].Args = []string{"--stamp-writer=true"} })
	writer["both stamp, and the policy is gone"] = both(writer["the webhook stamps"], writer["the policy is gone"], on(func(s *Snapshot) {
		s.Workloads.Value[1].Args = append(s.Workloads.Value[1].Args, "--stamp-writer=true", "--stamp-policy=true")
	}))
	baselines["a forged Baseline passes"] = on(func(s *Snapshot) { s.Probes.Baseline = Got(Outcome{}) })
	denying := on(func(s *Snapshot) {
		g := specGuard("", "platform", v1alpha1.GuardModeDeny, "Deployment")
		g.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "others"}}
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue})
		s.Guards.Value = append(s.Guards.Value, g)
		s.Probes.DenyPlan, _ = PlanDeny(s)
		s.Probes.Deny = Got(Outcome{Refused: true, By: denyPolicy})
	})
	withDeny := map[string]breakage{"no guard denies, nothing installed": deny["the policy is gone"], "no guard denies, and it only warns": deny["it only warns"]}
	for name, breaks := range deny {
		withDeny[name] = both(denying, breaks)
	}
	withDeny["in force"] = denying
	enforced := func(status metav1.ConditionStatus) breakage {
		return both(denying, on(func(s *Snapshot) {
			s.Guards.Value[1].Status.Conditions[1] = metav1.Condition{Type: v1alpha1.ConditionEnforced, Status: status, Reason: "Probe", Message: "as the probe says"}
		}))
	}
	withDeny["the assessor says no"] = enforced(metav1.ConditionFalse)
	withDeny["the assessor does not know"] = enforced(metav1.ConditionUnknown)
	withDeny["a foreign write passes"] = both(denying, on(func(s *Snapshot) { s.Probes.Deny = Got(Outcome{}) }))
	withDeny["a trusted write passes"] = both(denying, on(func(s *Snapshot) { s.Probes.Deny, s.Probes.DenyPlan.Trusted = Got(Outcome{}), true }))
	withDeny["somebody else refuses"] = both(denying, on(func(s *Snapshot) { s.Probes.Deny = Got(Outcome{Refused: true, Message: "exceeded quota"}) }))
	withDeny["no right to write"] = both(denying, hide("deny"))
	withDeny["the kind of guards is gone"] = on(func(s *Snapshot) { s.Resources.Value = []Resource{{Group: "apps", Name: "deployments"}} })
	withDeny["the kind of guards is gone, and Fail"] = both(withDeny["the kind of guards is gone"], policyIn(denyPolicy, func(p *Policy) { p.FailurePolicy = admissionv1.Fail }))
	withDeny["guards cannot be read"] = hide("guards")
	withDeny["parameters of another kind"] = both(denying, policyIn(denyPolicy, func(p *Policy) { p.ParamKind = "ConfigMap" }))
	withDeny["no parameters"] = both(denying, bindingIn(denyPolicy, func(b *Binding) { b.Param = nil }))
	withDeny["one parameter"] = both(denying, bindingIn(denyPolicy, func(b *Binding) { b.Param = &admissionv1.ParamRef{Name: "one"} }))
	withDeny["parameters by label"] = both(denying, bindingIn(denyPolicy, func(b *Binding) {
		b.Param = &admissionv1.ParamRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	}))
	return map[string]map[string]breakage{
		"policy.writer": writer, "policy.stamp-status": validatingCases(stampStatusPolicy), "policy.requested-by": validatingCases(requestedByPolicy),
		"policy.baseline-writers": baselines, "policy.deny": withDeny,
	}
}

// injection is the webhook for pods that ask for a proxy.
func injection(bundle []byte) Webhook {
	w := ourWebhook(true, bundle)
	w.Configuration, w.Name, w.FailurePolicy = InjectionName, "pod.inject.plumbline.dev", admissionv1.Fail
	return w
}

// add registers somebody else's webhooks.
func add(webhooks ...Webhook) breakage {
	return on(func(s *Snapshot) { s.Webhooks.Value = append(s.Webhooks.Value, webhooks...) })
}

func clusterBreakages() map[string]map[string]breakage {
	slow := func(name string, mutating bool, seconds int32, change func(*Webhook)) Webhook {
		return foreign(name, func(w *Webhook) {
			w.Mutating, w.TimeoutSeconds, w.FailurePolicy, w.NamespaceSelector = mutating, seconds, admissionv1.Ignore, nil
			w.Rules = []admissionv1.RuleWithOperations{rule(storing, "apps", "deployments")}
			if change != nil {
				change(w)
			}
		})
	}
	onto := func(resource, group string, change func(*Webhook)) Webhook {
		return foreign("strict", func(w *Webhook) {
			w.NamespaceSelector = nil
			w.Rules = []admissionv1.RuleWithOperations{rule(storing, group, resource)}
			all := admissionv1.AllScopes
			w.Rules[0].Scope = &all
			if change != nil {
				change(w)
			}
		})
	}
	var many []Webhook
	for i := range 23 {
		many = append(many, onto("*", "*", func(w *Webhook) { w.Configuration = fmt.Sprintf("strict-%02d", i) }))
	}
	labeled := func(w *Webhook) { w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} }
	return map[string]map[string]breakage{
		"cluster.timeouts": {
			"two mutating ones of 10 s":    add(slow("one", true, 10, nil), slow("two", true, 10, nil)),
			"four mutating ones of 10 s":   add(slow("one", true, 10, nil), slow("two", true, 10, nil), slow("three", true, 10, nil), slow("four", true, 10, nil)),
			"four validating ones of 10 s": add(slow("one", false, 10, nil), slow("two", false, 10, nil), slow("three", false, 10, nil), slow("four", false, 10, nil)),
			"one that is asked twice":      add(slow("one", true, 10, func(w *Webhook) { w.Reinvoked = true })),
			"only where a label says so": add(slow("one", true, 30, func(w *Webhook) {
				w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"slow": "yes"}}
			})),
			"and a namespace says so": both(add(slow("one", true, 30, func(w *Webhook) {
				w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"slow": "yes"}}
			})), on(func(s *Snapshot) { s.Namespaces.Value["shop"]["slow"] = "yes" })),
			"on kinds that are not guarded": add(slow("one", true, 30, func(w *Webhook) { w.Rules = []admissionv1.RuleWithOperations{rule(storing, "", "pods")} })),
			"cannot be read":                hide("webhooks"),
			"namespaces cannot be read":     both(add(slow("one", true, 30, nil)), on(func(s *Snapshot) { s.Namespaces = forbidden[map[string]map[string]string]("list namespaces") })),
		},
		"cluster.scopes": {
			"leases everywhere":               add(onto("leases", "coordination.k8s.io", nil)),
			"leases, but Ignore":              add(onto("leases", "coordination.k8s.io", func(w *Webhook) { w.FailurePolicy = admissionv1.Ignore })),
			"nodes":                           add(onto("nodes", "", nil)),
			"certificate requests by label":   add(onto("certificatesigningrequests", "certificates.k8s.io", labeled)),
			"pods everywhere":                 add(onto("pods", "", nil)),
			"pods everywhere by condition":    add(onto("pods", "", func(w *Webhook) { w.Conditions = []admissionv1.MatchCondition{{Name: "c", Expression: "true"}} })),
			"pods, but not where they matter": add(foreign("polite", nil)),
			"pods of its own namespace": add(foreign("suicidal", func(w *Webhook) {
				w.NamespaceSelector.MatchExpressions[0].Values = []string{"kube-system", "kube-node-lease"}
			})),
			"everything":           add(onto("*", "*", nil)),
			"everything, 23 times": add(many...),
			"ours on leases": validatingHook(func(w *Webhook) {
				w.NamespaceSelector = nil
				w.Rules = append(w.Rules, rule(storing, "coordination.k8s.io", "leases"))
			}),
			"a selector that cannot be parsed": add(onto("pods", "", func(w *Webhook) {
				w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}}
			})),
			"by URL":         add(onto("pods", "", func(w *Webhook) { w.Client.Service = nil })),
			"cannot be read": hide("webhooks"),
		},
	}
}
