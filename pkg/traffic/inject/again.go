// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// PatchAgain is the JSON patch for a pod that got its proxy and was changed by others
// since, as by another webhook that adds a container: what the proxy requests follows
// the rest of the pod, so that we do not change its class of service. It is nil when
// there is nothing to do. A proxy with other limits than this configuration gives it
// is somebody's copy of an older pod, and stays as it is.
func PatchAgain(pod *corev1.Pod, c Config) ([]byte, error) {
	if !Injected(pod) {
		return nil, nil
	}
	rest := pod.DeepCopy()
	rest.Spec.InitContainers = slices.DeleteFunc(rest.Spec.InitContainers, ours)
	o, err := optionsOf(rest, c.withDefaults())
	if err != nil {
		return nil, nil //nolint:nilerr // an annotation was spoilt afterwards; the proxy has what it had
	}
	wanted := keepGuaranteed(rest, o.resources)
	var operations []operation
	for i, container := range pod.Spec.InitContainers {
		has := container.Resources
		if ours(container) && equality.Semantic.DeepEqual(has.Limits, wanted.Limits) && !equality.Semantic.DeepEqual(has.Requests, wanted.Requests) {
			operations = append(operations, add(fmt.Sprintf("/spec/initContainers/%d/resources", i), wanted))
		}
	}
	if operations == nil {
		return nil, nil
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("writing the patch of a pod: %w", err)
	}
	return patch, nil
}

func ours(c corev1.Container) bool { return c.Name == ProxyContainer || c.Name == RedirectContainer }
