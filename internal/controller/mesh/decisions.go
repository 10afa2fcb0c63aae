// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// decisions reads what Plumbline has decided: splits and quarantines, and the pods
// that they are about. Nothing of it is there where the kinds are not.
func (s *sources) decisions(ctx context.Context, in *ir.Inputs) error {
	concerned := map[string]bool{}
	if s.has(releaseKind) {
		var releases v1alpha1.ABReleaseList
		if err := s.list(ctx, &releases); err != nil {
			return err
		}
		for i := range releases.Items {
			r := &releases.Items[i]
			concerned[r.Namespace] = true
			if split, is := release.SplitOf(r); is {
				in.Splits = append(in.Splits, split)
			}
		}
	}
	var err error
	if in.Quarantined, err = s.quarantined(ctx); err != nil {
		return err
	}
	for _, w := range in.Quarantined {
		concerned[w.Namespace] = true
	}
	for namespace := range concerned {
		if in.Pods, err = s.pods(ctx, namespace, in.Pods); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.concerned = concerned
	return nil
}

func (s *sources) quarantined(ctx context.Context, options ...client.ListOption) (workloads []ir.Workload, err error) {
	if !s.has(baselineKind) {
		return nil, nil
	}
	var baselines v1alpha1.BaselineList
	if err := s.list(ctx, &baselines, options...); err != nil {
		return nil, err
	}
	for i := range baselines.Items {
		if b := &baselines.Items[i]; b.Status.Quarantine != nil {
			workloads = append(workloads, ir.Workload{Namespace: b.Namespace, Kind: b.Spec.Target.Kind, Name: b.Spec.Target.Name})
		}
	}
	return workloads, nil
}

func (s *sources) pods(ctx context.Context, namespace string, pods []ir.Pod) ([]ir.Pod, error) {
	var list corev1.PodList
	if err := s.list(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		pods = append(pods, ir.PodOf(&list.Items[i]))
	}
	return pods, nil
}

// concerns says whether the pods of a namespace are part of a decision.
func (s *sources) concerns(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.concerned == nil || s.concerned[namespace]
}

// prospect is the mesh of one Service as it would be with a certain split.
func (s *sources) prospect(ctx context.Context, split ir.Split) (ir.Mesh, error) {
	in := ir.Inputs{Splits: []ir.Split{split}}
	var svc corev1.Service
	err := s.cache.Get(ctx, client.ObjectKey{Namespace: split.Namespace, Name: split.Service}, &svc)
	if client.IgnoreNotFound(err) != nil {
		return ir.Mesh{}, err
	}
	if err == nil {
		in.Services = append(in.Services, &svc)
	}
	if in.Quarantined, err = s.quarantined(ctx, client.InNamespace(split.Namespace)); err != nil {
		return ir.Mesh{}, err
	}
	if in.Pods, err = s.pods(ctx, split.Namespace, nil); err != nil {
		return ir.Mesh{}, err
	}
	return ir.Build(in), nil
}
