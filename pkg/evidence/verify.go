// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Options of Verify. With none, every chain is verified by itself from its
// first record: then records missing at the end of a chain cannot be seen.
type Options struct {
	// Chains to verify; all when empty.
	Chains []string
	// Starts are the heads from which chains go on whose first records were
	// moved away by retention. Records up to them are passed over.
	Starts map[string]Head
	// Heads are the ends of chains as kept in etcd.
	Heads map[string]Head
	// Anchors are checkpoints of chains, noted where the writer of the chains cannot write.
	Anchors map[string][]Checkpoint
	// Ends of keys, for chains in which no key signed who succeeds it.
	Ends []KeyEnd
	// Plans whose statuses are to agree with the store. Records of other plans
	// are not judged: plans are removed some time after their end, records stay.
	Plans []PlanStatus
	// Each is given every good record, in the order of its chain.
	Each func(Sealed)
}

// PlanStatus is what a plan's status says about its evidence.
type PlanStatus struct {
	UID     string
	Chain   string
	Digests []string
}

// Verify reads chains and reports what is wrong with them. An error means that
// the store could not be read to the end: then nothing is known about the rest.
func Verify(ctx context.Context, store Store, keys *Keyring, o Options) (*Report, error) {
	report := &Report{Chains: []ChainReport{}, Problems: []Problem{}}
	v := &verifier{store: store, keys: keys, options: o, report: report, plans: plansOf(o.Plans), seen: map[string]bool{}}
	chains := o.Chains
	if len(chains) == 0 {
		chains = []string{""} // all of them
	}
	for _, chain := range chains {
		if err := v.walk(ctx, chain); err != nil {
			return nil, fmt.Errorf("verifying evidence: %w", err)
		}
	}
	v.missingChains()
	v.missingDigests()
	report.sort()
	return report, nil
}

// verifier goes through names in order; chain is where it is.
type verifier struct {
	store   Store
	keys    *Keyring
	options Options
	report  *Report
	chain   *chainWalk
	plans   map[string]*planDigests
	seen    map[string]bool // chains
}

type planDigests struct {
	chain  string
	listed map[string]bool
	stored map[string]bool
}

func plansOf(statuses []PlanStatus) map[string]*planDigests {
	plans := map[string]*planDigests{}
	for _, s := range statuses {
		p := &planDigests{chain: s.Chain, listed: map[string]bool{}, stored: map[string]bool{}}
		for _, digest := range s.Digests {
			p.listed[digest] = true
		}
		plans[s.UID] = p
	}
	return plans
}

func (v *verifier) walk(ctx context.Context, chain string) error {
	for name, err := range v.store.List(ctx, chain) {
		if err != nil {
			return err
		}
		if err := v.visit(ctx, name); err != nil {
			return err
		}
	}
	v.finish()
	return nil
}

func (v *verifier) visit(ctx context.Context, name string) error {
	if isBody, err := v.visitBody(ctx, name); isBody {
		return err
	}
	chain, sequence, ok := ParseName(name)
	if !ok {
		v.report.add(Problem{Kind: ProblemForeign, Chain: chainOf(name), Name: name, Text: "is not named as a record or a body"})
		return nil
	}
	if v.chain == nil || v.chain.report.UID != chain {
		v.finish()
		v.begin(chain)
	}
	if sequence <= v.options.Starts[chain].Sequence {
		return nil
	}
	data, err := v.store.Read(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil // removed since it was listed; the next one shows the gap
	}
	if err != nil {
		return err
	}
	v.judge(name, sequence, data)
	return nil
}

func (v *verifier) begin(chain string) {
	start := v.options.Starts[chain]
	v.seen[chain] = true
	v.chain = &chainWalk{
		report: ChainReport{UID: chain, Last: start},
		next:   start.Sequence + 1, previous: start.Digest, linked: true, events: map[string]int64{}, gone: map[string]int{},
		keys: newSigning(chain, v.options.Ends), good: map[int64]told{},
	}
}

func (v *verifier) finish() {
	if v.chain == nil {
		return
	}
	v.missingBodies()
	if head, ok := v.options.Heads[v.chain.report.UID]; ok {
		v.compareHead(head)
	}
	v.compareAnchor(v.options.Anchors[v.chain.report.UID])
	v.report.Chains = append(v.report.Chains, v.chain.report)
	v.chain = nil
}

// compareHead is for what a chain cannot show by itself: its end.
func (v *verifier) compareHead(head Head) {
	c := v.chain
	c.report.Ahead = max(0, c.next-1-head.Sequence)
	if last := c.next - 1; last < head.Sequence {
		v.report.add(Problem{
			Kind: ProblemCutOff, Chain: c.report.UID, Sequence: head.Sequence,
			Text: fmt.Sprintf("the chain ends at %d, and should go to %d", last, head.Sequence),
		})
	} else if c.atHead != "" && c.atHead != head.Digest {
		v.report.add(Problem{
			Kind: ProblemOtherHead, Chain: c.report.UID, Sequence: head.Sequence,
			Text: fmt.Sprintf("record %d is %s, and should be %s", head.Sequence, c.atHead, head.Digest),
		})
	}
}

// compareAnchor tells of a chain that ends before the last checkpoint, unless the head told
// it already.
func (v *verifier) compareAnchor(points []Checkpoint) {
	c := v.chain
	if len(points) == 0 {
		return
	}
	furthest, last := points[len(points)-1], c.next-1
	if last < furthest.Sequence && last >= v.options.Heads[c.report.UID].Sequence {
		v.report.add(Problem{
			Kind: ProblemCutOff, Chain: c.report.UID, Sequence: furthest.Sequence,
			Text: fmt.Sprintf("the chain ends at %d, and went to %d at %s, by the anchor", last, furthest.Sequence, furthest.At.Format(time.RFC3339)),
		})
	}
}

// missingChains reports chains of which there must be records, and are none.
func (v *verifier) missingChains() {
	known := map[string]int64{}
	for chain, head := range v.options.Heads {
		known[chain] = head.Sequence
	}
	for chain, points := range v.options.Anchors {
		for _, p := range points {
			known[chain] = max(known[chain], p.Sequence)
		}
	}
	for _, chain := range slices.Sorted(maps.Keys(known)) {
		wanted := len(v.options.Chains) == 0 || slices.Contains(v.options.Chains, chain)
		if wanted && !v.seen[chain] && known[chain] > v.options.Starts[chain].Sequence {
			v.begin(chain)
			v.finish()
		}
	}
}

func (v *verifier) missingDigests() {
	for _, uid := range slices.Sorted(maps.Keys(v.plans)) {
		plan := v.plans[uid]
		for _, digest := range slices.Sorted(maps.Keys(plan.listed)) {
			if !plan.stored[digest] {
				v.report.add(Problem{
					Kind: ProblemNotStored, Chain: plan.chain,
					Text: fmt.Sprintf("plan %s names the record %s, which is not in the store or not good", uid, digest),
				})
			}
		}
	}
}
