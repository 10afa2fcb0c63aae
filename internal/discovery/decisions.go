// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// decisions reads what is in quarantine, and the pods that splits and quarantines are about.
func (s *sources) decisions(ctx context.Context, namespaces map[string]bool, in *ir.Inputs) error {
	concerned := map[string]bool{}
	for _, split := range in.Splits {
		concerned[split.Namespace] = true
	}
	for namespace := range namespaces {
		workloads, err := s.quarantined(ctx, namespace)
		if err != nil {
			return err
		}
		if len(workloads) > 0 {
			in.Quarantined = append(in.Quarantined, workloads...)
			concerned[namespace] = true
		}
	}
	for namespace := range concerned {
		var err error
		if in.Pods, err = s.pods(ctx, namespace, in.Pods); err != nil {
			return err
		}
	}
	return nil
}

// quarantineField is that of an index: the Baselines whose object is in quarantine.
const quarantineField = "quarantine"

// inQuarantine is the value of quarantineField.
func inQuarantine(object client.Object) []string {
	if b, is := object.(*v1alpha1.Baseline); is && b.Status.Quarantine != nil {
		return []string{"true"}
	}
	return nil
}

// quarantined are the workloads of a namespace that get no new requests.
func (s *sources) quarantined(ctx context.Context, namespace string) (workloads []traffic.Workload, err error) {
	if !s.has(baselineKind) {
		return nil, nil
	}
	var baselines v1alpha1.BaselineList
	if err := s.list(ctx, &baselines, client.InNamespace(namespace), client.MatchingFields{quarantineField: "true"}); err != nil {
		return nil, err
	}
	for i := range baselines.Items {
		b := &baselines.Items[i]
		workloads = append(workloads, traffic.Workload{Namespace: b.Namespace, Kind: b.Spec.Target.Kind, Name: b.Spec.Target.Name})
	}
	return workloads, nil
}

func (s *sources) pods(ctx context.Context, namespace string, pods []ir.Pod) ([]ir.Pod, error) {
	list, err := s.podsOf(ctx, namespace)
	for i := range list {
		pods = append(pods, ir.PodOf(&list[i]))
	}
	return pods, err
}

// podsOf a namespace. Nobody changes them.
func (s *sources) podsOf(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := s.list(ctx, &list, client.InNamespace(namespace))
	return list.Items, err
}

// prospect is the mesh of one Service as it would be with a certain split.
func (s *sources) prospect(ctx context.Context, split traffic.Split) (ir.Mesh, error) {
	in := ir.Inputs{Splits: []traffic.Split{split}, IPv6: s.ipv6}
	var svc corev1.Service
	err := s.cache.Get(ctx, client.ObjectKey{Namespace: split.Namespace, Name: split.Service}, &svc)
	if client.IgnoreNotFound(err) != nil {
		return ir.Mesh{}, err
	}
	if err == nil {
		in.Services = append(in.Services, &svc)
		if err := s.neighbors(ctx, &svc, &in); err != nil {
			return ir.Mesh{}, err
		}
	}
	if in.Quarantined, err = s.quarantined(ctx, split.Namespace); err != nil {
		return ir.Mesh{}, err
	}
	if in.Pods, err = s.pods(ctx, split.Namespace, nil); err != nil {
		return ir.Mesh{}, err
	}
	return only(ir.Build(in), split), nil
}

// neighbors are the Services with an address of this one, and their splits: the oldest
// of them has it.
func (s *sources) neighbors(ctx context.Context, svc *corev1.Service, in *ir.Inputs) error {
	met := map[types.UID]bool{svc.UID: true}
	for _, ip := range addresses(svc) {
		var services corev1.ServiceList
		if err := s.list(ctx, &services, client.MatchingFields{addressField: ip}); err != nil {
			return err
		}
		for i := range services.Items {
			other := &services.Items[i]
			if met[other.UID] {
				continue
			}
			met[other.UID] = true
			in.Services = append(in.Services, other)
			if err := s.splitsOf(ctx, client.ObjectKeyFromObject(other), in); err != nil {
				return err
			}
		}
	}
	return nil
}

// addressField is that of an index: a Service has an address of its own, as a rule.
const addressField = "address"

// addresses are the values of addressField.
func addresses(object client.Object) []string {
	svc, is := object.(*corev1.Service)
	if !is || slices.Contains(svc.Spec.ClusterIPs, corev1.ClusterIPNone) {
		return nil
	}
	return svc.Spec.ClusterIPs
}

// splitsOf a Service that are in force.
func (s *sources) splitsOf(ctx context.Context, service types.NamespacedName, in *ir.Inputs) error {
	if !s.has(releaseKind) {
		return nil
	}
	splits, ordered, err := s.splitsIn(ctx, service)
	if err != nil {
		return err
	}
	in.Splits = append(in.Splits, splits...)
	for _, name := range ordered {
		if in.Ordered == nil {
			in.Ordered = map[types.NamespacedName]bool{}
		}
		in.Ordered[name] = true
	}
	return nil
}

// only what is about a split and its Service.
func only(mesh ir.Mesh, split traffic.Split) ir.Mesh {
	about := []ir.Object{{Kind: "Service", Namespace: split.Namespace, Name: split.Service}, {Kind: releaseKind, Namespace: split.Namespace, Name: split.Name}}
	mesh.Services = slices.DeleteFunc(mesh.Services, func(s ir.Service) bool { return s.Namespace != split.Namespace || s.Name != split.Service })
	mesh.Problems = slices.DeleteFunc(mesh.Problems, func(p ir.Problem) bool { return !slices.Contains(about, p.Object) })
	return mesh
}
