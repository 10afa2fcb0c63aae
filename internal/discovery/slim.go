// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// slimPod keeps of a pod what is asked of it: of all objects there are most of these.
func slimPod(object any) (any, error) {
	pod, is := object.(*corev1.Pod)
	if !is {
		return object, nil
	}
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		Labels: pod.Labels, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: controller(pod),
	}}
	for _, name := range []string{UpstreamsAnnotation, inject.AnnotationLocalPorts} {
		if value, there := pod.Annotations[name]; there {
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, name, value)
		}
	}
	slim.Spec.ServiceAccountName, slim.Spec.NodeName = pod.Spec.ServiceAccountName, pod.Spec.NodeName
	slim.Spec.Containers, slim.Spec.InitContainers = shared.of(ports(pod.Spec.Containers)), shared.of(ports(pod.Spec.InitContainers))
	slim.Status.Phase, slim.Status.PodIPs, slim.Status.ContainerStatuses = pod.Status.Phase, pod.Status.PodIPs, lastEnd(pod)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			slim.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim, nil
}

// controller of a pod, which says what workload it belongs to.
func controller(pod *corev1.Pod) []metav1.OwnerReference {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return []metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, Controller: new(true)}}
	}
	return nil
}

// ports are the containers that have some with a name, and of these no more than that. The
// sidecar keeps its name, by which a pod is known to have a proxy.
func ports(containers []corev1.Container) (slim []corev1.Container) {
	for i := range containers {
		c := corev1.Container{RestartPolicy: containers[i].RestartPolicy}
		if containers[i].Name == inject.ProxyContainer {
			c.Name = inject.ProxyContainer
		}
		for _, p := range containers[i].Ports {
			if p.Name != "" {
				c.Ports = append(c.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort, Protocol: p.Protocol})
			}
		}
		if len(c.Ports) > 0 || c.Name != "" {
			slim = append(slim, c)
		}
	}
	return slim
}

// shared has one copy of the ports that all pods of a workload have: a container takes
// more than all else of a pod together, whatever is in it.
var shared portsShared

// maxShared is how many are known before they are learned anew.
const maxShared = 4096

type portsShared struct {
	mu    sync.Mutex
	known map[string][]corev1.Container
}

func (s *portsShared) of(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	var key strings.Builder
	for i := range containers {
		restart := corev1.ContainerRestartPolicy("")
		if p := containers[i].RestartPolicy; p != nil {
			restart = *p
		}
		fmt.Fprintln(&key, containers[i].Name, restart, containers[i].Ports)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, is := s.known[key.String()]; is {
		return known
	}
	if s.known == nil || len(s.known) >= maxShared {
		s.known = map[string][]corev1.Container{}
	}
	s.known[key.String()] = containers
	return containers
}

func slimNode(object any) (any, error) {
	node, is := object.(*corev1.Node)
	if !is {
		return object, nil
	}
	slim := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels}}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim, nil
}

// slimBaseline keeps of a Baseline whether its object is in quarantine.
func slimBaseline(object any) (any, error) {
	b, is := object.(*v1alpha1.Baseline)
	if !is {
		return object, nil
	}
	slim := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion}}
	if b.Status.Quarantine != nil {
		slim.Spec.Target.Kind, slim.Spec.Target.Name = b.Spec.Target.Kind, b.Spec.Target.Name
		slim.Status.Quarantine = &v1alpha1.Quarantine{StartTime: b.Status.Quarantine.StartTime}
	}
	return slim, nil
}

// slimRelease keeps of an ABRelease what is in force of it, and who has to acknowledge that.
func slimRelease(object any) (any, error) {
	r, is := object.(*v1alpha1.ABRelease)
	if !is {
		return object, nil
	}
	slim := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion, CreationTimestamp: r.CreationTimestamp,
	}}
	slim.Spec.ServiceName, slim.Spec.Acknowledgment = r.Spec.ServiceName, r.Spec.Acknowledgment
	if r.Spec.UsesMesh() { // to the proxies other releases are none
		slim.Status.Effective, slim.Status.ManagementStartTime = r.Status.Effective, r.Status.ManagementStartTime
	}
	return slim, nil
}

// slimService keeps of the records of fields those of the managers that gave the Service
// its label: these have the time.
func slimService(object any) (any, error) {
	svc, is := object.(*corev1.Service)
	if !is {
		return object, nil
	}
	svc.ManagedFields = ir.LabelOwners(svc)
	return svc, nil
}
