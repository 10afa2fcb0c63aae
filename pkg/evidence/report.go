// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"slices"
)

// ProblemKind says what is wrong.
type ProblemKind string

// What [Verify] finds.
const (
	// ProblemDamaged: cut off, altered, or no record at all.
	ProblemDamaged ProblemKind = "Damaged"
	// ProblemUnknownKey: signed by a key that is not among those given.
	ProblemUnknownKey ProblemKind = "UnknownKey"
	// ProblemBadSignature: the key it names did not sign it.
	ProblemBadSignature ProblemKind = "BadSignature"
	// ProblemWrongType: signed as something else.
	ProblemWrongType ProblemKind = "WrongType"
	// ProblemMisplaced: a good record under another one's name.
	ProblemMisplaced ProblemKind = "Misplaced"
	// ProblemForeign: something in the store that is not named as a record or a body.
	ProblemForeign ProblemKind = "Foreign"
	// ProblemGap: records are missing before this one.
	ProblemGap ProblemKind = "Gap"
	// ProblemBrokenLink: it does not go on from the record before it.
	ProblemBrokenLink ProblemKind = "BrokenLink"
	// ProblemKeyOutOfRange: a good signature of a key that may not sign there.
	ProblemKeyOutOfRange ProblemKind = "KeyOutOfRange"
	// ProblemRepeated: the event has been told before in the chain.
	ProblemRepeated ProblemKind = "Repeated"
	// ProblemUnfounded: it withdraws a record that is not the decision that it names.
	ProblemUnfounded ProblemKind = "Unfounded"
	// ProblemCutOff: the chain ends before the head that was given.
	ProblemCutOff ProblemKind = "CutOff"
	// ProblemOtherHead: the record at the head that was given is another one.
	ProblemOtherHead ProblemKind = "OtherHead"
	// ProblemRewritten: another record stood there when a checkpoint was noted.
	ProblemRewritten ProblemKind = "Rewritten"
	// ProblemNotStored: a plan's status names a record that the store lacks.
	ProblemNotStored ProblemKind = "NotStored"
	// ProblemNotInStatus: the store has a record that its plan's status lacks.
	ProblemNotInStatus ProblemKind = "NotInStatus"
	// ProblemBodyMissing: a record names a body that the store lacks.
	ProblemBodyMissing ProblemKind = "BodyMissing"
	// ProblemBodyMismatch: a body has another digest than its name says.
	ProblemBodyMismatch ProblemKind = "BodyMismatch"
)

// What [Join] finds.
const (
	// ProblemWriteWithoutEvidence: a write that no record tells of.
	ProblemWriteWithoutEvidence ProblemKind = "WriteWithoutEvidence"
	// ProblemEvidenceWithoutWrite: a record of a write that did not take place.
	ProblemEvidenceWithoutWrite ProblemKind = "EvidenceWithoutWrite"
	// ProblemSeveralWrites: more than one write in one step.
	ProblemSeveralWrites ProblemKind = "SeveralWrites"
	// ProblemMismatch: the record tells of another object than the write.
	ProblemMismatch ProblemKind = "Mismatch"
	// ProblemAuditLevel: the audit log has no body for the write, so it cannot
	// be joined to anything.
	ProblemAuditLevel ProblemKind = "AuditLevel"
	// ProblemAuditDamaged: lines of the audit log cannot be read.
	ProblemAuditDamaged ProblemKind = "AuditDamaged"
)

// Problem is one thing that is wrong, in a sentence.
type Problem struct {
	Kind ProblemKind `json:"kind"`
	// Chain and Sequence of the record, Name of what is in the store; empty
	// where there is none.
	Chain    string `json:"chain,omitempty"`
	Sequence int64  `json:"sequence,omitempty"`
	Name     string `json:"name,omitempty"`
	// AuditID of the write in the audit log.
	AuditID string `json:"auditID,omitempty"`
	Text    string `json:"text"`
}

func (p Problem) String() string {
	at := cmp.Or(p.Name, p.AuditID, p.Chain)
	if at == "" {
		return p.Text
	}
	return at + ": " + p.Text
}

// KeySpan says which records in a row one key signed.
type KeySpan struct {
	KeyID string `json:"keyID"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
}

// Withdrawal says which record tells that another one is of a decision that was never
// stored.
type Withdrawal struct {
	Sequence int64 `json:"sequence"`
	By       int64 `json:"by"`
}

// ChainReport is what one chain holds. Its records are counted if they are good.
type ChainReport struct {
	UID     string    `json:"uid"`
	Records int       `json:"records"`
	Last    Head      `json:"last"`
	Keys    []KeySpan `json:"keys,omitempty"`
	// Withdrawn are records of decisions that were never stored.
	Withdrawn []Withdrawal `json:"withdrawn,omitempty"`
	// Ahead counts the records after the head that was given: one is left by a
	// writer that died before it kept the head, and is caught up with.
	Ahead int64 `json:"ahead,omitempty"`
	// Bodies counts the bodies beside the chain whose content has the digest of their name.
	Bodies int `json:"bodies,omitempty"`
}

// Report is what verifying found.
type Report struct {
	Chains   []ChainReport `json:"chains"`
	Problems []Problem     `json:"problems"`
}

// OK says that nothing is wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// First problem: that of the lowest number in the first chain that has one.
func (r *Report) First() (Problem, bool) {
	if r.OK() {
		return Problem{}, false
	}
	return r.Problems[0], true
}

func (r *Report) add(p Problem) { r.Problems = append(r.Problems, p) }

func (r *Report) sort() {
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Chain, b.Chain), cmp.Compare(a.Sequence, b.Sequence))
	})
	slices.SortFunc(r.Chains, func(a, b ChainReport) int { return cmp.Compare(a.UID, b.UID) })
}
