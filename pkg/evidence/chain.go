// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Head is how far a chain goes: the sequence and digest of its last record, or
// the zero value before the first. The caller keeps it in etcd.
type Head struct {
	Sequence int64  `json:"sequence"`
	Digest   string `json:"digest,omitempty"`
}

// Writer appends to chains. Keys must hold the signer's public key and, while
// records of before a rotation may still be caught up with, the one before it.
type Writer struct {
	Store  Store
	Signer Signer
	// Old are keys of before, which sign that Signer succeeds them, and no other record.
	Old  []Signer
	Keys *Keyring
}

// TakenError says that another event already stands where the record was to go,
// properly signed and linked. Somebody else wrote it, or the caller did and died before
// keeping the head: catch up, keep the head, and append again.
type TakenError struct{ There Sealed }

func (e *TakenError) Error() string {
	return fmt.Sprintf("evidence %s is taken by %s", e.There.Name, e.There.Record.ID())
}

// ConflictError says that what stands there contradicts the caller's view.
// It tells the same event differently, or goes on from another record. Nobody
// may go on before a person has looked.
type ConflictError struct {
	Name       string
	Want, Have string // digests
	Problem    string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("evidence %s: %s (%s there, %s meant)", e.Name, e.Problem, e.Have, e.Want)
}

// DamagedError says that what stands there is no record that can be believed.
type DamagedError struct {
	Name string
	Err  error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("evidence %s: %v", e.Name, e.Err) }

// Unwrap gives the cause, an *EnvelopeError.
func (e *DamagedError) Unwrap() error { return e.Err }

// Append writes r as the record after head, in the chain that r.Chain.UID names,
// and gives the new head. The same record appended again after the same head
// gives the same result. Errors that a caller decides on are *TakenError,
// *ConflictError, *DamagedError, *StoreError and *InvalidError.
func (w Writer) Append(ctx context.Context, head Head, r Record) (Sealed, error) {
	return w.append(ctx, w.Signer, head, r)
}

func (w Writer) append(ctx context.Context, signer Signer, head Head, r Record) (Sealed, error) {
	r.Chain = Chain{UID: r.Chain.UID, Sequence: head.Sequence + 1, Previous: head.Digest}
	sealed, err := Seal(signer, r)
	if err != nil {
		return Sealed{}, fmt.Errorf("appending evidence: %w", err)
	}
	err = w.Store.Create(ctx, sealed.Name, sealed.Envelope)
	if errors.Is(err, ErrExists) {
		sealed, err = w.compare(ctx, sealed)
	}
	if err != nil {
		return Sealed{}, fmt.Errorf("appending evidence: %w", err)
	}
	return sealed, nil
}

// Head after a record.
func (s Sealed) Head() Head { return Head{Sequence: s.Record.Chain.Sequence, Digest: s.Digest} }

// compare what was to be written with what is there. Records are compared, not
// bytes: the one there may be written by a version of this program that orders its fields
// otherwise. Whether another key may sign there is for CatchUp to say.
func (w Writer) compare(ctx context.Context, meant Sealed) (Sealed, error) {
	there, err := w.open(ctx, meant.Name)
	if err != nil {
		return Sealed{}, err
	}
	conflict := &ConflictError{Name: meant.Name, Want: meant.Digest, Have: there.Digest}
	switch {
	case sameRecord(there.Record, meant) && there.KeyID == meant.KeyID:
		return there, nil
	case sameRecord(there.Record, meant):
		return Sealed{}, &TakenError{There: there}
	case there.Record.Chain != meant.Record.Chain:
		conflict.Problem = "the record there goes on from another one"
		return Sealed{}, conflict
	case there.Record.ID() == meant.Record.ID():
		conflict.Problem = "the record there tells the same event differently"
		return Sealed{}, conflict
	default:
		return Sealed{}, &TakenError{There: there}
	}
}

func sameRecord(there Record, meant Sealed) bool {
	again, err := encode(there)
	return err == nil && bytes.Equal(again, meant.Payload)
}

// open reads one record and checks that it stands in its place.
func (w Writer) open(ctx context.Context, name string) (Sealed, error) {
	data, err := w.Store.Read(ctx, name)
	if err != nil {
		return Sealed{}, err
	}
	sealed, err := Open(w.Keys, data)
	if err != nil {
		return Sealed{}, &DamagedError{Name: name, Err: err}
	}
	if sealed.Name != name {
		return Sealed{}, &DamagedError{Name: name, Err: envelopeError(FaultMalformed,
			fmt.Errorf("it belongs at %s", sealed.Name))}
	}
	return sealed, nil
}
