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

// The states of an exception, which are the reasons of its condition Ready.
const (
	exceptionActive  = "Active"
	exceptionEnded   = "Ended"
	exceptionInvalid = "Invalid"
)

// writeExceptions writes the status of each SpecGuardException that changed, and counts again when
// the next one ends.
func (c *Status) writeExceptions(ctx context.Context, snapshot *guards.Snapshot, objects map[types.NamespacedName]int32, written *round) error {
	list, err := guards.ListExceptions(ctx, c.Guards.Guards)
	if err != nil {
		return err
	}
	var failed []error
	now, states := c.Clock.Now(), map[string]int{}
	for i := range list {
		e := &list[i]
		name := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
		if left := e.Spec.EndTime.Sub(now); left > 0 {
			written.again = min(written.again, left)
		}
		next := e.DeepCopy()
		problem := snapshot.ExceptionProblems[name]
		state := stateOfException(e, problem, now)
		states[state]++
		fillException(next, state, problem, objects[name], now)
		if equality.Semantic.DeepEqual(e.Status, next.Status) {
			continue
		}
		if err := c.Client.Status().Update(ctx, next); err != nil {
			failed = append(failed, fmt.Errorf("writing the status of exception %s: %w", name, err))
		}
	}
	c.ExceptionMetrics.set(states)
	return errors.Join(failed...)
}

// stateOfException returns the state of an exception. One that has ended excuses no change, whether it was valid or not.
func stateOfException(e *v1alpha1.SpecGuardException, problem error, now time.Time) string {
	switch {
	case !e.Spec.EndTime.After(now):
		return exceptionEnded
	case problem != nil:
		return exceptionInvalid
	}
	return exceptionActive
}

// fillException computes the status of an exception.
func fillException(e *v1alpha1.SpecGuardException, state string, problem error, objects int32, now time.Time) {
	e.Status.ObservedGeneration, e.Status.Objects = e.Generation, objects
	conditions := condition.Set{Conditions: &e.Status.Conditions, Generation: e.Generation, Now: now}
	end := e.Spec.EndTime.UTC().Format(time.RFC3339)
	switch state {
	case exceptionEnded:
		conditions.NotReady(state, "the exception ended at "+end)
	case exceptionInvalid:
		conditions.Stalled(state, problem.Error())
	default:
		conditions.Ready(state, "the exception ends at "+end)
	}
}
