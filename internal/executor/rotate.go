// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// rotateAgain is when to try again after a failure.
const rotateAgain = 30 * time.Second

// rotator ends the ranges of the keys of before in all chains, as soon as the process
// leads. A chain that waits for its next record would else stay open to a key that may be in
// foreign hands.
type rotator struct {
	executor *exec.Executor
	clock    clock.WithTicker
	log      logr.Logger
}

// Start implements manager.Runnable; only the leader does.
func (r *rotator) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(rotateAgain)
	defer ticker.Stop()
	for {
		chains, err := r.rotate(ctx)
		if err == nil {
			r.log.Info("evidence.keys.rotated", "chains", chains)
			return nil
		}
		if ctx.Err() == nil {
			r.log.Error(err, "ending the ranges of the keys of before")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// rotate meets all chains, and counts them.
func (r *rotator) rotate(ctx context.Context) (chains int, err error) {
	var ledgers v1alpha1.RemediationLedgerList
	if err := r.executor.Client.List(ctx, &ledgers, client.InNamespace(r.executor.Namespace)); err != nil {
		return 0, fmt.Errorf("listing ledgers: %w", err)
	}
	for i := range ledgers.Items {
		l := &ledgers.Items[i]
		for _, chain := range l.Status.Chains {
			chains++
			err = errors.Join(err, r.executor.Evidence.Meet(ctx, l.Name, chain.PolicyUID))
		}
	}
	return chains, err
}
