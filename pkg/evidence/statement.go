// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Types of what is signed. A consumer must check all three.
const (
	// PayloadType of the envelope: an in-toto statement.
	PayloadType = "application/vnd.in-toto+json"
	// StatementType is version 1 of the in-toto Attestation Framework.
	StatementType = "https://in-toto.io/Statement/v1"
	// PredicateType is that of a Record of a remediation.
	PredicateType = "https://plumbline.dev/attestation/remediation/v1"
	// DeliveryPredicateType is that of a Record of a release.
	DeliveryPredicateType = "https://plumbline.dev/attestation/delivery/v1"
)

const digestPrefix = "sha256:"

// MaxPayload bounds a statement in bytes. The largest record that Validate
// passes is below it (a test writes it).
const MaxPayload = 16 << 10

// statement is the in-toto Statement layer. A fixed struct written by
// encoding/json has one order of fields and no map of more than one key, so the
// same record gives the same bytes. Nothing but a retry depends on that: the
// bytes themselves are signed and kept, and verifying never writes them again.
type statement struct {
	Type          string          `json:"_type"`
	Subject       []descriptor    `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

type descriptor struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// Digest is how a chain and a plan's status name a payload: "sha256:" and the
// SHA-256 of its bytes in hex. The signature is left out, so that a record
// signed again with another key is still the same record.
func Digest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// encode a record as the bytes to be signed.
func encode(r Record) ([]byte, error) {
	r = r.Normalized()
	if err := errors.Join(r.Validate(), r.Chain.validatePlace()); err != nil {
		return nil, err
	}
	predicate, err := marshal(r)
	if err != nil {
		return nil, err
	}
	payload, err := marshal(statement{
		Type:          StatementType,
		Subject:       []descriptor{{Name: r.Subject.String(), Digest: digestSet(r.Subject.Hash)}},
		PredicateType: r.predicateType(),
		Predicate:     predicate,
	})
	if err != nil {
		return nil, err
	}
	if len(payload) > MaxPayload {
		return nil, fmt.Errorf("encoding record: %d bytes, at most %d", len(payload), MaxPayload)
	}
	return payload, nil
}

// predicateType is that of the record's statement.
func (r Record) predicateType() string {
	if r.Delivery != nil {
		return DeliveryPredicateType
	}
	return PredicateType
}

// decode the bytes that were signed. Fields that this version does not know are
// passed over, as in-toto asks of its consumers.
func decode(payload []byte) (Record, error) {
	var s statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return Record{}, envelopeError(FaultMalformed, fmt.Errorf("decoding statement: %w", err))
	}
	if s.Type != StatementType || s.PredicateType != PredicateType && s.PredicateType != DeliveryPredicateType {
		return Record{}, envelopeError(FaultWrongType,
			fmt.Errorf("statement of type %.120q with a predicate of type %.120q", s.Type, s.PredicateType))
	}
	var r Record
	if err := json.Unmarshal(s.Predicate, &r); err != nil {
		return Record{}, envelopeError(FaultMalformed, fmt.Errorf("decoding predicate: %w", err))
	}
	if s.PredicateType != r.predicateType() {
		return Record{}, envelopeError(FaultWrongType, fmt.Errorf("the predicate of type %s has the content of another type", s.PredicateType))
	}
	if len(s.Subject) != 1 {
		return Record{}, envelopeError(FaultMalformed, fmt.Errorf("%d subjects, want one", len(s.Subject)))
	}
	subject, err := parseSubject(s.Subject[0])
	if err != nil {
		return Record{}, envelopeError(FaultMalformed, err)
	}
	r.Subject = subject
	if err := errors.Join(r.Validate(), r.Chain.validatePlace()); err != nil {
		return Record{}, envelopeError(FaultMalformed, err)
	}
	return r, nil
}

// marshal without HTML escapes and without a newline at the end: < stays < for
// those who read it with jq.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// String is the subject's name: apiVersion/kind/namespace/name#uid, with an
// empty namespace for objects of the whole cluster.
func (s Subject) String() string {
	return fmt.Sprintf("%s/%s/%s/%s#%s", s.APIVersion, s.Kind, s.Namespace, s.Name, s.UID)
}

// digestSet writes "algorithm:hex" as in-toto's algorithm → hex. "pl1:sha256" is
// a name of our own, as in-toto allows, so that nobody takes the hash for one of
// the object's bytes.
func digestSet(hash string) map[string]string {
	if i := strings.LastIndexByte(hash, ':'); i >= 0 {
		return map[string]string{hash[:i]: hash[i+1:]}
	}
	return map[string]string{hash: hash}
}

// parseSubject reads from the right, where no part may hold what divides it.
func parseSubject(d descriptor) (Subject, error) {
	var s Subject
	hash := strings.LastIndexByte(d.Name, '#')
	if hash < 0 || len(d.Digest) != 1 {
		return s, fmt.Errorf("subject %.120q: want one uid and one digest", d.Name)
	}
	parts := strings.Split(d.Name[:hash], "/")
	n := len(parts)
	if n < 4 {
		return s, fmt.Errorf("subject %.120q: want apiVersion/kind/namespace/name#uid", d.Name)
	}
	s = Subject{
		APIVersion: strings.Join(parts[:n-3], "/"), Kind: parts[n-3],
		Namespace: parts[n-2], Name: parts[n-1], UID: d.Name[hash+1:],
	}
	for algorithm, value := range d.Digest {
		s.Hash = algorithm + ":" + value
		if algorithm == hashAbsent && value == hashAbsent {
			s.Hash = hashAbsent
		}
	}
	return s, nil
}
