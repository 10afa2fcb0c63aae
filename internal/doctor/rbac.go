// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// grant is something that a rule may allow.
type grant struct {
	group     string
	resources []string
	verbs     []string
	// names: a rule bound to other names does not count; empty for any.
	names []string
	// cluster-scoped resources are not granted by a RoleBinding.
	cluster bool
}

func (g grant) in(rule rbacv1.PolicyRule) bool {
	if len(rule.NonResourceURLs) > 0 || !covers(rule.APIGroups, g.group) {
		return false
	}
	if !slices.ContainsFunc(g.verbs, func(verb string) bool { return covers(rule.Verbs, verb) }) {
		return false
	}
	if len(rule.ResourceNames) > 0 && len(g.names) > 0 &&
		!slices.ContainsFunc(g.names, func(name string) bool { return slices.Contains(rule.ResourceNames, name) }) {
		return false
	}
	return slices.ContainsFunc(g.resources, func(resource string) bool { return coversResource(rule.Resources, resource) })
}

func covers(have []string, want string) bool {
	return slices.Contains(have, "*") || slices.Contains(have, want)
}

func coversResource(have []string, want string) bool {
	if covers(have, want) {
		return true
	}
	_, subresource, found := strings.Cut(want, "/")
	return found && slices.Contains(have, "*/"+subresource)
}

// everything is what a cluster administrator's rule allows.
func everything(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, "*") && slices.Contains(r.Resources, "*") && slices.Contains(r.Verbs, "*") && len(r.ResourceNames) == 0
	})
}

// holder is a subject with a power, in some namespaces or everywhere.
type holder struct {
	subject    string
	broad      bool
	everywhere bool
	namespaces []string
}

func (h holder) String() string {
	if h.everywhere {
		return h.subject
	}
	if len(h.namespaces) > 3 {
		return fmt.Sprintf("%s (in %s and %d more)", h.subject, strings.Join(h.namespaces[:3], ", "), len(h.namespaces)-3)
	}
	return h.subject + " (in " + strings.Join(h.namespaces, ", ") + ")"
}

// broadGroups hold whole classes of users: what they may, everybody may.
var broadGroups = []string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:anonymous"}

// subjectName names a subject, or says that it belongs to the cluster or to
// Plumbline itself and is not looked at.
func (s *Snapshot) subjectName(subject rbacv1.Subject) (name string, broad, ignored bool) {
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		if subject.Namespace == "kube-system" || (subject.Namespace == s.Namespace && s.isOwnAccount(subject.Name)) {
			return "", false, true
		}
		return "ServiceAccount " + subject.Namespace + "/" + subject.Name, false, false
	case rbacv1.UserKind, rbacv1.GroupKind:
		if slices.Contains(broadGroups, subject.Name) {
			return subject.Kind + " " + subject.Name, true, false
		}
		if strings.HasPrefix(subject.Name, "system:serviceaccount:kube-system:") || (strings.HasPrefix(subject.Name, "system:") && !strings.HasPrefix(subject.Name, "system:serviceaccount")) {
			return "", false, true
		}
		return subject.Kind + " " + subject.Name, false, false
	default:
		return subject.Kind + " " + subject.Name, false, false
	}
}

// isOwnAccount: what the executor may is looked at by executor.rights; where none
// is to run, its name is that of anybody.
func (s *Snapshot) isOwnAccount(name string) bool {
	return name == WebhookName || name == AssessorName || name == ExecutorName && s.executor() == ReadValue
}

// heldBy lists who holds any of the grants. Whoever may do everything everywhere
// is left out: that is told once, by rbac.admins. A RoleBinding counts where
// within says so.
func (s *Snapshot) heldBy(grants []grant, within func(namespace string) bool) []holder {
	roles := s.Roles.Value
	allowed := func(rules []rbacv1.PolicyRule, namespaced bool) bool {
		return slices.ContainsFunc(grants, func(g grant) bool {
			return (!namespaced || !g.cluster) && slices.ContainsFunc(rules, g.in)
		})
	}
	found := map[string]*holder{}
	for _, b := range slices.Concat(roles.ClusterBindings, roles.Bindings) {
		rules := roles.of(b)
		namespaced := b.Namespace != ""
		if !allowed(rules, namespaced) || (!namespaced && everything(rules)) || (namespaced && !within(b.Namespace)) {
			continue
		}
		for _, subject := range b.Subjects {
			name, broad, ignored := s.subjectName(subject)
			if ignored {
				continue
			}
			h := found[name]
			if h == nil {
				h = &holder{subject: name, broad: broad}
				found[name] = h
			}
			h.everywhere = h.everywhere || !namespaced
			if namespaced && !slices.Contains(h.namespaces, b.Namespace) {
				h.namespaces = append(h.namespaces, b.Namespace)
			}
		}
	}
	return sortedHolders(found)
}

func sortedHolders(found map[string]*holder) []holder {
	var out []holder
	for _, h := range found {
		slices.Sort(h.namespaces)
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b holder) int {
		switch {
		case a.broad != b.broad && a.broad:
			return -1
		case a.broad != b.broad:
			return 1
		default:
			return cmp.Compare(a.subject, b.subject)
		}
	})
	return out
}

func (r Roles) of(b RoleBinding) []rbacv1.PolicyRule {
	if b.Role.Kind == "ClusterRole" {
		return r.ClusterRoles[b.Role.Name]
	}
	return r.Roles[b.Namespace+"/"+b.Role.Name]
}

func holderNames(holders []holder) []string {
	names := make([]string, 0, len(holders))
	for _, h := range holders {
		names = append(names, h.String())
	}
	return names
}

// admins are those who may do everything.
func (s *Snapshot) admins() []holder {
	found := map[string]*holder{}
	for _, b := range s.Roles.Value.ClusterBindings {
		if !everything(s.Roles.Value.of(b)) {
			continue
		}
		for _, subject := range b.Subjects {
			if name, broad, ignored := s.subjectName(subject); !ignored {
				found[name] = &holder{subject: name, broad: broad, everywhere: true}
			}
		}
	}
	return sortedHolders(found)
}

// guardedGroups are the API groups of what is registered, with the resources.
func (s *Snapshot) guardedGroups() map[string][]string {
	groups := map[string][]string{}
	for _, t := range s.registered() {
		groups[t.group] = append(groups[t.group], t.resource)
	}
	return groups
}

func (s *Snapshot) statusGrants() []grant {
	groups := s.guardedGroups()
	var out []grant
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		resources := make([]string, 0, len(groups[group]))
		for _, resource := range groups[group] {
			resources = append(resources, resource+"/status")
		}
		out = append(out, grant{group: group, resources: resources, verbs: []string{"update", "patch"}})
	}
	return out
}
