// SPDX-License-Identifier: Apache-2.0

// Package endpoints counts and finds the endpoints of the variations of a split, by Services,
// EndpointSlices and pods alone: it needs no proxy, and nothing of what proxies are told.
package endpoints

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Counter counts and finds endpoints by what a reader has.
type Counter struct {
	// Reader has Services, EndpointSlices and pods.
	Reader client.Reader
	// Quarantined are the workloads of a namespace that get no requests; nil where a router sends
	// requests to all.
	Quarantined func(ctx context.Context, namespace string) ([]traffic.Workload, error)
}

// Count counts the endpoints of each variation; found is false if the Service is not there.
func (c Counter) Count(ctx context.Context, split traffic.Split) (of map[string]traffic.Endpoints, found bool, err error) {
	g, err := c.readService(ctx, client.ObjectKey{Namespace: split.Namespace, Name: split.Service})
	if err != nil || g.service == nil {
		return nil, false, err
	}
	return ir.CountEndpoints(g.service, split, g.pods, g.quarantined), true, nil
}

// group is a Service with the pods of its namespace. service is nil if the Service is not there.
type group struct {
	service     *corev1.Service
	pods        []ir.Pod
	quarantined []traffic.Workload
}

func (c Counter) readService(ctx context.Context, name client.ObjectKey) (group, error) {
	svc := &corev1.Service{}
	err := c.Reader.Get(ctx, name, svc)
	if apierrors.IsNotFound(err) {
		return group{}, nil
	}
	if err != nil {
		return group{}, fmt.Errorf("reading Service %s: %w", name, err)
	}
	var list corev1.PodList
	if err := c.Reader.List(ctx, &list, client.InNamespace(name.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return group{}, fmt.Errorf("listing the pods of namespace %s: %w", name.Namespace, err)
	}
	g := group{service: svc, pods: make([]ir.Pod, 0, len(list.Items))}
	for i := range list.Items {
		g.pods = append(g.pods, ir.PodOf(&list.Items[i]))
	}
	if c.Quarantined != nil {
		if g.quarantined, err = c.Quarantined(ctx, name.Namespace); err != nil {
			return group{}, fmt.Errorf("reading the quarantines in namespace %s: %w", name.Namespace, err)
		}
	}
	return g, nil
}
