// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

// Packet keeps the records of one plan, and puts them together with the bodies that they name. It needs one
// record at least, and each has a plan.
func (f *Found) Packet(ctx context.Context, store evidence.Store) (*packet.Packet, error) {
	f.Records = lastPlan(f.Records)
	bodies, err := readBodies(ctx, store, f.Records)
	if err != nil {
		return nil, err
	}
	return packet.New(f.Records, bodies, f.isWithdrawn), nil
}

func (f *Found) isWithdrawn(r *evidence.Record) bool { return f.WithdrawnBy(r) > 0 }

// Ended returns the packets of all plans that have ended, without bodies, in the order of their first records.
// Each record has a plan.
func (f *Found) Ended() (ended []*packet.Packet) {
	type plan struct{ chain, uid string }
	var order []plan
	of := map[plan][]evidence.Sealed{}
	for _, s := range f.Records {
		key := plan{s.Record.Chain.UID, s.Record.Plan.UID}
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], s)
	}
	for _, key := range order {
		if p := packet.New(of[key], nil, f.isWithdrawn); p.Status != "" {
			ended = append(ended, p)
		}
	}
	return ended
}

// lastPlan returns the records of the plan that the last record is about: two plans may have
// had one name, one after the other.
func lastPlan(records []evidence.Sealed) []evidence.Sealed {
	last := records[len(records)-1].Record
	return slices.DeleteFunc(slices.Clone(records), func(s evidence.Sealed) bool {
		return s.Record.Plan.UID != last.Plan.UID || s.Record.Chain.UID != last.Chain.UID
	})
}

// readBodies reads the bodies that the records speak of. A body that is missing, or is another
// one than its name says, is told in the packet; a store that cannot be read is an error.
func readBodies(ctx context.Context, store evidence.Store, records []evidence.Sealed) (packet.Bodies, error) {
	named := map[string]bool{}
	for i := range records {
		for _, b := range records[i].Record.Bodies {
			named[b.Digest] = true
		}
	}
	chain, bodies := records[0].Record.Chain.UID, packet.Bodies{}
	for _, digest := range packet.Digests(records) {
		body, err := evidence.ReadBody(ctx, store, chain, digest)
		var mismatch *evidence.BodyError
		switch {
		case errors.Is(err, evidence.ErrNotFound) && named[digest]:
			err = errors.New("the store lacks the body that the records name")
		case errors.Is(err, evidence.ErrNotFound):
			err = errors.New("not stored: no record names a body")
		case errors.As(err, &mismatch):
			err = fmt.Errorf("digest mismatch: the content has the digest %s", mismatch.Have)
		case err != nil:
			return nil, err
		}
		bodies[digest] = packet.Read(body, err)
	}
	return bodies, nil
}
