// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

const excessFix = "remove the permissions that the chart does not give, or restore its own roles:\n" +
	"kubectl get clusterrolebindings,rolebindings -A -o wide | grep " + ExecutorName + "\n" +
	upgradeCommand

// surplus is what one role gives the executor beyond what it needs.
type surplus struct {
	role       string
	words      string
	everywhere bool
	namespaces []string
	// grave: it writes, or reads Secrets.
	grave bool
}

// exceeding tells each role by which the executor has more than it needs, once.
func (s *Snapshot) exceeding(held []heldRole) []Finding {
	var found []*surplus
	bound := s.boundNamespaces()
	for _, h := range held {
		more, grave := s.more(h, bound)
		if len(more) == 0 || h.broad && !grave {
			continue // what everybody may read is no matter of the executor's
		}
		words := named(more)
		i := slices.IndexFunc(found, func(x *surplus) bool { return x.role == h.role && x.words == words })
		if i < 0 {
			i, found = len(found), append(found, &surplus{role: h.role, words: words, grave: grave})
		}
		x := found[i]
		x.everywhere = x.everywhere || h.namespace == ""
		if h.namespace != "" && !slices.Contains(x.namespaces, h.namespace) {
			x.namespaces = append(x.namespaces, h.namespace)
		}
	}
	var out []Finding
	for _, x := range found {
		out = append(out, x.finding())
	}
	return out
}

func (x *surplus) finding() Finding {
	f := Finding{Severity: Warning, Object: x.role, Fix: excessFix}
	if x.grave {
		f.Severity = Critical
	}
	where := "everywhere"
	if !x.everywhere {
		slices.Sort(x.namespaces)
		where = "in " + named(x.namespaces)
	}
	f.Message = fmt.Sprintf("by it the executor may %s %s, which is more than it needs", x.words, where)
	return f
}

// more is what a role allows beyond what the executor needs where it has it.
func (s *Snapshot) more(h heldRole, bound []string) (words []string, grave bool) {
	if everything(h.rules) {
		return []string{"do everything"}, true
	}
	allowed := s.executorClusterGrants()
	if h.namespace == s.Namespace {
		allowed = append(allowed, executorAtHome...)
	}
	if slices.Contains(bound, h.namespace) {
		allowed = append(allowed, s.executorTargetGrants()...)
		if s.executorHas(meshFlag) {
			allowed = append(allowed, executorStandbys...)
		}
	}
	var over verbsOf
	var paths []string
	for _, rule := range h.rules {
		s.overIn(rule, h.namespace, allowed, func(t target, verb string) {
			over.add(t, verb)
			grave = grave || !slices.Contains(readVerbs, verb) || covers([]string{t.resource}, "secrets") && covers([]string{t.group}, "")
		})
		for _, path := range rule.NonResourceURLs {
			paths = append(paths, strings.Join(rule.Verbs, ",")+" "+path)
		}
	}
	return append(over.words(), paths...), grave
}

func (s *Snapshot) overIn(rule rbacv1.PolicyRule, namespace string, allowed []grant, each func(target, string)) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				t := target{group, resource}
				channels := t == target{"", "secrets"} && verb == "get" && namespace == s.Namespace && tellsChannels(rule)
				if !channels && !needs(allowed, rule, t, verb) {
					each(t, verb)
				}
			}
		}
	}
}

// needs tells whether one right is among those that are allowed. A wildcard never
// is: it grows with the cluster.
func needs(allowed []grant, rule rbacv1.PolicyRule, t target, verb string) bool {
	return slices.ContainsFunc(allowed, func(g grant) bool {
		return g.group == t.group && slices.Contains(g.resources, t.resource) && slices.Contains(g.verbs, verb) &&
			(len(g.names) == 0 || len(rule.ResourceNames) > 0 && !slices.ContainsFunc(rule.ResourceNames, func(name string) bool { return !slices.Contains(g.names, name) }))
	})
}

// tellsChannels: Secrets of notifications are named one by one.
func tellsChannels(rule rbacv1.PolicyRule) bool {
	return len(rule.ResourceNames) > 0 && !slices.ContainsFunc(rule.ResourceNames, func(name string) bool { return slices.Contains(ownSecrets, name) })
}
