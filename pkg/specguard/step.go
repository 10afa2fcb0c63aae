// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// ErrBodyNeeded is returned by Step when the authorized body decides and
// State.Body is nil: load it from the BaselineRevision and step again.
var ErrBodyNeeded = errors.New("the authorized body is needed")

// StampSource says what writes the writer stamp.
type StampSource uint8

const (
	// StampInProcess is a MutatingAdmissionPolicy inside the API server, which
	// overwrites forgeries at every write. The stamp proves the writer, as far as
	// Input.Stamps says that the policy was in force.
	StampInProcess StampSource = iota
	// StampWebhook is the mutating webhook, where there is no such policy. While
	// it is away anybody can write the annotation, so a stamp proves its writer
	// only together with the record of the same write by the same user. During a
	// switch a policy stamps beside the webhook: where Input.Stamps says so, its
	// stamp needs no record.
	StampWebhook
)

// Config is what holds for the whole installation.
type Config struct {
	// Key of the digests of values; secret, and the same across restarts.
	Key   []byte
	Stamp StampSource
	// Grace is how long the record of a write is waited for, at most 500 ms; 0 waits for
	// nothing. The record that proves a stamp of a trusted user is waited for longer.
	Grace time.Duration
}

// Input is one observation and all that it is judged by.
type Input struct {
	State       State
	Observation Observation
	// Records of this object's writes that are not consumed yet, in any order.
	Records []WriteRecord
	// RecordsHealthy says that the reader of records works and is not behind.
	RecordsHealthy bool
	Rules          Rules
	// Accept is spec.accept, nil when it is not set.
	Accept *v1alpha1.AcceptRequest
	// BaselinesSince is when the kind of Baselines was made in this cluster. All
	// Baselines of before are lost, so a guard that is older has lost what it had
	// authorized, and what is there now is not imported a second time. Needed when
	// Imports says so; zero means that nothing was lost.
	BaselinesSince time.Time
	// Stamps says what the writer stamp proves.
	Stamps Stamps
	// Scale says whether the kind has /scale, as far as discovery answered.
	Scale ScaleSubresource
	// BodyLost says why the authorized body will never be read again; empty when
	// it can be. Then nothing can be compared, and only an accept helps.
	BodyLost string
	// Former are the authorized bodies of before; Step asks for them by ErrFormerNeeded.
	Former Former
	// Released is what the run of a release may have left in the object; nil if no run wrote it.
	Released *Released
	// Applied is the configuration that kubectl apply kept; Step asks for it by
	// ErrAppliedNeeded.
	Applied AppliedConfig
	// EncodedSize measures a body as a BaselineRevision holds it, in bytes; nil
	// measures the body as it is.
	EncodedSize func(body []byte) int
	Now         time.Time
	Config      Config
}

// Result is what follows from an Input.
type Result struct {
	State   State
	Effects []Effect
	// Consumed are indices into Input.Records that need not be given again.
	Consumed []int
}

// step is the work on one Input.
type step struct {
	in  Input
	gvk canon.GVK
	// before is the state that came in, st the one that is becoming.
	before, st State
	effects    []Effect
	consumed   map[int]struct{}
	retry      time.Duration

	obs  *Present
	doc  *canon.Document // what is observed
	body []byte          // its canonical form
	full canon.Hash
	// want is the authorized body; nil while none is in force.
	want *canon.Document
	// kept is the newest authorized state whose body is kept; st.Authorized is
	// another one while st.Oversized is set.
	kept *v1alpha1.AuthorizedState
	// parts are the differences from it, taken apart for the expectations.
	parts   []diff.Change
	written []writtenChange
	// maker is who created the object, when that is what is judged.
	maker *v1alpha1.Actor
	// acrossGap: what happened since it was last seen was not watched.
	acrossGap bool
	// release is the run that authorizes the present state; nil if none does.
	release *v1alpha1.AuthorizedRelease
}

// writtenChange is a change of the write at hand, with its judgment.
type writtenChange struct {
	diff.Change
	actor v1alpha1.Actor
	mask  string // name of the rule that masks it, empty if none
	// authorized changes move the authorized body, as far as they have a place.
	authorized bool
	// withheld changes would be, but for the drift that they wrote over.
	withheld bool
	// late: not a write of this step, but one that is only now explained.
	late bool
}

