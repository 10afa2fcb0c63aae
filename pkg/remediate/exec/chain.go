// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// lookBack is how many records before the head are looked through when a chain is
// met for the first time: whoever died after a record and before the plan that
// names it was stored would else write it again. It is more than all plans that
// can be under way write at once.
const lookBack = 128

// Heads keep how far each chain goes, in etcd.
type Heads interface {
	// Head of a chain; the zero Head when it has no records.
	Head(ctx context.Context, environment, chain string) (evidence.Head, error)
	// Keep stores the last of the heads that records have left since a head was kept. One that
	// is behind what is stored changes nothing. An error wraps an *evidence.ConflictError when
	// the head that is stored is another one than that of the same sequence.
	Keep(ctx context.Context, environment, chain string, left ...evidence.Head) error
}

// KeyEnds keep where the ranges of keys end whose private halves are gone.
type KeyEnds interface {
	// Ends of all keys in all chains.
	Ends(ctx context.Context) ([]evidence.KeyEnd, error)
	// Declare adds one. The end of a key in a chain is declared once.
	Declare(ctx context.Context, end evidence.KeyEnd) error
}

// Recorder writes the records of all policies, one after the other.
type Recorder struct {
	Writer  evidence.Writer
	Heads   Heads
	Builder evidence.Builder
	// Ends are asked where there is more than one key; Now dates the change to another.
	Ends KeyEnds
	Now  func() time.Time

	mu     sync.Mutex
	chains map[string]*chain
	kept   keptBodies
}

// chain is what is known of a policy's records.
type chain struct {
	head evidence.Head
	// kept is the last head that this process has kept, or found.
	kept evidence.Head
	// told are the last records, by the event that they tell; order has the events
	// from old to new.
	told  map[string]evidence.Head
	order []event
	// decided are the decisions among them, with the uid of their plan.
	decided map[evidence.Head]string
	// signed are the keys of the last records.
	signed map[string]bool
	// delivered are the last records of a chain of releases, from old to new.
	delivered []evidence.Record
}

// event is what a record tells, and where.
type event struct {
	id string
	at evidence.Head
}

// Ready says whether a record could be written now.
func (r *Recorder) Ready(ctx context.Context) error { return r.Writer.Store.Ready(ctx) }

// Tell writes a record, unless the chain has one of the same event: then that one
// is the record.
// What is returned is where it stands.
func (r *Recorder) Tell(ctx context.Context, environment string, record evidence.Record) (evidence.Head, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, at, err := r.write(ctx, environment, record)
	if err != nil {
		return evidence.Head{}, err
	}
	return at, r.keep(ctx, environment, record.Chain.UID, c)
}

// Note writes a record as Tell does, and leaves its head to be kept with that of a later
// record. Before anything names the record, [Recorder.KeepHead] has to succeed.
func (r *Recorder) Note(ctx context.Context, environment string, record evidence.Record) (evidence.Head, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, at, err := r.write(ctx, environment, record)
	return at, err
}

// KeepHead keeps the head of a chain, unless this process has kept it already.
func (r *Recorder) KeepHead(ctx context.Context, environment, uid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.chain(ctx, environment, uid)
	if err != nil || c.kept == c.head {
		return err
	}
	return r.keep(ctx, environment, uid, c)
}

// Delivered returns the newest records of a chain of releases, in their order. They go up to its end. Those that
// the store has no more are left out.
func (r *Recorder) Delivered(ctx context.Context, environment, uid string) ([]evidence.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.chain(ctx, environment, uid)
	if err != nil {
		return nil, err
	}
	return slices.Clone(c.delivered), nil
}

// ReadBefore reads the records of a chain before a sequence, in their order, without those that the store has
// no more.
func (r *Recorder) ReadBefore(ctx context.Context, uid string, before int64) ([]evidence.Record, error) {
	var records []evidence.Record
	for sequence := int64(1); sequence < before; sequence++ {
		sealed, err := r.read(ctx, evidence.Name(uid, sequence))
		switch {
		case errors.Is(err, evidence.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			records = append(records, sealed.Record)
		}
	}
	return records, nil
}

// unkept returns the heads of a chain of which the last one is still to be kept, if there is one.
func (r *Recorder) unkept(uid string) []evidence.Head {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.chains[uid]; c != nil && c.kept != c.head {
		return c.left()
	}
	return nil
}

// left returns the heads that records have left since a head was kept, in their order.
func (c *chain) left() []evidence.Head {
	var left []evidence.Head
	for _, e := range c.order {
		if e.at.Sequence > c.kept.Sequence && e.at.Sequence < c.head.Sequence {
			left = append(left, e.at)
		}
	}
	return append(left, c.head)
}

// noteKept notes that a head is kept.
func (r *Recorder) noteKept(uid string, head evidence.Head) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.chains[uid]; c != nil && c.kept.Sequence < head.Sequence {
		c.kept = head
	}
}

