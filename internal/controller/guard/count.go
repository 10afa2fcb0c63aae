// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// countBaselines counts the Baselines that the cache holds, by guard. It looks at them in place, because
// guards are counted twice a second.
func countBaselines(ctx context.Context, informers cache.Informers) (counted, error) {
	c := counted{byGuard: map[specguard.GuardRef]guards.Tally{}, byException: map[types.NamespacedName]int32{}}
	err := elected.Each(ctx, informers, &v1alpha1.Baseline{}, func(b *v1alpha1.Baseline) {
		guards.AddTally(c.byGuard, b)
		c.addExceptions(b)
	})
	if err != nil {
		return counted{}, fmt.Errorf("counting baselines: %w", err)
	}
	return c, nil
}

// counted has the numbers of objects by guard, and by the exception that excuses one of their values.
type counted struct {
	byGuard     map[specguard.GuardRef]guards.Tally
	byException map[types.NamespacedName]int32
}

// addExceptions counts a Baseline once for each exception that its masks name.
func (c *counted) addExceptions(b *v1alpha1.Baseline) {
	for i := range b.Status.Masks {
		rule := b.Status.Masks[i].Rule
		earlier := slices.ContainsFunc(b.Status.Masks[:i], func(m v1alpha1.Mask) bool { return m.Rule == rule })
		if name, excepted := specguard.ExceptionOf(rule); excepted && !earlier {
			c.byException[types.NamespacedName{Namespace: b.Namespace, Name: name}]++
		}
	}
}
