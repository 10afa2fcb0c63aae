// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// PodOf takes what counts of a pod. Its maps are shared with it.
func PodOf(p *corev1.Pod) Pod {
	pod := Pod{
		Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Node: p.Spec.NodeName,
		Workload:    workloadOf(p),
		Ports:       namedPorts(&p.Spec),
		Terminating: p.DeletionTimestamp != nil,
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			pod.Ready = c.Status == corev1.ConditionTrue
		}
	}
	if p.Status.Phase != corev1.PodRunning {
		return pod
	}
	for _, ip := range p.Status.PodIPs {
		if addr, err := netip.ParseAddr(ip.IP); err == nil {
			pod.Addresses = append(pod.Addresses, addr)
		}
	}
	return pod
}

// workloadOf is the Deployment when the owner is a ReplicaSet that has the name which
// a Deployment gives one; so no ReplicaSets have to be watched.
func workloadOf(p *corev1.Pod) traffic.Workload {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return traffic.Workload{Namespace: p.Namespace, Kind: "Pod", Name: p.Name}
	}
	if hash := p.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, found := strings.CutSuffix(owner.Name, "-"+hash); found {
			return traffic.Workload{Namespace: p.Namespace, Kind: "Deployment", Name: name}
		}
	}
	return traffic.Workload{Namespace: p.Namespace, Kind: owner.Kind, Name: owner.Name}
}

func namedPorts(spec *corev1.PodSpec) map[string]uint16 {
	ports := map[string]uint16{}
	add := func(c corev1.Container) {
		for _, p := range c.Ports {
			if _, seen := ports[p.Name]; p.Name != "" && !seen && tcp(p.Protocol) {
				ports[p.Name] = uint16(p.ContainerPort) //nolint:gosec // the API server admits 1 to 65535
			}
		}
	}
	for _, c := range spec.Containers {
		add(c)
	}
	for _, c := range spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	return ports
}

func tcp(p corev1.Protocol) bool { return p == "" || p == corev1.ProtocolTCP }

// state of it as an endpoint. unready says that the Service wants those too that are
// not ready.
func (p Pod) state(unready bool) State {
	switch {
	case len(p.Addresses) == 0, p.Terminating && !p.Ready:
		return absent
	case !p.Ready && !unready:
		return Unready
	case p.Terminating:
		return Draining
	default:
		return Ready
	}
}

// address in the family that the Service prefers, or in the other.
func (p Pod) address(v6 bool) netip.Addr {
	for _, a := range p.Addresses {
		if a.Is6() == v6 {
			return a
		}
	}
	return p.Addresses[0]
}