// write writes a record, unless the chain has one of the same event.
func (r *Recorder) write(ctx context.Context, environment string, record evidence.Record) (*chain, evidence.Head, error) {
	record.Builder = r.Builder
	c, err := r.chain(ctx, environment, record.Chain.UID)
	if err != nil {
		return nil, evidence.Head{}, err
	}
	if at, told := c.told[record.ID()]; told {
		return c, at, nil
	}
	sealed, err := r.Writer.Append(ctx, c.head, record)
	if err != nil {
		// What stands there now is not known; it is read again before the next one.
		delete(r.chains, record.Chain.UID)
		return nil, evidence.Head{}, fmt.Errorf("recording %s: %w", record.ID(), err)
	}
	c.add(sealed)
	return c, sealed.Head(), nil
}

// add moves the head on, and forgets what is older than anybody would look for.
func (c *chain) add(s evidence.Sealed) {
	c.head = s.Head()
	c.note(s)
}

func (c *chain) note(s evidence.Sealed) {
	if earlier := s.Record.Withdraws; earlier != nil { // the event may be told again
		maps.DeleteFunc(c.told, func(_ string, at evidence.Head) bool { return at == *earlier })
		delete(c.decided, *earlier)
	}
	now := event{s.Record.ID(), s.Head()}
	if s.Record.Decides() {
		c.decided[now.at] = s.Record.Plan.UID
	}
	c.told[now.id] = now.at
	c.order = append(c.order, now)
	c.signed[s.KeyID] = true
	if s.Record.Delivery != nil {
		c.delivered = append(c.delivered, s.Record)
		c.delivered = c.delivered[max(0, len(c.delivered)-lookBack):]
	}
	if len(c.order) > lookBack {
		oldest := c.order[0]
		if c.order = c.order[1:]; c.told[oldest.id] == oldest.at {
			delete(c.told, oldest.id)
		}
		delete(c.decided, oldest.at)
	}
}

// keep stores the head. A record whose head is not kept is named nowhere yet: it could
// be cut off unseen.
func (r *Recorder) keep(ctx context.Context, environment, uid string, c *chain) error {
	if err := r.Heads.Keep(ctx, environment, uid, c.left()...); err != nil {
		if conflict := (*evidence.ConflictError)(nil); errors.As(err, &conflict) {
			delete(r.chains, uid) // no record goes on from this one: the chain is read again
		}
		return fmt.Errorf("keeping the head of evidence %s: %w", uid, err)
	}
	c.kept = c.head
	return nil
}

// chain is what is known of a chain. One that this process has not met is read
// around its head, and after it: others may have written.
func (r *Recorder) chain(ctx context.Context, environment, uid string) (*chain, error) {
	if c := r.chains[uid]; c != nil {
		return c, nil
	}
	head, err := r.Heads.Head(ctx, environment, uid)
	if err != nil {
		return nil, err
	}
	c := &chain{head: head, kept: head, told: map[string]evidence.Head{}, signed: map[string]bool{}, decided: map[evidence.Head]string{}}
	for sequence := max(1, head.Sequence-lookBack+1); sequence <= head.Sequence; sequence++ {
		sealed, err := r.read(ctx, evidence.Name(uid, sequence))
		if errors.Is(err, evidence.ErrNotFound) {
			continue // moved away by retention; verifying says so
		}
		if err != nil {
			return nil, err
		}
		c.note(sealed)
	}
	tail, err := r.catchUp(ctx, uid, c)
	if err != nil {
		return nil, err
	}
	if err := r.succeed(ctx, environment, uid, c, tail); err != nil {
		return nil, err
	}
	if r.chains == nil {
		r.chains = map[string]*chain{}
	}
	r.chains[uid] = c
	return c, nil
}

func (r *Recorder) read(ctx context.Context, name string) (evidence.Sealed, error) {
	data, err := r.Writer.Store.Read(ctx, name)
	if err != nil {
		return evidence.Sealed{}, fmt.Errorf("reading evidence %s: %w", name, err)
	}
	sealed, err := evidence.Open(r.Writer.Keys, data)
	if err != nil {
		return evidence.Sealed{}, fmt.Errorf("reading evidence %s: %w", name, err)
	}
	return sealed, nil
}
