// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// InvalidError says which field keeps a record from being written or read.
type InvalidError struct {
	Field   string
	Problem string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("record: %s: %s", e.Field, e.Problem) }

// Bounds in bytes: those of Kubernetes for its names, and 256 for what an
// authenticator may call a user.
const (
	maxName    = 253
	maxUID     = 64
	maxUser    = 256
	maxVersion = 64
)

// hashAbsent is the hash of an object that does not exist; it is
// specguard.HashAbsent, repeated here because it is part of the format.
const hashAbsent = "absent"

var (
	uidPattern    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
	wordPattern   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	hashPattern   = regexp.MustCompile(`^([a-z][a-z0-9]{0,15}:)?sha256:[0-9a-f]{64}$`)
	keyPattern    = regexp.MustCompile(`^[0-9a-f]{64}$`)
	digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// Validate reports the first thing about the record that may not be, as an
// *InvalidError. A place in a chain is checked by validatePlace, since it is not
// known before the record is appended.
func (r Record) Validate() error {
	return cmp.Or(
		r.validateKind(),
		r.Subject.validate(),
		r.validateParts(),
		text("requester", r.Requester, 0, maxUser),
		text("approver", r.Approver, 0, maxUser),
		text("initiatedBy", r.InitiatedBy, 1, maxUser),
		text("correlationID", r.CorrelationID, 0, maxName),
		text("driftReportID", r.DriftReportID, 0, maxUID),
		r.validateBodies(),
		text("builder.version", r.Builder.Version, 1, maxVersion),
		optional(digestPattern, "builder.digest", r.Builder.Digest),
		notNegative("occurrence", int64(r.Occurrence)),
	)
}

// rules of a kind: what a record of it must have.
type rules struct {
	step     bool // its plan and its step
	reason   bool
	state    bool
	intent   bool // if something was written
	mayWrite bool
	key      bool // its succession, which no other kind has
	earlier  bool // the record that it withdraws, as no other kind does, and its plan
	delivery bool // its release, which no other kind has
	// assessment is what it tells of an assessment, as no other kind does.
	assessment bool
}

func rulesOf(k Kind) (rules, error) {
	switch k {
	case KindStep:
		return rules{step: true, state: true, intent: true, mayWrite: true}, nil
	case KindFence, KindStandby:
		return rules{step: true, mayWrite: true}, nil
	case KindAssessment:
		return rules{step: true, state: true, assessment: true}, nil
	case KindPlanDeferred, KindPlanCanceled, KindPlanHalted:
		return rules{reason: true}, nil
	case KindPlanCreated, KindPlanApproved, KindPlanPaused, KindPlanResumed, KindPlanFinished:
		return rules{}, nil
	case KindDecisionWithdrawn:
		return rules{earlier: true}, nil
	case KindKeySucceeded:
		return rules{key: true}, nil
	case KindReleaseDecision, KindWorkIntended, KindHistoryGap, KindHistorySetBack, KindReleaseGone:
		return rules{delivery: true}, nil
	case KindWorkEnded:
		return rules{delivery: true, state: true, mayWrite: true}, nil
	default:
		return rules{}, invalid("kind", "%q is unknown", k)
	}
}

func (r Record) validateKind() error {
	must, err := rulesOf(r.Kind)
	if err != nil {
		return err
	}
	return cmp.Or(r.validateParticulars(must), r.validateDelivery(must), r.validateEffect(must))
}

// validateParticulars checks what records of one kind alone have.
func (r Record) validateParticulars(must rules) error {
	switch {
	case must.step && (r.Plan == nil || r.Step == nil):
		return invalid("kind", "a %s needs its plan and its step", r.Kind)
	case must.key != (r.Succession != nil):
		return invalid("succession", "is that of a %s, and of no other kind", KindKeySucceeded)
	case must.assessment != (r.Assessment != nil):
		return invalid("assessment", "is that of a %s, and of no other kind", KindAssessment)
	case must.earlier != (r.Withdraws != nil):
		return invalid("withdraws", "is that of a %s, and of no other kind", KindDecisionWithdrawn)
	case must.earlier && r.Plan == nil:
		return invalid("kind", "a %s needs its plan", r.Kind)
	case must.earlier && r.Withdraws.Sequence < 1:
		return invalid("withdraws.sequence", "%d is below 1", r.Withdraws.Sequence)
	case must.earlier:
		return required(digestPattern, "withdraws.digest", r.Withdraws.Digest, maxName)
	}
	return nil
}

func (r Record) validateEffect(must rules) error {
	switch {
	case r.At.IsZero():
		return invalid("at", "is missing")
	case must.reason && r.Result.Reason == "":
		return invalid("result.reason", "is missing; a %s needs one", r.Kind)
	case must.state && r.Result.State == "":
		return invalid("result.state", "is missing")
	case !must.mayWrite && r.Wrote():
		return invalid("result.origin", "a decision does not write its subject")
	case must.intent && r.Wrote() && r.Intent == nil:
		return invalid("intent", "is missing; the executor does not write without one")
	default:
		return nil
	}
}

func (r Record) validateParts() error {
	return cmp.Or(
		r.Drift.validate(), r.Severity.validate(), r.Policy.validate(r.Chain.UID),
		r.Plan.validate(), r.Step.validate(), r.Intent.validate(), r.Result.validate(r.Delivery != nil), r.Succession.validate(), r.Assessment.validate(),
		required(uidPattern, "chain.uid", r.Chain.UID, maxUID),
	)
}

// validatePlace checks what appending fills in.
func (c Chain) validatePlace() error {
	switch {
	case c.Sequence < 1:
		return invalid("chain.sequence", "%d is below 1", c.Sequence)
	case c.Sequence == 1 && c.Previous != "":
		return invalid("chain.previous", "the first record has no record before it")
	case c.Sequence > 1 && !digestPattern.MatchString(c.Previous):
		return invalid("chain.previous", "is no digest")
	}
	return nil
}

func (s Subject) validate() error {
	return cmp.Or(
		segment("subject.apiVersion", s.APIVersion, 1, strings.Count(s.APIVersion, "/") <= 1),
		segment("subject.kind", s.Kind, 1, !strings.Contains(s.Kind, "/")),
		segment("subject.namespace", s.Namespace, 0, !strings.Contains(s.Namespace, "/")),
		segment("subject.name", s.Name, 1, !strings.Contains(s.Name, "/")),
		required(uidPattern, "subject.uid", s.UID, maxUID),
		hash("subject.hash", s.Hash),
	)
}

func (d *Drift) validate() error {
	if d == nil {
		return nil
	}
	size := 0
	for _, path := range d.Paths {
		size += len(path)
		if err := text("drift.paths", path, 0, MaxPathBytes); err != nil {
			return err
		}
	}
	switch {
	case size > MaxPathBytes:
		return invalid("drift.paths", "%d bytes, at most %d", size, MaxPathBytes)
	case d.Total < len(d.Paths):
		return invalid("drift.total", "%d is below the number of paths shown", d.Total)
	case d.Total == len(d.Paths) && d.Digest != PathsDigest(d.Paths):
		return invalid("drift.digest", "is not that of the paths")
	}
	return required(digestPattern, "drift.digest", d.Digest, maxName)
}

// maxFactors is what a score is made of, with room for two more.
const maxFactors = 7

func (s *Severity) validate() error {
	if s == nil {
		return nil
	}
	if len(s.Factors) > maxFactors {
		return invalid("severity.factors", "%d, at most %d", len(s.Factors), maxFactors)
	}
	for _, f := range s.Factors {
		if err := required(wordPattern, "severity.factors.name", f.Name, maxName); err != nil {
			return err
		}
	}
	return required(wordPattern, "severity.level", s.Level, maxName)
}

func (p *Policy) validate(chain string) error {
	if p == nil {
		return nil
	}
	if p.UID != chain {
		return invalid("policy.uid", "%q is not that of the chain, %q", p.UID, chain)
	}
	return cmp.Or(
		text("policy.name", p.Name, 1, maxName),
		required(digestPattern, "policy.digest", p.Digest, maxName),
	)
}

func (p *Plan) validate() error {
	if p == nil {
		return nil
	}
	return cmp.Or(
		text("plan.namespace", p.Namespace, 1, maxName),
		text("plan.name", p.Name, 1, maxName),
		required(uidPattern, "plan.uid", p.UID, maxUID),
		required(digestPattern, "plan.digest", p.Digest, maxName),
	)
}

func (s *Step) validate() error {
	if s == nil {
		return nil
	}
	return cmp.Or(
		notNegative("step.index", int64(s.Index)),
		required(wordPattern, "step.action", s.Action, maxName),
	)
}

func (i *Intent) validate() error {
	if i == nil {
		return nil
	}
	if i.At.IsZero() {
		return invalid("intent.at", "is missing")
	}
	return cmp.Or(
		notNegative("intent.epoch", i.Epoch),
		required(uidPattern, "intent.uid", i.UID, maxUID),
		text("intent.resourceVersion", i.ResourceVersion, 0, maxUID),
		hash("intent.preHash", i.PreHash),
		hash("intent.desiredHash", i.DesiredHash),
		optional(digestPattern, "intent.ddem002Hash", i.DDEM002Hash),
	)
}

// validate checks a result. A write to an autoscaler, which a ReleaseWork makes, leaves no hash.
func (r Result) validate(mayLackHash bool) error {
	if err := cmp.Or(
		optional(wordPattern, "result.state", r.State),
		optional(wordPattern, "result.reason", r.Reason),
		text("result.resourceVersion", r.ResourceVersion, 0, maxUID),
		optional(digestPattern, "result.ddem002Hash", r.DDEM002Hash),
	); err != nil {
		return err
	}
	switch r.Origin {
	case "":
		if r.ResourceVersion != "" || r.Hash != "" || r.DDEM002Hash != "" {
			return invalid("result.origin", "is missing; something was written")
		}
		return nil
	case OriginAPIResponse, OriginRecovered:
		if r.ResourceVersion == "" {
			return invalid("result.resourceVersion", "is missing; something was written")
		}
		if mayLackHash && r.Hash == "" {
			return nil
		}
		return hash("result.hash", r.Hash)
	default:
		return invalid("result.origin", "%q is unknown", r.Origin)
	}
}

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// text is bounded, valid UTF-8 and without control characters, so that it can be
// shown in a terminal and a log as it is.
func text(field, value string, least, most int) error {
	switch {
	case len(value) < least:
		return invalid(field, "is missing")
	case len(value) > most:
		return invalid(field, "%d bytes, at most %d", len(value), most)
	case !utf8.ValidString(value):
		return invalid(field, "is not valid UTF-8")
	case strings.ContainsFunc(value, unicode.IsControl):
		return invalid(field, "has a control character in it")
	}
	return nil
}

// segment of a subject's name; ok says that it can be told from its neighbors.
func segment(field, value string, least int, ok bool) error {
	if !ok {
		return invalid(field, "%q has too many slashes", value)
	}
	return text(field, value, least, maxName)
}

func required(pattern *regexp.Regexp, field, value string, most int) error {
	if len(value) > most || !pattern.MatchString(value) {
		return invalid(field, "%.80q is not of the form %s", value, pattern)
	}
	return nil
}

func optional(pattern *regexp.Regexp, field, value string) error {
	if value == "" {
		return nil
	}
	return required(pattern, field, value, maxName)
}

func hash(field, value string) error {
	if value == hashAbsent {
		return nil
	}
	return required(hashPattern, field, value, maxName)
}

func notNegative(field string, value int64) error {
	if value < 0 {
		return invalid(field, "%d is below 0", value)
	}
	return nil
}
