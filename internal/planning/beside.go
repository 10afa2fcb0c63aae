// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// FindUnready names, in words, the guarded objects that need the object of a Baseline, directly or through others, and
// are not ready. The graph is that of the Environment of the namespace. What is not guarded is not known.
func FindUnready(ctx context.Context, src Source, namespace, baseline string, now time.Time) ([]string, error) {
	world, err := src.World(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("looking for objects that need %s/%s: %w", namespace, baseline, err)
	}
	own := world.Of(namespace)
	i := slices.IndexFunc(world.Baselines, func(b v1alpha1.Baseline) bool { return b.Namespace == namespace && b.Name == baseline })
	if own == nil || i < 0 || len(own.Spec.Dependencies) == 0 {
		return nil, nil
	}
	g := &gatherer{src: src, world: world}
	needed := g.look(ctx, &world.Baselines[i]).component()
	dependents := severity.FindDependents(needed, own.Spec.Dependencies)
	var found []string
	for i := range world.Baselines {
		b := &world.Baselines[i]
		if !b.Guarded() || world.Of(b.Namespace) != own {
			continue
		}
		if s := g.look(ctx, b); s.object != nil && s.object.Ready == readiness.NotReady && dependents[s.component()] {
			found = append(found, fmt.Sprintf("%s %s/%s, which needs %s, is not ready", b.Spec.Target.Kind, b.Namespace, b.Spec.Target.Name, needed))
		}
	}
	slices.Sort(found)
	return found, nil
}
