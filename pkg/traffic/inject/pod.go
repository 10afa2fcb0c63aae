// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Pod is the pod with a proxy; the argument is not changed. A pod that has one stays
// as it is. An error is about the configuration, or about an annotation that Decide
// refuses.
func Pod(pod *corev1.Pod, c Config, mode Mode) (*corev1.Pod, error) {
	out := pod.DeepCopy()
	if Injected(pod) {
		return out, nil
	}
	a, err := additionTo(pod, c, mode)
	if err != nil {
		return nil, fmt.Errorf("adding a proxy to the pod: %w", err)
	}
	out.Spec.InitContainers = slices.Concat(a.init, out.Spec.InitContainers)
	out.Spec.Volumes = append(out.Spec.Volumes, a.volume)
	out.Labels = merged(out.Labels, a.labels)
	out.Annotations = merged(out.Annotations, a.annotations)
	return out, nil
}

func merged(into, from map[string]string) map[string]string {
	if into == nil {
		into = map[string]string{}
	}
	maps.Copy(into, from)
	return into
}

// Patch is the JSON patch (RFC 6902) that makes the pod what Pod makes it. It only
// adds, so fields that this version does not know stay. It is nil for a pod that has
// a proxy.
func Patch(pod *corev1.Pod, c Config, mode Mode) ([]byte, error) {
	if Injected(pod) {
		return nil, nil
	}
	a, err := additionTo(pod, c, mode)
	if err != nil {
		return nil, fmt.Errorf("adding a proxy to the pod: %w", err)
	}
	operations := slices.Concat(
		addKeys("/metadata/labels", len(pod.Labels), a.labels),
		addKeys("/metadata/annotations", len(pod.Annotations), a.annotations),
		addFirst("/spec/initContainers", len(pod.Spec.InitContainers), a.init),
	)
	if len(pod.Spec.Volumes) == 0 {
		operations = append(operations, add("/spec/volumes", []corev1.Volume{a.volume}))
	} else {
		operations = append(operations, add("/spec/volumes/-", a.volume))
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("writing the patch of a pod: %w", err)
	}
	return patch, nil
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func add(path string, value any) operation { return operation{Op: "add", Path: path, Value: value} }

// addKeys adds to a map, which may be absent: to add to what is not there fails.
func addKeys(path string, present int, values map[string]string) []operation {
	if present == 0 {
		return []operation{add(path, values)}
	}
	var out []operation
	for _, key := range slices.Sorted(maps.Keys(values)) {
		out = append(out, add(path+"/"+strings.ReplaceAll(key, "/", "~1"), values[key]))
	}
	return out
}

func addFirst(path string, present int, values []corev1.Container) []operation {
	if present == 0 {
		return []operation{add(path, values)}
	}
	var out []operation
	for i, value := range values {
		out = append(out, add(fmt.Sprintf("%s/%d", path, i), value))
	}
	return out
}
