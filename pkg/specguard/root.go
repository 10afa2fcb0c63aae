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

const controllerPrefix = "system:serviceaccount:kube-system:"

// builtInControllers are the users that make the objects of [builtInOwners]: the controllers of
// kube-controller-manager, by the service account of each, or all by one user.
var builtInControllers = map[string]struct{}{
	"system:kube-controller-manager":            {},
	controllerPrefix + "deployment-controller":  {},
	controllerPrefix + "replicaset-controller":  {},
	controllerPrefix + "replication-controller": {},
	controllerPrefix + "statefulset-controller": {},
	controllerPrefix + "daemon-set-controller":  {},
	controllerPrefix + "job-controller":         {},
	controllerPrefix + "cronjob-controller":     {},
}

// IsBuiltInController tells whether a user makes objects for an owner of their own kind. An object that another user
// made belongs to no controller, whatever owner it names: each user may write an ownerReference.
func IsBuiltInController(user string) bool {
	_, is := builtInControllers[user]
	return is
}
