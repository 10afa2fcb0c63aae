// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"errors"
	"fmt"
	"time"
)

// chainWalk is what is known of a chain up to where it has been read.
type chainWalk struct {
	report ChainReport
	bodies bodyWalk
	// next is the sequence that should come, previous the digest that it should
	// name. linked is false when the record before could not be read, and so
	// nothing can be said about the link.
	next     int64
	previous string
	linked   bool
	atHead   string           // digest of the record at the head that was given
	events   map[string]int64 // sequence of each event told
	// gone counts how often a release was gone, by its uid: one that is restored may tell its events again.
	gone map[string]int
	keys *signing
	// good are the records that may be withdrawn, as far as that, by their sequence.
	good map[int64]told
}

// told is what a withdrawal has to name.
type told struct {
	digest, id string
	plan       string // uid; empty for what is no decision about a plan
}

// judge one record. A bad one is reported once: the record after it is compared
// with its payload if that can be read at all, so that one damaged file does not
// make the whole rest of the chain look bad.
func (v *verifier) judge(name string, sequence int64, data []byte) {
	c := v.chain
	if sequence > c.next {
		v.report.add(Problem{
			Kind: ProblemGap, Chain: c.report.UID, Sequence: c.next, Name: Name(c.report.UID, c.next),
			Text: gapText(c.next, sequence),
		})
		c.linked = false
		c.keys.lose()
	}
	digest, readable := payloadDigest(data)
	if readable && v.options.Heads[c.report.UID].Sequence == sequence {
		c.atHead = digest
	}
	v.compareCheckpoint(name, sequence, digest, readable)
	if sealed, ok := v.open(name, sequence, data); ok {
		v.place(sealed)
	} else {
		c.keys.lose()
	}
	c.next, c.previous, c.linked = sequence+1, digest, readable
}

// compareCheckpoint compares a record with the one that stood there when its sequence was
// noted.
func (v *verifier) compareCheckpoint(name string, sequence int64, digest string, readable bool) {
	for _, p := range v.options.Anchors[v.chain.report.UID] {
		if readable && p.Sequence == sequence && p.Digest != digest {
			v.report.add(Problem{
				Kind: ProblemRewritten, Chain: v.chain.report.UID, Sequence: sequence, Name: name,
				Text: fmt.Sprintf("is %s, and was %s at %s, by the anchor", digest, p.Digest, p.At.Format(time.RFC3339)),
			})
		}
	}
}

func gapText(from, next int64) string {
	if from == next-1 {
		return "the record is missing"
	}
	return fmt.Sprintf("the records %d to %d are missing", from, next-1)
}

// payloadDigest of whatever the envelope holds, believed or not.
func payloadDigest(data []byte) (string, bool) {
	e, err := parseEnvelope(data)
	return Digest(e.Payload), err == nil
}

func (v *verifier) open(name string, sequence int64, data []byte) (Sealed, bool) {
	sealed, err := Open(v.keys, data)
	if err != nil {
		v.report.add(Problem{
			Kind: problemOf(err), Chain: v.chain.report.UID, Sequence: sequence, Name: name, Text: err.Error(),
		})
		return Sealed{}, false
	}
	if sealed.Name != name {
		v.report.add(Problem{
			Kind: ProblemMisplaced, Chain: v.chain.report.UID, Sequence: sequence, Name: name,
			Text: "a good record in the wrong place; it belongs at " + sealed.Name,
		})
		return Sealed{}, false
	}
	return sealed, true
}

func problemOf(err error) ProblemKind {
	var e *EnvelopeError
	if !errors.As(err, &e) {
		return ProblemDamaged
	}
	switch e.Fault {
	case FaultUnknownKey:
		return ProblemUnknownKey
	case FaultBadSignature:
		return ProblemBadSignature
	case FaultWrongType:
		return ProblemWrongType
	case FaultMalformed:
		return ProblemDamaged
	default:
		return ProblemDamaged
	}
}

