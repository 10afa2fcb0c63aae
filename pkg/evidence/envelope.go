// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// MaxEnvelope bounds what is read as one record: the payload in base64, its
// signatures, and room.
const MaxEnvelope = 32 << 10

// Fault says what is wrong with an envelope.
type Fault string

// The faults of an envelope.
const (
	// FaultMalformed: cut off, altered, or nothing that this package writes.
	FaultMalformed Fault = "Malformed"
	// FaultUnknownKey: signed, but by no key that is known here.
	FaultUnknownKey Fault = "UnknownKey"
	// FaultBadSignature: a known key is named, and it did not sign these bytes.
	FaultBadSignature Fault = "BadSignature"
	// FaultWrongType: properly signed, and something else than a record.
	FaultWrongType Fault = "WrongType"
)

// EnvelopeError is why an envelope is not believed.
type EnvelopeError struct {
	Fault Fault
	Err   error
}

func (e *EnvelopeError) Error() string { return fmt.Sprintf("%s: %v", e.Fault, e.Err) }

// Unwrap gives the cause.
func (e *EnvelopeError) Unwrap() error { return e.Err }

func envelopeError(fault Fault, err error) error { return &EnvelopeError{Fault: fault, Err: err} }

// Sealed is a record as it is kept.
type Sealed struct {
	Record Record
	// Name in the store.
	Name string
	// Digest of the payload, by which the next record and the plan's status name it.
	Digest string
	// KeyID of the key that signed it.
	KeyID string
	// Payload that was signed, and Envelope, which holds it.
	Payload  []byte
	Envelope []byte
}

// envelope of the Dead Simple Signing Envelope specification, version 1. The
// reference library brings an SSH implementation along, accepts two alphabets of
// base64 and prints to standard output; what is needed of it is thirty lines,
// and a test has it verify ours.
type envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"`
	Sig   []byte `json:"sig"`
}

// preAuth is DSSE's pre-authentication encoding: what is really signed. The
// lengths bind the type to the payload, so neither can be read as part of the other.
func preAuth(payloadType string, payload []byte) []byte {
	b := append([]byte("DSSEv1 "), strconv.Itoa(len(payloadType))...)
	b = append(append(b, ' '), payloadType...)
	b = strconv.AppendInt(append(b, ' '), int64(len(payload)), 10)
	return append(append(b, ' '), payload...)
}

// Seal signs a record that has its place in the chain.
func Seal(signer Signer, r Record) (Sealed, error) {
	payload, err := encode(r)
	if err != nil {
		return Sealed{}, fmt.Errorf("sealing record: %w", err)
	}
	sig, err := signer.Sign(preAuth(PayloadType, payload))
	if err != nil {
		return Sealed{}, fmt.Errorf("sealing record: signing with key %s: %w", signer.KeyID(), err)
	}
	data, err := marshal(envelope{
		PayloadType: PayloadType, Payload: payload,
		Signatures: []signature{{KeyID: signer.KeyID(), Sig: sig}},
	})
	if err != nil {
		return Sealed{}, fmt.Errorf("sealing record: %w", err)
	}
	return Sealed{
		Record: r.Normalized(), Name: Name(r.Chain.UID, r.Chain.Sequence),
		Digest: Digest(payload), KeyID: signer.KeyID(), Payload: payload, Envelope: data,
	}, nil
}

// Open checks the signature, then reads the bytes that were signed, if they are
// of the type of a record. Errors are of type *EnvelopeError.
func Open(keys *Keyring, data []byte) (Sealed, error) {
	e, err := parseEnvelope(data)
	if err != nil {
		return Sealed{}, err
	}
	keyID, err := keys.verify(e)
	if err != nil {
		return Sealed{}, err
	}
	// The type is signed too. It is compared after the signature, so that what
	// is reported as a wrong type was really signed as one.
	if e.PayloadType != PayloadType {
		return Sealed{}, envelopeError(FaultWrongType, fmt.Errorf("payload of type %.120q", e.PayloadType))
	}
	r, err := decode(e.Payload)
	if err != nil {
		return Sealed{}, err
	}
	return Sealed{
		Record: r, Name: Name(r.Chain.UID, r.Chain.Sequence),
		Digest: Digest(e.Payload), KeyID: keyID, Payload: e.Payload, Envelope: data,
	}, nil
}

// parseEnvelope takes only the bytes that this package would have written for
// the same content: otherwise spaces, other spellings of base64 and unknown
// fields could be changed unseen, since no signature covers them.
func parseEnvelope(data []byte) (envelope, error) {
	var e envelope
	if len(data) > MaxEnvelope {
		return e, envelopeError(FaultMalformed, fmt.Errorf("%d bytes, at most %d", len(data), MaxEnvelope))
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, envelopeError(FaultMalformed, fmt.Errorf("decoding envelope: %w", err))
	}
	again, err := marshal(e)
	if err != nil {
		return e, envelopeError(FaultMalformed, err)
	}
	if !bytes.Equal(again, data) {
		return e, envelopeError(FaultMalformed, errors.New("the envelope is not in its one canonical form"))
	}
	return e, nil
}
