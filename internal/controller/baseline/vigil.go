// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// vigilPeriod is how often kinds are asked whether they can be read.
const vigilPeriod = 5 * time.Second

// Vigil looks after kinds rather than objects: no event tells that a kind has
// not been readable for a while, that it is again, or that an object was already
// gone when its kind was first listed.
type Vigil struct {
	Reconciler *Reconciler
	Trigger    *Trigger
	Clock      clock.WithTicker

	unreadable map[schema.GroupVersionKind]bool
}

// Start runs until ctx ends; it is a manager.Runnable.
func (v *Vigil) Start(ctx context.Context) error {
	v.unreadable = map[schema.GroupVersionKind]bool{}
	ticker := v.Clock.NewTicker(vigilPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C():
			if err := v.check(ctx, now); err != nil {
				return err
			}
		}
	}
}

// check looks at the objects of each kind that became unreadable, or readable.
func (v *Vigil) check(ctx context.Context, now time.Time) error {
	snapshot := v.Reconciler.Guards.Snapshot()
	if snapshot == nil {
		return nil
	}
	for gvk := range snapshot.Resources {
		failing := v.Reconciler.lastingFailure(gvk, now) != nil
		if failing == v.unreadable[gvk] {
			continue
		}
		v.unreadable[gvk] = failing
		if err := v.LookAtKind(ctx, gvk); err != nil {
			return err
		}
	}
	return nil
}

// LookAtKind looks at every object of a kind that has a Baseline.
func (v *Vigil) LookAtKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	var baselines v1alpha1.BaselineList
	if err := v.Reconciler.Client.List(ctx, &baselines, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing baselines of %s: %w", gvk.Kind, err)
	}
	for i := range baselines.Items {
		if key := KeyOf(&baselines.Items[i]); key.GroupVersionKind == gvk {
			v.Trigger.Look(key)
		}
	}
	return nil
}
