// SPDX-License-Identifier: Apache-2.0

// Package endpoints counts the endpoints of the variations of a split, by Services and pods
// alone: it needs no proxy, and nothing of what proxies are told.
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

// Counter counts by what a reader has.
type Counter struct {
	// Reader has Services and pods.
	Reader client.Reader
	// Quarantined are the workloads of a namespace that get no requests; nil where a router sends
	// requests to all.
	Quarantined func(ctx context.Context, namespace string) ([]traffic.Workload, error)
}

// Count counts the endpoints of each variation; found is false if the Service is not there.
func (c Counter) Count(ctx context.Context, split traffic.Split) (of map[string]traffic.Endpoints, found bool, err error) {
	var svc corev1.Service
	err = c.Reader.Get(ctx, client.ObjectKey{Namespace: split.Namespace, Name: split.Service}, &svc)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading Service %s/%s: %w", split.Namespace, split.Service, err)
	}
	var list corev1.PodList
	if err := c.Reader.List(ctx, &list, client.InNamespace(split.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, fmt.Errorf("listing the pods of namespace %s: %w", split.Namespace, err)
	}
	pods := make([]ir.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, ir.PodOf(&list.Items[i]))
	}
	var quarantined []traffic.Workload
	if c.Quarantined != nil {
		if quarantined, err = c.Quarantined(ctx, split.Namespace); err != nil {
			return nil, false, fmt.Errorf("reading the quarantines in namespace %s: %w", split.Namespace, err)
		}
	}
	return ir.CountEndpoints(&svc, split, pods, quarantined), true, nil
}