// place checks a good record against those before it, and counts it.
func (v *verifier) place(s Sealed) {
	c := v.chain
	if c.linked && s.Record.Chain.Previous != c.previous {
		v.problem(ProblemBrokenLink, s, fmt.Sprintf("goes on from %s, and the record before it is %s",
			orNothing(s.Record.Chain.Previous), orNothing(c.previous)))
	}
	if wrong := c.keys.follow(s); wrong != "" {
		v.problem(ProblemKeyOutOfRange, s, wrong)
	}
	v.judgeEvent(s)
	v.withdraw(s)
	v.comparePlan(s)
	c.count(s)
	if v.options.Each != nil {
		v.options.Each(s)
	}
}

// judgeEvent reports an event that was told before.
func (v *verifier) judgeEvent(s Sealed) {
	c, id, release := v.chain, s.Record.ID(), ""
	event := id
	if d := s.Record.Delivery; d != nil && d.Release != nil {
		release = d.Release.UID
		event = fmt.Sprintf("%d:%s", c.gone[release], id)
	}
	if before, ok := c.events[event]; ok {
		v.problem(ProblemRepeated, s, fmt.Sprintf("tells of %s, as record %d does", id, before))
	} else {
		c.events[event] = s.Record.Chain.Sequence
	}
	if s.Record.Kind == KindReleaseGone {
		c.gone[release]++
	}
}

// withdraw notes which decision a record withdraws. The event may then be told again. A
// record that is missing or damaged is reported as such, and not once more here.
func (v *verifier) withdraw(s Sealed) {
	c, r := v.chain, &s.Record
	own := told{digest: s.Digest, id: r.ID()}
	if r.Decides() {
		own.plan = r.Plan.UID
	}
	c.good[r.Chain.Sequence] = own
	if r.Withdraws == nil {
		return
	}
	earlier, read := c.good[r.Withdraws.Sequence]
	switch {
	case r.Withdraws.Sequence >= r.Chain.Sequence, read && (earlier.digest != r.Withdraws.Digest || earlier.plan != r.Plan.UID):
		v.problem(ProblemUnfounded, s, fmt.Sprintf("withdraws record %d, which is no decision about plan %s, or another one", r.Withdraws.Sequence, r.Plan.Name))
	case read:
		delete(c.events, earlier.id)
		c.report.Withdrawn = append(c.report.Withdrawn, Withdrawal{Sequence: r.Withdraws.Sequence, By: r.Chain.Sequence})
	}
}

func orNothing(digest string) string {
	if digest == "" {
		return "nothing"
	}
	return digest
}

// comparePlan: the status of a plan names the records of how its steps ended, and
// no others. The verdict on a step may come into the plan at any time after the plan has ended, so
// the status that was read may lack the record of an assessment.
func (v *verifier) comparePlan(s Sealed) {
	if s.Record.Plan == nil || s.Record.Kind != KindStep && s.Record.Kind != KindAssessment {
		return
	}
	plan, ok := v.plans[s.Record.Plan.UID]
	if !ok {
		return
	}
	plan.stored[s.Digest] = true
	if !plan.listed[s.Digest] && s.Record.Kind == KindStep {
		v.problem(ProblemNotInStatus, s, fmt.Sprintf("the status of plan %s does not name this record, %s",
			s.Record.Plan.UID, s.Digest))
	}
}

func (v *verifier) problem(kind ProblemKind, s Sealed, text string) {
	v.report.add(Problem{
		Kind: kind, Chain: s.Record.Chain.UID, Sequence: s.Record.Chain.Sequence, Name: s.Name, Text: text,
	})
}

func (c *chainWalk) count(s Sealed) {
	c.bodies.name(s)
	c.report.Records++
	c.report.Last = s.Head()
	sequence := s.Record.Chain.Sequence
	if n := len(c.report.Keys); n > 0 && c.report.Keys[n-1].KeyID == s.KeyID {
		c.report.Keys[n-1].To = sequence
		return
	}
	c.report.Keys = append(c.report.Keys, KeySpan{KeyID: s.KeyID, From: sequence, To: sequence})
}
