// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// leftoverAge is how old an entry must be before it is looked at beside its plan:
// the plan's own status follows an entry within a moment.
const leftoverAge = 2 * time.Minute

// ClearLeftovers ends the entries that nobody else would: those of plans that are
// gone, and those that an executor took for a step that another one had ended.
// Call it from time to time.
func (e *Executor) ClearLeftovers(ctx context.Context) error {
	var ledgers v1alpha1.RemediationLedgerList
	if err := e.Client.List(ctx, &ledgers, client.InNamespace(e.Namespace)); err != nil {
		return fmt.Errorf("listing ledgers: %w", err)
	}
	var failed []error
	for i := range ledgers.Items {
		l := &ledgers.Items[i]
		for j := range l.Status.Entries {
			entry := &l.Status.Entries[j]
			if entry.CompletionTime == nil && e.Time.Now().Sub(entry.ReservationTime.Time) >= leftoverAge {
				failed = append(failed, e.clear(ctx, l.Name, entry))
			}
		}
	}
	return errors.Join(failed...)
}

func (e *Executor) clear(ctx context.Context, ledgerName string, entry *v1alpha1.LedgerEntry) error {
	plan := &v1alpha1.RemediationPlan{}
	err := e.Client.Get(ctx, types.NamespacedName{Namespace: entry.Namespace, Name: entry.PlanName}, plan)
	switch {
	case apierrors.IsNotFound(err):
		plan = nil
	case err != nil:
		return fmt.Errorf("reading plan %s/%s: %w", entry.Namespace, entry.PlanName, err)
	}
	step, epoch := entry.StepReference, entry.Epoch
	action, outcome := protocol.LeftoverOf(plan, entry)
	if action == protocol.Keep {
		return nil
	}
	return e.change(ctx, ledgerName, func(s *ledger.Status) *ledger.Status {
		if action == protocol.GiveBack {
			next, _ := ledger.Release(s, step, epoch)
			return next
		}
		next, _ := ledger.Settle(s, step, outcome, e.Time.Now())
		return next
	})
}