// Step judges one observation: the authorized state moves only by the paths of
// a proven write of somebody trusted, or by an accept. Rules and reasons are in
// docs/designs/0002-attribution.md. The error is ErrBodyNeeded, ErrFormerNeeded or
// ErrAppliedNeeded, or says that a body cannot be made; the state then stays as it was.
func Step(in Input) (Result, error) {
	s := &step{
		in: in, gvk: in.State.gvk(), before: in.State, st: in.State.clone(),
		consumed: map[int]struct{}{},
	}
	s.st.BodyLost, s.kept = false, s.st.Authorized
	var err error
	switch o := in.Observation.(type) {
	case Present:
		s.obs = &o
		if err = s.present(); err == nil {
			s.rememberSelection(o.Labels)
		}
	case Absent:
		s.absent(&o)
		if s.st.Selection == nil {
			s.rememberSelection(lastLabels(s.before.Observed))
		}
	case Unknown:
		s.unknown(o.Why)
	default:
		s.unknown("nothing was observed")
	}
	switch {
	case err != nil:
		return Result{State: in.State}, err
	case s.retry > 0:
		return Result{State: in.State, Effects: []Effect{Retry{After: s.retry}}}, nil
	}
	s.leaveOversized()
	r := Result{State: s.st, Effects: s.effects}
	for i := range s.consumed {
		r.Consumed = append(r.Consumed, i)
	}
	slices.Sort(r.Consumed)
	return r, nil
}

// NeedsBody tells whether Step will need State.Body. When it need not be
// loaded, the object is what it was when it was last found in sync.
func NeedsBody(st State, o Observation, rules Rules, accept *v1alpha1.AcceptRequest) bool {
	p, ok := o.(Present)
	if !ok || !st.authorizes() || st.Body != nil || rules.Empty() {
		return false
	}
	if accept != nil || st.Oversized != nil || st.FindingsTotal > 0 || len(st.Masks) > 0 || st.Observed.UID != p.UID || st.Observed.Hash != st.Authorized.Hash {
		return true
	}
	doc, err := canon.Parse(p.Body, st.gvk())
	if err != nil {
		return true
	}
	defer doc.Release()
	if p.Prev != nil && string(doc.Hash()) != st.Observed.FullHash { // somebody made a benign change: say who
		return true
	}
	return string(doc.Hash(rules.Excluded()...)) != st.Authorized.Hash
}

// unknown changes nothing but the state: no data is never a finding.
func (s *step) unknown(why string) {
	if s.st.Drift != v1alpha1.StateUnknown {
		s.event(EventWarning, ReasonUnreadable, "the object cannot be read, the last findings stand: %s", why)
	}
	s.st.Drift = v1alpha1.StateUnknown
}

// withoutDecision is for an object of which nothing is authorized, while a guard that
// would select the object does not compile: whether the guard would import the object,
// or trust its creator, is not known.
func (s *step) withoutDecision(guard string) {
	if s.st.Drift != v1alpha1.StateUnknown {
		s.event(EventWarning, ReasonUnreadable, "no object is imported or authorized while %s does not compile", guard)
	}
	s.st.Drift = v1alpha1.StateUnknown
}

func (s *step) present() error {
	if s.in.Rules.Empty() { // suspended or no longer guarded: nothing is judged
		return nil
	}
	doc, err := canon.Parse(s.obs.Body, s.gvk)
	if err != nil {
		s.unknown(err.Error())
		return nil
	}
	s.doc, s.full, s.body = doc, doc.Hash(), doc.AppendCanonical(nil)
	if s.unchangedInSync() {
		s.concludeUnchanged()
		return nil
	}
	if judged, err := s.findAuthorized(); judged || err != nil {
		return err
	}
	switch {
	case s.forgotten():
		return s.withoutBody("Baselines are kept only since after the guard was made, all earlier ones are lost")
	case !s.st.authorizes() && s.in.Rules.FindInertGuard() != "":
		s.withoutDecision(s.in.Rules.FindInertGuard())
		return nil
	}
	if err := s.judgeContent(); err != nil || s.retry > 0 {
		return err
	}
	return s.finish()
}

// judgeContent judges what a release, or any other writer, has made of the object.
func (s *step) judgeContent() error {
	if released, err := s.takeReleased(); released || err != nil || s.retry > 0 {
		return err
	}
	switch {
	case !s.st.authorizes():
		return s.withoutAuthority()
	case s.st.Observed.UID != "" && s.st.Observed.UID != s.obs.UID:
		return s.replaced()
	default:
		return s.transition()
	}
}

// finish compares, honors an accept, and draws the conclusions.
func (s *step) finish() error {
	if s.st.authorizes() {
		s.explainLate()
		s.compare()
		if err := s.adoptApplied(); err != nil {
			return err
		}
	}
	hash, err := s.observedHash()
	if err != nil {
		return err
	}
	if s.in.Accept != nil {
		if hash, err = s.honorAccept(hash); err != nil {
			return err
		}
	}
	s.conclude(hash)
	return nil
}

