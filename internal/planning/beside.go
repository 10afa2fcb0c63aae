// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// FindUnready names, in words, the guarded objects that need the object of a Baseline, directly or through others, and
// are not ready. The graph is that of the Environment of the namespace. What is not guarded is not known.
func (s *FromCache) FindUnready(ctx context.Context, namespace, baseline string) ([]string, error) {
	graph, baselines, err := s.neighbors(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("looking for objects that need %s/%s: %w", namespace, baseline, err)
	}
	i := slices.IndexFunc(baselines, func(b v1alpha1.Baseline) bool { return b.Namespace == namespace && b.Name == baseline })
	if i < 0 {
		return nil, nil
	}
	g := &gatherer{src: s}
	needed := g.look(ctx, &baselines[i]).component()
	dependents := severity.FindDependents(needed, graph)
	var found []string
	for i := range baselines {
		b := &baselines[i]
		if !b.Guarded() {
			continue
		}
		if of := g.look(ctx, b); of.object != nil && of.object.Ready == readiness.NotReady && dependents[of.component()] {
			found = append(found, fmt.Sprintf("%s %s/%s, which needs %s, is not ready", b.Spec.Target.Kind, b.Namespace, b.Spec.Target.Name, needed))
		}
	}
	slices.Sort(found)
	return found, nil
}

// neighbors reads the graph of the Environment of a namespace, and the Baselines of all namespaces of that
// Environment. It reads no Baseline if there is no graph: each assessment asks at its end, and most Environments
// have none. The Baselines are shared, and must not be changed.
func (s *FromCache) neighbors(ctx context.Context, namespace string) (graph []v1alpha1.ComponentDependencies, all []v1alpha1.Baseline, err error) {
	known := s.Snapshot()
	if known == nil {
		return nil, nil, ErrNotReady
	}
	var environments v1alpha1.EnvironmentList
	if err := s.Cache.List(ctx, &environments, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing environments: %w", err)
	}
	owners := assign(environments.Items, known)
	own := owners.Of(namespace)
	if own == nil || len(own.Spec.Dependencies) == 0 {
		return nil, nil, nil
	}
	for name := range known.Namespaces {
		if owners.Of(name) != own {
			continue
		}
		var baselines v1alpha1.BaselineList
		if err := s.Cache.List(ctx, &baselines, client.InNamespace(name), client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, fmt.Errorf("listing the baselines of namespace %s: %w", name, err)
		}
		all = append(all, baselines.Items...)
	}
	return own.Spec.Dependencies, all, nil
}
