// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// podFields classes the fields of a pod spec that need no closer look.
var podFields = map[string]v1alpha1.FindingClass{
	"securityContext":              v1alpha1.ClassSecurity,
	"serviceAccount":               v1alpha1.ClassSecurity,
	"serviceAccountName":           v1alpha1.ClassSecurity,
	"automountServiceAccountToken": v1alpha1.ClassSecurity,
	"hostNetwork":                  v1alpha1.ClassSecurity,
	"hostPID":                      v1alpha1.ClassSecurity,
	"hostIPC":                      v1alpha1.ClassSecurity,
	"hostUsers":                    v1alpha1.ClassSecurity,
	"shareProcessNamespace":        v1alpha1.ClassSecurity,
	"runtimeClassName":             v1alpha1.ClassSecurity,
	"hostname":                     v1alpha1.ClassNetworking,
	"subdomain":                    v1alpha1.ClassNetworking,
	"setHostnameAsFQDN":            v1alpha1.ClassNetworking,
	"hostnameOverride":             v1alpha1.ClassNetworking,
	"hostAliases":                  v1alpha1.ClassNetworking,
	"dnsPolicy":                    v1alpha1.ClassNetworking,
	"dnsConfig":                    v1alpha1.ClassNetworking,
	"resources":                    v1alpha1.ClassResources,
	"overhead":                     v1alpha1.ClassResources,
}

// containerFields does the same for a container.
var containerFields = map[string]v1alpha1.FindingClass{
	"command":         v1alpha1.ClassExecution,
	"args":            v1alpha1.ClassExecution,
	"workingDir":      v1alpha1.ClassExecution,
	"lifecycle":       v1alpha1.ClassExecution,
	"securityContext": v1alpha1.ClassSecurity,
	"ports":           v1alpha1.ClassNetworking,
	"volumeMounts":    v1alpha1.ClassStorage,
	"volumeDevices":   v1alpha1.ClassStorage,
	"resources":       v1alpha1.ClassResources,
	"resizePolicy":    v1alpha1.ClassResources,
}

var (
	containerLists = []string{"containers", "initContainers", "ephemeralContainers"}
	probeFields    = []string{"livenessProbe", "readinessProbe", "startupProbe"}
	scaleFields    = []string{"replicas", "paused", "suspend", "parallelism", "completions", "minReplicas", "maxReplicas"}
)

// groupClasses classes every field of kinds that are about one thing.
func groupClass(gk groupKind) (v1alpha1.FindingClass, bool) {
	switch {
	case gk == groupKind{"", "Service"}, gk == groupKind{"", "Endpoints"}, gk.group == "networking.k8s.io",
		gk.group == "discovery.k8s.io", gk.group == "gateway.networking.k8s.io":
		return v1alpha1.ClassNetworking, true
	case gk == groupKind{"", "ServiceAccount"}, gk.group == "rbac.authorization.k8s.io":
		return v1alpha1.ClassSecurity, true
	case gk == groupKind{"", "PersistentVolumeClaim"}:
		return v1alpha1.ClassStorage, true
	default:
		return "", false
	}
}

// classAt is the class that a place alone decides; when it is not final, what
// lies below may be worse.
func (w *classWalk) classAt(tokens []string, before, after any) (class v1alpha1.FindingClass, final bool) {
	gk := groupKind{w.gvk.Group, w.gvk.Kind}
	if class, ok := groupClass(gk); ok {
		return class, true
	}
	if gk == (groupKind{"", "Pod"}) && len(tokens) > 0 && tokens[0] == "spec" {
		return podClass(tokens[1:], before, after)
	}
	// Wherever a kind embeds a pod template, custom kinds included, it does so
	// under the name template.
	if i := slices.Index(tokens, "template"); i >= 0 && i+1 < len(tokens) {
		switch tokens[i+1] {
		case "spec":
			return podClass(tokens[i+2:], before, after)
		case "metadata":
			return v1alpha1.ClassTemplateMetadata, true
		}
	}
	if len(tokens) < 2 || tokens[0] != "spec" {
		return v1alpha1.ClassOther, false
	}
	switch {
	case len(tokens) == 2 && slices.Contains(scaleFields, tokens[1]):
		return v1alpha1.ClassScale, true
	case tokens[1] == "volumeClaimTemplates":
		return v1alpha1.ClassStorage, true
	case tokens[1] == "serviceName":
		return v1alpha1.ClassNetworking, true
	default:
		return v1alpha1.ClassOther, false
	}
}

// podClass judges a place by its path from the pod spec.
func podClass(rest []string, before, after any) (v1alpha1.FindingClass, bool) {
	if len(rest) == 0 {
		return v1alpha1.ClassOther, false
	}
	if class, ok := podFields[rest[0]]; ok {
		return class, true
	}
	switch {
	case rest[0] == "volumes":
		if slices.Contains(rest, "hostPath") || mentions(before, "hostPath") || mentions(after, "hostPath") {
			return v1alpha1.ClassSecurity, true
		}
		return v1alpha1.ClassStorage, true
	case slices.Contains(containerLists, rest[0]):
		return containerClass(rest[1:], before, after)
	default:
		return v1alpha1.ClassOther, false
	}
}

// containerClass judges a place by its path from a list of containers.
func containerClass(rest []string, before, after any) (v1alpha1.FindingClass, bool) {
	switch len(rest) {
	case 0: // the list itself; without a difference inside it is another order
		return v1alpha1.ClassExecution, false
	case 1:
		switch {
		case before == nil:
			return v1alpha1.ClassImageRepository, true
		case after == nil:
			return v1alpha1.ClassContainerMissing, true
		}
		return v1alpha1.ClassOther, false
	}
	name := rest[1]
	if class, ok := containerFields[name]; ok {
		return class, true
	}
	switch {
	case name == "image":
		return imageClass(before, after), true
	case slices.Contains(probeFields, name):
		if slices.Contains(rest, "exec") || mentions(before, "exec") || mentions(after, "exec") {
			return v1alpha1.ClassExecution, true
		}
	}
	return v1alpha1.ClassOther, true
}

func imageClass(before, after any) v1alpha1.FindingClass {
	from, ok1 := before.(string)
	to, ok2 := after.(string)
	if ok1 && ok2 && imageRepository(from) == imageRepository(to) {
		return v1alpha1.ClassImageVersion
	}
	return v1alpha1.ClassImageRepository
}

// mentions tells whether a key stands anywhere in a value.
func mentions(v any, key string) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			if k == key || mentions(child, key) {
				return true
			}
		}
	case []any:
		for _, child := range v {
			if mentions(child, key) {
				return true
			}
		}
	}
	return false
}
