// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/quarantine"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// Mesh reads what proxies serve in a namespace.
type Mesh struct{}

// Obstacle implements exec.Mesh.
func (Mesh) Obstacle(ctx context.Context, from client.Reader, namespace string, target *v1alpha1.PlanTarget) (string, error) {
	in, err := readMesh(ctx, from, namespace)
	if err != nil {
		return "", err
	}
	w := traffic.Workload{Namespace: namespace, Kind: target.Kind, Name: target.Name}
	return quarantine.ObstacleTo(in, w).String(), nil
}

// readMesh reads the managed Services of a namespace, and all that belongs to them.
func readMesh(ctx context.Context, from client.Reader, namespace string) (in ir.Inputs, err error) {
	in.IPv6 = true
	var services corev1.ServiceList
	var endpoints discoveryv1.EndpointSliceList
	var pods corev1.PodList
	var releases v1alpha1.ABReleaseList
	var baselines v1alpha1.BaselineList
	for _, list := range []client.ObjectList{&services, &endpoints, &pods, &releases, &baselines} {
		if err := from.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return in, fmt.Errorf("reading the endpoints that proxies serve in namespace %s: %w", namespace, err)
		}
	}
	for i := range services.Items {
		in.Services = append(in.Services, &services.Items[i])
	}
	for i := range endpoints.Items {
		in.Slices = append(in.Slices, &endpoints.Items[i])
	}
	for i := range pods.Items {
		in.Pods = append(in.Pods, ir.PodOf(&pods.Items[i]))
	}
	for i := range releases.Items {
		if split, is := release.SplitOf(&releases.Items[i]); is {
			in.Splits = append(in.Splits, split)
		}
	}
	for i := range baselines.Items {
		if b := &baselines.Items[i]; b.Status.Quarantine != nil {
			in.Quarantined = append(in.Quarantined, traffic.Workload{Namespace: namespace, Kind: b.Spec.Target.Kind, Name: b.Spec.Target.Name})
		}
	}
	return in, nil
}
