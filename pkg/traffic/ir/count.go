// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// CountEndpoints counts the endpoints of each variation of a split by the pods of its namespace, as
// [Build] does, whether proxies take the Service into the mesh or not: another router has other limits.
// Ports that are declared HTTP count, or all where none is. It returns nil if the split is invalid.
func CountEndpoints(svc *corev1.Service, split traffic.Split, pods []Pod, quarantined []traffic.Workload) map[string]traffic.Endpoints {
	if split.Validate() != nil {
		return nil
	}
	b := newBuilder(Inputs{Pods: pods, Quarantined: quarantined})
	members := b.members(svc, split)
	var declared, all Service
	for _, p := range svc.Spec.Ports {
		if !tcp(p.Protocol) {
			continue
		}
		port := Port{Slots: b.slotsOf(svc, p, split.Shares, members)}
		all.Ports = append(all.Ports, port)
		if b.protocol(svc, p) != TCP {
			declared.Ports = append(declared.Ports, port)
		}
	}
	if len(declared.Ports) == 0 {
		declared = all
	}
	counts := declared.Endpoints()
	for variation, n := range counts {
		n.Revisions = revisionsOf(members[variation])
		counts[variation] = n
	}
	return counts
}

// revisionsOf lists the revision labels of pods, each once and in order.
func revisionsOf(pods []Pod) (labels []string) {
	for i := range pods {
		if pods[i].Terminating {
			continue
		}
		if label := cmp.Or(pods[i].Labels["pod-template-hash"], pods[i].Labels["controller-revision-hash"]); label != "" {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// NoService is the problem of a split whose Service is not there.
func NoService(split traffic.Split) Problem {
	return Problem{
		Object: objectOf(split), Reason: ServiceNotFound, Refused: true,
		Message: fmt.Sprintf("there is no Service %s: create it or name another", split.Service),
	}
}
