// SPDX-License-Identifier: Apache-2.0

package inject

import (
	corev1 "k8s.io/api/core/v1"
)

// The containers in which other meshes have their proxies.
const (
	istioProxy   = "istio-proxy"
	linkerdProxy = "linkerd-proxy"
)

// Labels of a namespace by which Istio's webhook gives pods a proxy, see [AsksForIstio].
const (
	istioInjection = "istio-injection"
	istioRevision  = "istio.io/rev"
)

// HasIstio says whether a pod has a proxy of Istio.
func HasIstio(pod *corev1.Pod) bool { return has(pod, istioProxy) }

// AsksForIstio says whether the labels of a namespace ask Istio for a proxy in each of its pods.
// A revision alone asks as well (https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/).
func AsksForIstio(namespaceLabels map[string]string) bool {
	switch namespaceLabels[istioInjection] {
	case Enabled:
		return true
	case Disabled:
		return false
	}
	return namespaceLabels[istioRevision] != ""
}

func has(pod *corev1.Pod, name string) bool {
	for container := range containers(pod) {
		if container.Name == name {
			return true
		}
	}
	return false
}

// otherMesh: two proxies of which one cannot have its ports, or two sets of rules that both want
// the connections of the pod.
func otherMesh(pod *corev1.Pod, mode Mode, _ Config) Decision {
	switch {
	case has(pod, istioProxy):
		return refuse(OtherMesh, "the pod has a proxy of Istio, which needs the ports %d, %d and %d as well", AdminPort, CapturePort, StatusPort)
	case has(pod, linkerdProxy) && mode == Redirect:
		return refuse(OtherMesh, "the pod has a proxy of Linkerd, and its rules want the same connections as those of mode %s", Redirect)
	}
	return Decision{}
}
