// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// writeExceptions writes the status of each SpecGuardException that changed, and counts again when
// the next one ends.
func (c *Status) writeExceptions(ctx context.Context, snapshot *guards.Snapshot, objects map[types.NamespacedName]int32, written *round) error {
	list, err := guards.ListExceptions(ctx, c.Guards.Guards)
	if err != nil {
		return err
	}
	var failed []error
	now := c.Clock.Now()
	for i := range list {
		e := &list[i]
		name := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
		if left := e.Spec.EndTime.Sub(now); left > 0 {
			written.again = min(written.again, left)
		}
		next := e.DeepCopy()
		fillException(next, snapshot.ExceptionProblems[name], objects[name], now)
		if equality.Semantic.DeepEqual(e.Status, next.Status) {
			continue
		}
		if err := c.Client.Status().Update(ctx, next); err != nil {
			failed = append(failed, fmt.Errorf("writing the status of exception %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// fillException computes the status of an exception.
func fillException(e *v1alpha1.SpecGuardException, problem error, objects int32, now time.Time) {
	e.Status.ObservedGeneration, e.Status.Objects = e.Generation, objects
	conditions := condition.Set{Conditions: &e.Status.Conditions, Generation: e.Generation, Now: now}
	end := e.Spec.EndTime.UTC().Format(time.RFC3339)
	switch {
	case !e.Spec.EndTime.After(now):
		conditions.NotReady("Ended", "the exception ended at "+end)
	case problem != nil:
		conditions.Stalled("Invalid", problem.Error())
	default:
		conditions.Ready("Active", "the exception ends at "+end)
	}
}
