// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// Meet goes on with a chain before there is a record to write. After a change of keys that
// ends the range of the key of before.
func (r *Recorder) Meet(ctx context.Context, environment, uid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.chain(ctx, environment, uid)
	return err
}

// catchUp reads the records after the head.
func (r *Recorder) catchUp(ctx context.Context, uid string, c *chain) (evidence.Tail, error) {
	var ends []evidence.KeyEnd
	if len(r.Writer.Keys.IDs()) > 1 {
		var err error
		if ends, err = r.Ends.Ends(ctx); err != nil {
			return evidence.Tail{}, fmt.Errorf("catching up with evidence %s: %w", uid, err)
		}
	}
	tail, found, err := r.Writer.CatchUp(ctx, uid, c.head, ends)
	for _, sealed := range found {
		c.add(sealed)
	}
	if err == nil && tail.Undeclared != nil {
		err = r.Ends.Declare(ctx, *tail.Undeclared)
	}
	return tail, err
}

// succeed ends the range of the key of before, if another one signed last. A key that a
// chain has gone on without signs no further record: two executors with two keys would
// otherwise succeed each other for ever.
func (r *Recorder) succeed(ctx context.Context, environment, uid string, c *chain, tail evidence.Tail) error {
	own := r.Writer.Signer.KeyID()
	switch {
	case tail.Key == "" || tail.Key == own:
		return nil
	case c.signed[own]:
		return fmt.Errorf("going on with evidence %s: key %s has a successor, and signs no further record", uid, own)
	}
	sealed, end, err := r.Writer.Succeed(ctx, tail, r.succession(uid, tail))
	if err != nil {
		return fmt.Errorf("ending the range of key %s in evidence %s: %w", tail.Key, uid, err)
	}
	if end != nil {
		if err := r.Ends.Declare(ctx, *end); err != nil {
			return err
		}
	}
	c.add(sealed)
	return r.keep(ctx, environment, uid, c)
}

// succession is the record of a change of keys. It is about the policy, as the last record
// names it, or about what a chain of releases belongs to.
func (r *Recorder) succession(uid string, tail evidence.Tail) evidence.Record {
	record := evidence.Record{
		At: r.Now(), Chain: evidence.Chain{UID: uid}, Policy: tail.Policy, InitiatedBy: evidence.InitiatedBySystem, Builder: r.Builder,
		Occurrence: int32(min(tail.Sequence, math.MaxInt32)), //nolint:gosec // bounded
	}
	if tail.Delivery != nil {
		record.Delivery, record.Subject = tail.Delivery, ownerOf(uid, tail)
		return record
	}
	policy := cmp.Or(tail.Policy, &evidence.Policy{Name: uid, Digest: tail.Digest})
	record.Subject = evidence.Subject{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "RemediationPolicy", Name: policy.Name, UID: uid, Hash: policy.Digest,
	}
	return record
}

// ownerOf is the Environment of a chain of releases, or Plumbline's namespace for the chain of the rest, of
// which the uid alone is known here.
func ownerOf(uid string, tail evidence.Tail) evidence.Subject {
	if name := tail.Delivery.Environment; name != "" {
		return evidence.Subject{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Environment", Name: name, UID: uid, Hash: tail.Digest}
	}
	return evidence.Subject{APIVersion: "v1", Kind: "Namespace", Name: uid, UID: uid, Hash: tail.Digest}
}
