// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

type groupKind struct{ group, kind string }

// builtInOwners lists which built-in controllers make which kinds. Only these
// pairs free an object from being judged by itself: a tenant may put any other
// ownerReference on an object of its own, and a ConfigMap owns nothing.
var builtInOwners = map[groupKind][]groupKind{
	{"apps", "ReplicaSet"}:         {{"apps", "Deployment"}},
	{"apps", "ControllerRevision"}: {{"apps", "StatefulSet"}, {"apps", "DaemonSet"}},
	{"batch", "Job"}:               {{"batch", "CronJob"}},
	{"", "Pod"}: {
		{"apps", "ReplicaSet"}, {"apps", "StatefulSet"}, {"apps", "DaemonSet"},
		{"batch", "Job"}, {"", "ReplicationController"},
	},
}

// IsRoot tells whether an object is judged by itself and not as the product of
// a built-in controller. On UPDATE and DELETE the owners of the old object
// decide, so that nobody can free an object by adding an owner in the write
// that changes it.
func IsRoot(op Operation, object canon.GVK, oldOwners, newOwners []metav1.OwnerReference) bool {
	owners := oldOwners
	if op == OperationCreate {
		owners = newOwners
	}
	allowed := builtInOwners[groupKind{object.Group, object.Kind}]
	for _, owner := range owners {
		if owner.Controller == nil || !*owner.Controller {
			continue
		}
		of := canon.ParseGVK(owner.APIVersion, owner.Kind)
		for _, gk := range allowed {
			if gk.group == of.Group && gk.kind == of.Kind {
				return false
			}
		}
	}
	return true
}
