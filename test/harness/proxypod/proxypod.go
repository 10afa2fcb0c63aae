// SPDX-License-Identifier: Apache-2.0

// Package proxypod makes pods that nobody runs look like those with a proxy, whose Envoy
// is a process on this machine.
package proxypod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// Address is where connections of a process on this machine come from.
const Address = "127.0.0.1"

// Inject gives a pod that is not created yet the label and the sidecar.
func Inject(pod *corev1.Pod, mode inject.Mode) {
	metav1.SetMetaDataLabel(&pod.ObjectMeta, inject.LabelProxy, string(mode))
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
		Name: inject.ProxyContainer, Image: "envoy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
	})
}

// Place says in the status of a pod that its address is that of this machine.
func Place(pod *corev1.Pod) {
	pod.Status.PodIP, pod.Status.PodIPs = Address, []corev1.PodIP{{IP: Address}}
}
