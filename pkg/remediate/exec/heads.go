// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// maxChains is the schema's bound.
const maxChains = 256

// LedgerHeads keep the heads in the Environment's ledger.
type LedgerHeads struct{ *Executor }

// Head implements Heads.
func (h LedgerHeads) Head(ctx context.Context, environment, chain string) (evidence.Head, error) {
	l, err := h.readLedger(ctx, environment)
	if err != nil {
		return evidence.Head{}, err
	}
	for _, c := range l.Status.Chains {
		if c.PolicyUID == chain {
			return evidence.Head{Sequence: c.Sequence, Digest: c.Digest}, nil
		}
	}
	return evidence.Head{}, nil
}

// Keep implements Heads.
func (h LedgerHeads) Keep(ctx context.Context, environment, chain string, head evidence.Head) error {
	var full bool
	err := h.change(ctx, environment, func(s *ledger.Status) *ledger.Status {
		i := slices.IndexFunc(s.Chains, func(c v1alpha1.EvidenceChain) bool { return c.PolicyUID == chain })
		if i >= 0 && s.Chains[i].Sequence >= head.Sequence {
			return s
		}
		next := s.DeepCopy()
		next.Sequence++
		entry := v1alpha1.EvidenceChain{PolicyUID: chain, Sequence: head.Sequence, Digest: head.Digest}
		switch {
		case i >= 0:
			next.Chains[i] = entry
		case len(next.Chains) < maxChains:
			next.Chains = append(next.Chains, entry)
		default:
			full = true
			return s
		}
		return next
	})
	if full {
		return fmt.Errorf("ledger %s has no room for the evidence of another policy: it has those of %d", environment, maxChains)
	}
	return err
}
