// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// countBaselines counts the Baselines that the cache holds, by guard. It looks at the objects of the cache
// in place, because a list is a copy of 850 bytes for each Baseline, and guards are counted twice a second.
func countBaselines(ctx context.Context, informers cache.Informers) (map[specguard.GuardRef]guards.Tally, error) {
	informer, err := informers.GetInformer(ctx, &v1alpha1.Baseline{})
	if err != nil {
		return nil, fmt.Errorf("counting baselines: %w", err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("counting baselines: the informer is a %T, which has no store", informer)
	}
	counts := map[specguard.GuardRef]guards.Tally{}
	for _, object := range shared.GetIndexer().List() {
		b, ok := object.(*v1alpha1.Baseline)
		if !ok {
			return nil, fmt.Errorf("counting baselines: the cache holds a %T", object)
		}
		guards.AddTally(counts, b)
	}
	return counts, nil
}
