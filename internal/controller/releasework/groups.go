// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// fillGroups reads both groups of the release. Autoscalers matter while a run goes forward: to give replicas back
// needs no answer about them.
func (r *Reconciler) fillGroups(ctx context.Context, f *work.Facts) error {
	replicas := (*int32)(nil)
	if f.Groups != nil {
		replicas = f.Groups.Replicas
	}
	f.Groups = &work.Groups{Deployments: map[v1alpha1.VariationName]*unstructured.Unstructured{}, Tools: map[v1alpha1.VariationName]string{}, Replicas: replicas}
	for i := range f.Release.Spec.Variations {
		v := &f.Release.Spec.Variations[i]
		if v.Group == nil {
			continue
		}
		live, err := r.readDeployment(ctx, f.Work.Namespace, v.Group.Name)
		if err != nil {
			return err
		}
		if f.Groups.Deployments[v.Name] = live; live != nil {
			f.Groups.Tools[v.Name] = toolOf(live)
		}
	}
	if work.GivesBack(f.Work, f.Release) {
		return nil
	}
	all, err := r.listAutoscalers(ctx, f.Work.Namespace)
	if err != nil {
		return err
	}
	f.Autoscalers = all
	return nil
}
