// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
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

// Keep implements Heads. Where there is no more room, those of policies that are
// gone make some: their records stay, and only that their end is not cut off can no
// longer be proven from the ledger. A chain of releases stays as long as its Environment.
func (h LedgerHeads) Keep(ctx context.Context, environment, chain string, left ...evidence.Head) error {
	full, err := h.keep(ctx, environment, chain, left, nil)
	if err != nil || !full {
		return err
	}
	there, err := h.owners(ctx)
	if err != nil {
		return fmt.Errorf("looking for room in ledger %s: %w", environment, err)
	}
	if full, err = h.keep(ctx, environment, chain, left, there); full {
		return fmt.Errorf("ledger %s has no room for the evidence of another policy: it has those of %d", environment, maxChains)
	}
	return err
}

// owners are the uids of all policies and Environments: each may have a chain.
func (h LedgerHeads) owners(ctx context.Context) (map[string]bool, error) {
	var policies v1alpha1.RemediationPolicyList
	if err := h.Client.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("listing policies: %w", err)
	}
	var environments v1alpha1.EnvironmentList
	if err := h.Client.List(ctx, &environments); err != nil {
		return nil, fmt.Errorf("listing Environments: %w", err)
	}
	there := map[string]bool{}
	for i := range policies.Items {
		there[string(policies.Items[i].UID)] = true
	}
	for i := range environments.Items {
		there[string(environments.Items[i].UID)] = true
	}
	return there, nil
}

// keep stores the last head; of the policies of the others only those in there count, if
// it is given.
func (h LedgerHeads) keep(ctx context.Context, environment, chain string, left []evidence.Head, there map[string]bool) (full bool, err error) {
	var conflict error
	err = h.change(ctx, environment, func(s *ledger.Status) *ledger.Status {
		full = false
		if conflict = contradicts(s, chain, left); conflict != nil {
			return s
		}
		next := s.DeepCopy()
		if there != nil {
			next.Chains = slices.DeleteFunc(next.Chains, func(c v1alpha1.EvidenceChain) bool { return c.PolicyUID != chain && !there[c.PolicyUID] })
		}
		if !putHead(next, chain, left[len(left)-1]) {
			full = len(next.Chains) >= maxChains && !slices.ContainsFunc(next.Chains, func(c v1alpha1.EvidenceChain) bool { return c.PolicyUID == chain })
			return s
		}
		next.Sequence++
		return next
	})
	return full, cmp.Or(err, conflict)
}

// contradicts says that another record was kept as the head of a chain: the store has lost that
// record, and another one has its place. An earlier head contradicts nothing.
func contradicts(s *ledger.Status, chain string, left []evidence.Head) error {
	i := slices.IndexFunc(s.Chains, func(c v1alpha1.EvidenceChain) bool { return c.PolicyUID == chain })
	if i < 0 {
		return nil
	}
	kept := &s.Chains[i]
	for _, head := range left {
		if head.Sequence == kept.Sequence && head.Digest != kept.Digest {
			return &evidence.ConflictError{
				Name: evidence.Name(chain, head.Sequence), Want: kept.Digest, Have: head.Digest,
				Problem: "another record was kept as the head of the chain",
			}
		}
	}
	return nil
}

// putHead puts the head of a chain into a status. A head that is behind, and one for which
// there is no room, changes nothing.
func putHead(s *ledger.Status, chain string, head evidence.Head) (changed bool) {
	entry := v1alpha1.EvidenceChain{PolicyUID: chain, Sequence: head.Sequence, Digest: head.Digest}
	i := slices.IndexFunc(s.Chains, func(c v1alpha1.EvidenceChain) bool { return c.PolicyUID == chain })
	switch {
	case i >= 0 && s.Chains[i].Sequence >= head.Sequence, i < 0 && len(s.Chains) >= maxChains:
		return false
	case i >= 0:
		s.Chains[i] = entry
	default:
		s.Chains = append(s.Chains, entry)
	}
	return true
}
