// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// ScaleSubresource says whether the API server serves /scale of a kind. The stamp
// policy does not see a write through /scale.
type ScaleSubresource uint8

const (
	// ScaleUnknown means that discovery did not answer: built-in kinds follow a closed
	// list, and each other kind may have /scale.
	ScaleUnknown ScaleSubresource = iota
	// ScaleServed means that some version of the kind has /scale.
	ScaleServed
	// ScaleNotServed means that no version of the kind has /scale.
	ScaleNotServed
)

// scaled are the built-in kinds that have /scale, which sets /spec/replicas.
var scaled = map[groupKind]struct{}{
	{"", "ReplicationController"}: {},
	{"apps", "Deployment"}:        {}, {"apps", "ReplicaSet"}: {}, {"apps", "StatefulSet"}: {},
}

// unscaled are the built-in kinds that can be guarded and have no /scale. The list
// names kinds, not groups: a CustomResourceDefinition may use any group with a dot.
var unscaled = map[groupKind]struct{}{
	{"", "ConfigMap"}: {}, {"", "LimitRange"}: {}, {"", "PersistentVolumeClaim"}: {}, {"", "Pod"}: {}, {"", "PodTemplate"}: {},
	{"", "ResourceQuota"}: {}, {"", "Service"}: {}, {"", "ServiceAccount"}: {},
	{"apps", "ControllerRevision"}: {}, {"apps", "DaemonSet"}: {},
	{"autoscaling", "HorizontalPodAutoscaler"}: {},
	{"batch", "CronJob"}:                       {}, {"batch", "Job"}: {},
	{"policy", "PodDisruptionBudget"}: {},
	{"networking.k8s.io", "Ingress"}:  {}, {"networking.k8s.io", "NetworkPolicy"}: {},
	{"rbac.authorization.k8s.io", "Role"}: {}, {"rbac.authorization.k8s.io", "RoleBinding"}: {},
	{"resource.k8s.io", "ResourceClaim"}: {}, {"resource.k8s.io", "ResourceClaimTemplate"}: {},
	{"scheduling.k8s.io", "PodGroup"}: {}, {"scheduling.k8s.io", "Workload"}: {},
}

// isBuiltIn tells whether a kind is one of Kubernetes itself that can be guarded.
func isBuiltIn(gvk canon.GVK) bool {
	kind := groupKind{gvk.Group, gvk.Kind}
	_, has := scaled[kind]
	_, lacks := unscaled[kind]
	return has || lacks
}

// throughScale tells whether a change could have come through /scale.
func (s *step) throughScale(c diff.Change) bool { return throughScale(s.gvk, s.in.Scale, c) }

// throughScale tells whether a change could have come through /scale. A custom kind
// names its own field for the replicas, so there the field may be any number.
func throughScale(gvk canon.GVK, scale ScaleSubresource, c diff.Change) bool {
	kind := groupKind{gvk.Group, gvk.Kind}
	switch scale {
	case ScaleNotServed:
		return false
	case ScaleServed:
	case ScaleUnknown:
		if _, known := unscaled[kind]; known {
			return false
		}
	}
	if _, builtIn := scaled[kind]; builtIn {
		return c.Path.String() == "/spec/replicas"
	}
	return isCount(c.Before) && isCount(c.After)
}

// isCount tells whether a value is absent or a number that replicas could be.
func isCount(raw []byte) bool {
	if raw == nil {
		return true
	}
	_, err := strconv.ParseInt(string(raw), 10, 32)
	return err == nil
}

// scaledValue is the number that a write set which may have come through /scale, as
// text; empty for each other write.
func (s *step) scaledValue(changes []diff.Change) string {
	if len(changes) != 1 || !s.throughScale(changes[0]) {
		return ""
	}
	return string(changes[0].After)
}

// scaledTo tells whether the record is of a /scale to that number.
func (r *WriteRecord) scaledTo(replicas string) bool {
	return r.Subresource == "scale" && r.Replicas != nil && replicas != "" && strconv.Itoa(int(*r.Replicas)) == replicas
}
