// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Tail is the end of a chain, and which key may go on from it.
type Tail struct {
	Head
	// Key may sign the next record. It is empty where the record at the head is in the
	// store no more, and where there is none.
	Key string
	// Policy is the one that the last record names; nil where that record is not known.
	Policy *Policy
	// Delivery has the Environment if the chain is one of releases; nil otherwise.
	Delivery *Delivery
	// Undeclared is the end of a key that the signer has succeeded by its own word. The
	// caller has to declare it.
	Undeclared *KeyEnd
}

// CatchUp reads on from head and gives the records that stand after it, in
// order, with the tail that they lead to: those whose writer died, or lost its
// leadership, before it kept the head. A record that cannot be believed or does
// not link is an error; those before it are given all the same.
func (w Writer) CatchUp(ctx context.Context, chain string, head Head, ends []KeyEnd) (Tail, []Sealed, error) {
	tail, keys, err := w.begin(ctx, chain, head, ends)
	var found []Sealed
	for err == nil {
		var sealed Sealed
		sealed, err = w.follow(ctx, Name(chain, tail.Sequence+1), keys, &tail)
		if errors.Is(err, ErrNotFound) {
			return tail, found, nil
		}
		if err == nil {
			found = append(found, sealed)
		}
	}
	return tail, found, fmt.Errorf("catching up with evidence: %w", err)
}

// begin learns from the record at the head which key may go on.
func (w Writer) begin(ctx context.Context, chain string, head Head, ends []KeyEnd) (Tail, *signing, error) {
	tail, keys := Tail{Head: head}, newSigning(chain, ends)
	if head.Sequence == 0 {
		return tail, keys, nil
	}
	last, err := w.open(ctx, Name(chain, head.Sequence))
	switch {
	case errors.Is(err, ErrNotFound): // moved away by retention
		return tail, keys, nil
	case err != nil:
		return tail, keys, err
	case last.Digest != head.Digest:
		return tail, keys, &ConflictError{Name: last.Name, Want: head.Digest, Have: last.Digest, Problem: "the record at the head is another one"}
	}
	keys.follow(last)
	tail.Key = keys.next(head.Sequence)
	tail.pass(&last.Record)
	return tail, keys, nil
}

// follow reads the record after a tail, and moves the tail on.
func (w Writer) follow(ctx context.Context, name string, keys *signing, tail *Tail) (Sealed, error) {
	sealed, err := w.open(ctx, name)
	if err != nil {
		return Sealed{}, err
	}
	if sealed.Record.Chain.Previous != tail.Digest {
		return Sealed{}, &ConflictError{
			Name: name, Want: tail.Digest, Have: sealed.Record.Chain.Previous,
			Problem: "the record there goes on from another one",
		}
	}
	if err := w.mayStand(sealed, keys, tail); err != nil {
		return Sealed{}, err
	}
	tail.Head, tail.Key = sealed.Head(), keys.next(sealed.Record.Chain.Sequence)
	tail.pass(&sealed.Record)
	return sealed, nil
}

// pass notes what the last record tells of its chain.
func (t *Tail) pass(last *Record) {
	t.Policy, t.Delivery = last.Policy, nil
	if last.Delivery != nil {
		t.Delivery = &Delivery{Environment: last.Delivery.Environment}
	}
}

// mayStand judges the key of a record. Where it is not known which key signed last, the
// own keys alone may go on: a key of before could be in foreign hands.
func (w Writer) mayStand(s Sealed, keys *signing, tail *Tail) error {
	if tail.Key == "" && !w.owns(s.KeyID) {
		return &DamagedError{Name: s.Name, Err: fmt.Errorf("signed by key %s, which may begin no chain", s.KeyID)}
	}
	own := s.Record.Succession
	wrong := keys.follow(s)
	switch {
	case wrong == "":
		return nil
	case own != nil && s.KeyID == w.Signer.KeyID() && own.Predecessor == tail.Key && own.Successor == s.KeyID:
		tail.Undeclared = &KeyEnd{Chain: s.Record.Chain.UID, Key: tail.Key, Last: tail.Sequence, Successor: s.KeyID}
		return nil
	}
	return &DamagedError{Name: s.Name, Err: errors.New(wrong)}
}

func (w Writer) owns(key string) bool {
	return w.Signer.KeyID() == key || slices.ContainsFunc(w.Old, func(s Signer) bool { return s.KeyID() == key })
}

// Succeed appends the record by which the signer succeeds the key of a tail. The key of the
// tail signs that, if it is among Old; else the signer does, and the end is to be declared.
func (w Writer) Succeed(ctx context.Context, tail Tail, r Record) (Sealed, *KeyEnd, error) {
	r.Kind, r.Succession = KindKeySucceeded, &Succession{Predecessor: tail.Key, Successor: w.Signer.KeyID()}
	for _, old := range w.Old {
		if old.KeyID() == tail.Key {
			sealed, err := w.append(ctx, old, tail.Head, r)
			return sealed, nil, err
		}
	}
	sealed, err := w.append(ctx, w.Signer, tail.Head, r)
	return sealed, &KeyEnd{Chain: r.Chain.UID, Key: tail.Key, Last: tail.Sequence, Successor: w.Signer.KeyID()}, err
}
