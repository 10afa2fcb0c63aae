// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// countBaselines counts the Baselines that the cache holds, by guard. It looks at them in place, because
// guards are counted twice a second.
func countBaselines(ctx context.Context, informers cache.Informers) (map[specguard.GuardRef]guards.Tally, error) {
	counts := map[specguard.GuardRef]guards.Tally{}
	err := elected.Each(ctx, informers, &v1alpha1.Baseline{}, func(b *v1alpha1.Baseline) { guards.AddTally(counts, b) })
	if err != nil {
		return nil, fmt.Errorf("counting baselines: %w", err)
	}
	return counts, nil
}