// unchangedInSync is the case of nearly every resync: no body is needed.
func (s *step) unchangedInSync() bool {
	return s.st.authorizes() && s.st.Body == nil && !NeedsBody(s.st, *s.obs, s.in.Rules, s.in.Accept)
}

// findAuthorized takes up the authorized body. Where a body was authorized and is
// not at hand, it judges the object without one.
func (s *step) findAuthorized() (judged bool, err error) {
	if s.st.authorizes() {
		lost, err := s.loadAuthorized()
		switch {
		case err != nil:
			return false, err
		case lost != "":
			return true, s.withoutBody(lost)
		}
	}
	if s.st.Oversized == nil {
		return false, nil
	}
	if found, err := s.resumeOversized(); found || err != nil {
		return false, err
	}
	return true, s.withoutOversized()
}

// loadAuthorized reads the authorized body and back-fills its hash, which
// changes with the ignore rules and with the version of the hash: never drift.
// lost says why there is no such body any more.
func (s *step) loadAuthorized() (lost string, err error) {
	switch {
	case s.in.BodyLost != "":
		return s.in.BodyLost, nil
	case s.st.Body == nil:
		return "", ErrBodyNeeded
	}
	want, err := canon.Parse(s.st.Body, s.gvk)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // what cannot be read is lost, and trying again does not help
	}
	s.want = want
	if err := s.adoptNulls(); err != nil {
		return "", err
	}
	if hash := s.want.Hash(s.in.Rules.Excluded()...); string(hash) != s.st.Authorized.Hash {
		s.st.Authorized.Hash = string(hash)
		s.effects = append(s.effects, BackfillHash{Hash: hash})
	}
	return "", nil
}

// observedHash is the guarded hash of what is observed, see ObservedHash.
func (s *step) observedHash() (canon.Hash, error) {
	if !s.st.authorizes() {
		return s.doc.Hash(s.in.Rules.Excluded()...), nil
	}
	if s.st.FindingsTotal == 0 {
		return canon.Hash(s.st.Authorized.Hash), nil
	}
	return ObservedHash(s.body, s.st.Body, s.gvk, s.in.Rules, s.st.Masks)
}

// authorize makes a body the authorized one.
func (s *step) authorize(body []byte, by string, origin v1alpha1.Origin) error {
	want, err := canon.Parse(body, s.gvk)
	if err != nil {
		return fmt.Errorf("reading the new authorized body of %s: %w", s.st.Name, err)
	}
	number := int64(1)
	if s.st.Authorized != nil {
		number = s.st.Authorized.Number + 1
	}
	s.want, s.st.Body = want, want.AppendCanonical(nil)
	hash := want.Hash(s.in.Rules.Excluded()...)
	s.st.RetiredAt = time.Time{}
	if size := s.encodedSize(s.st.Body); size > v1alpha1.MaxBodyBytes {
		s.keepHash(hash, size, by, origin)
		return nil
	}
	s.st.Oversized = nil
	s.st.Authorized = &v1alpha1.AuthorizedState{
		UID: s.obs.UID, Hash: string(hash), Number: number, By: by, Origin: origin,
		Revision: RevisionName(s.st.Name, number), AuthorizationTime: *timeTo(s.in.Now), Release: s.release,
	}
	s.kept = s.st.Authorized
	authorized := AuthorizeRevision{
		Number: number, Hash: hash, Body: s.st.Body, By: by, At: s.in.Now, Origin: origin, UID: s.obs.UID, Release: s.release,
	}
	if s.observes(hash) {
		authorized.Managers = s.obs.Managers
	}
	s.effects = append(s.effects, authorized)
	return nil
}

// observes says that the observed object is as the authorized body says, but for masks.
func (s *step) observes(hash canon.Hash) bool {
	switch {
	case s.doc == nil:
		return false
	case s.doc.Hash(s.in.Rules.Excluded()...) == hash:
		return true
	case len(s.st.Masks) == 0:
		return false
	}
	observed, err := ObservedHash(s.body, s.st.Body, s.gvk, s.in.Rules, s.st.Masks)
	return err == nil && observed == hash
}

func (s *step) event(t EventType, reason EventReason, format string, args ...any) {
	s.effects = append(s.effects, Event{Type: t, Reason: reason, Message: diff.TruncateText(diff.Printable(fmt.Sprintf(format, args...)), maxMessageBytes)})
}
