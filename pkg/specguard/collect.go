// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"
	"strings"
)

// The accounts of Kubernetes that remove objects of each kind on behalf of no user. The list is closed: a guard has to
// name every other account of kube-system, such as an autoscaler.
const (
	userGarbageCollector    = controllerPrefix + "generic-garbage-collector"
	userNamespaceController = controllerPrefix + "namespace-controller"
)

// collectors are the accounts that remove objects of one kind when the objects have ended, or when their node has to
// do without them. No controller makes such an object again.
var collectors = map[groupKind][]string{
	{"", "Pod"}: {
		controllerPrefix + "pod-garbage-collector", controllerPrefix + "taint-eviction-controller", controllerPrefix + "node-controller",
		"system:kube-scheduler", // preemption
	},
	{"batch", "Job"}: {controllerPrefix + "ttl-after-finished-controller"},
}

// collects tells whether a user removes objects of this kind on behalf of no user, so that a deletion retires the Baseline.
func (s *step) collects(user string) bool {
	return user == userGarbageCollector || user == userNamespaceController ||
		slices.Contains(collectors[groupKind{s.gvk.Group, s.gvk.Kind}], user)
}

const (
	nodePrefix = "system:node:"
	nodesGroup = "system:nodes"
)

// endsPod tells whether a record is that of a kubelet, which removes a pod from the API server after the pod has ended.
// A user asked for the end before, by a deletion of its own record.
func (s *step) endsPod(r *WriteRecord) bool {
	return s.gvk.Group == "" && s.gvk.Kind == "Pod" && strings.HasPrefix(r.User, nodePrefix) && slices.Contains(r.Groups, nodesGroup)
}
