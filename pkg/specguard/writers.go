// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	serviceAccountPrefix      = "system:serviceaccount:"
	allServiceAccountsGroup   = "system:serviceaccounts"
	namespaceAccountsGroupPre = allServiceAccountsGroup + ":"
	authenticatedGroup        = "system:authenticated"
	// maxIdentityBytes is the longest user or group name that is compared; the
	// schema allows less, this bounds what was stored without it.
	maxIdentityBytes = 1024
	// maxManagerBytes is the longest name of a field manager that is shown.
	maxManagerBytes = 256
)

// writers is v1alpha1.Writers made ready for look-up.
type writers struct {
	users      map[string]struct{} // service accounts by their user names included
	groups     map[string]struct{}
	namespaces map[string]struct{} // every service account of these
}

func compileWriters(w v1alpha1.Writers, path *field.Path) (writers, field.ErrorList) {
	c := writers{users: map[string]struct{}{}, groups: map[string]struct{}{}, namespaces: map[string]struct{}{}}
	var errs field.ErrorList
	add := func(set map[string]struct{}, key string, at *field.Path) {
		switch {
		case key == "":
			errs = append(errs, field.Required(at, "must not be empty"))
		case len(key) > maxIdentityBytes:
			errs = append(errs, field.TooLong(at, "", maxIdentityBytes))
		default:
			set[key] = struct{}{}
		}
	}
	for i, user := range w.Users {
		add(c.users, user, path.Child("users").Index(i))
	}
	for i, group := range w.Groups {
		add(c.groups, group, path.Child("groups").Index(i))
	}
	for i, namespace := range w.ServiceAccountNamespaces {
		add(c.namespaces, namespace, path.Child("serviceAccountNamespaces").Index(i))
	}
	for i, account := range w.ServiceAccounts {
		at := path.Child("serviceAccounts").Index(i)
		if account.Namespace == "" || strings.Contains(account.Namespace, ":") {
			errs = append(errs, field.Invalid(at.Child("namespace"), account.Namespace, "must be a namespace"))
			continue
		}
		if account.Name == "" || strings.Contains(account.Name, ":") {
			errs = append(errs, field.Invalid(at.Child("name"), account.Name, "must be the name of a service account"))
			continue
		}
		add(c.users, serviceAccountPrefix+account.Namespace+":"+account.Name, at)
	}
	return c, errs
}

// match tells whether any entry names the caller. The groups of a service
// account follow from its name, so they count even where only the name is known.
func (w *writers) match(id Identity) bool {
	if has(w.users, id.User) {
		return true
	}
	if namespace, ok := accountNamespace(id.User); ok {
		if has(w.namespaces, namespace) || has(w.groups, allServiceAccountsGroup) ||
			has(w.groups, namespaceAccountsGroupPre+namespace) || has(w.groups, authenticatedGroup) {
			return true
		}
	}
	for _, group := range id.Groups {
		if has(w.groups, group) {
			return true
		}
	}
	return false
}

func has(set map[string]struct{}, key string) bool {
	_, ok := set[key]
	return ok
}

// IsServiceAccountGroup tells whether Kubernetes puts service accounts into the
// group because of their names, so that membership needs no stamp to be proven.
func IsServiceAccountGroup(group string) bool {
	return group == allServiceAccountsGroup || strings.HasPrefix(group, namespaceAccountsGroupPre)
}

// accountNamespace is the namespace of a service account's user name.
func accountNamespace(user string) (string, bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", false
	}
	namespace, name, ok := strings.Cut(rest, ":")
	return namespace, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}

// ParseWriterGroups splits the value of the writer-groups annotation.
func ParseWriterGroups(annotation string) []string {
	if annotation == "" {
		return nil
	}
	return strings.Split(annotation, ",")
}
