// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// autoscaler is the kind whose minimum is held, and autoscalers is its resource.
var (
	autoscaler  = canon.GVK{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
)

// fillAutoscalers reads the autoscalers of the variation's workload, or the one whose minimum is put back. The
// discovery server names none: it has no right to read autoscalers.
func (r *Reconciler) fillAutoscalers(ctx context.Context, f *work.Facts) error {
	if work.PutsBack(&f.Work.Spec) {
		return r.fillHeld(ctx, f)
	}
	workload := work.ScaledWorkload(f.Release, f.Work.Spec.Variation)
	if workload == nil {
		return nil
	}
	all, err := r.listAutoscalers(ctx, f.Work.Namespace)
	if err != nil {
		return err
	}
	for _, a := range all {
		if work.Scales(a, workload) {
			f.Autoscalers = append(f.Autoscalers, a)
		}
	}
	if len(f.Autoscalers) == 1 {
		f.Tool = toolOf(f.Autoscalers[0])
	}
	return nil
}

// listAutoscalers reads those of a namespace.
func (r *Reconciler) listAutoscalers(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{Group: autoscaler.Group, Version: autoscaler.Version, Kind: autoscaler.Kind + "List"})
	if err := r.Live.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing HorizontalPodAutoscalers of namespace %s: %w", namespace, err)
	}
	items := make([]*unstructured.Unstructured, 0, len(all.Items))
	for i := range all.Items {
		items = append(items, &all.Items[i])
	}
	return items, nil
}

// fillHeld reads the autoscaler whose minimum the works before hold.
func (r *Reconciler) fillHeld(ctx context.Context, f *work.Facts) error {
	if f.Holding == nil {
		return nil
	}
	held, err := r.readTarget(ctx, exec.Reference{GVK: autoscaler, Namespace: f.Work.Namespace, Name: f.Holding.Name})
	if err != nil || held == nil {
		return err
	}
	f.Autoscalers = []*unstructured.Unstructured{held}
	return nil
}
