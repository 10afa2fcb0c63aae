// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"fmt"
	"regexp"
	"time"
)

// Delivery is what a record of a release has. The record of a change of keys in a chain of
// releases has the Environment alone.
type Delivery struct {
	// Environment whose chain it is; empty in the chain of releases that belong to none.
	Environment string   `json:"environment,omitempty"`
	Release     *Release `json:"release,omitempty"`
	// Decision of a KindReleaseDecision, Work of a KindWorkIntended or KindWorkEnded, and Range of
	// the kinds that are about lines of the history.
	Decision *Decision `json:"decision,omitempty"`
	Work     *Work     `json:"work,omitempty"`
	Range    *Range    `json:"range,omitempty"`
}

// RunNumber returns the run of the release that a record is about; 0 for a record of no run.
func (d *Delivery) RunNumber() int64 {
	switch {
	case d.Decision != nil:
		return d.Decision.Run
	case d.Work != nil:
		return d.Work.Run
	}
	return 0
}

// Release is the ABRelease that a record is about.
type Release struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Decision is a line of the history of a release.
type Decision struct {
	// Number of the line in the history, and the run that it belongs to; 0 for a line of no run.
	Number int64 `json:"number"`
	Run    int64 `json:"run,omitempty"`
	// Event is the name of what happened, as in canary.stage_started.
	Event string `json:"event"`
	// From and To are the percentages of requests that the canary had before, as far as that is
	// recorded, and has from then on.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Sequence of the split in force when the record was written.
	Sequence int64 `json:"sequence,omitempty"`
}

// Work is a ReleaseWork.
type Work struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	Run  int64  `json:"run"`
	// Number of the work in its run.
	Number    int64  `json:"number"`
	Verb      string `json:"verb"`
	Variation string `json:"variation"`
	Replicas  *int32 `json:"replicas,omitempty"`
	// ExpectedHash is that of the pod template that the work was decided on.
	ExpectedHash string `json:"expectedHash,omitempty"`
	// Target of the write, as far as it is known.
	Target *WorkTarget `json:"target,omitempty"`
	// Intent that was stored before the write; nil if there was none.
	Intent *WorkIntent `json:"intent,omitempty"`
}

// WorkTarget is the object that a work writes.
type WorkTarget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	// UID is empty of an object that is to be made.
	UID string `json:"uid,omitempty"`
}

// WorkIntent is what the executor stored that it was about to write.
type WorkIntent struct {
	// UID and ResourceVersion of the target that the write is bound to; empty for a creation.
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// TemplateHash of the pod template that the write leaves; empty of an autoscaler.
	TemplateHash string    `json:"templateHash,omitempty"`
	At           time.Time `json:"at"`
}

// Range are the lines of a history that a record is about.
type Range struct {
	// First and Last are the numbers of the lines that were lost; of a history that was set back,
	// the last number that is recorded, and the last one that the status has now; of a release
	// that is gone, the last one that is recorded, twice.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Next is the number of the line that is recorded next, after a history was set back.
	Next int64 `json:"next,omitempty"`
}

// Key names an intent among those of all works.
func (w *Work) Key() string {
	if w.Intent == nil {
		return w.UID
	}
	return fmt.Sprintf("%s@%s/%s/%s/%d", w.UID, w.Intent.UID, w.Intent.ResourceVersion, w.Intent.TemplateHash, w.Intent.At.Unix())
}

// EndKey names the end of a work that ended at a time. A work whose status is restored may end
// once more.
func EndKey(uid string, at time.Time) string { return fmt.Sprintf("%s@%d", uid, at.Unix()) }

// deliveryID names the event that a record of a release tells.
func (r Record) deliveryID() string {
	d, kind, what := r.Delivery, r.Kind, "release"
	switch {
	case d.Decision != nil:
		what = fmt.Sprint(d.Decision.Number)
	case d.Work != nil && kind == KindWorkIntended:
		what = d.Work.Key()
	case d.Work != nil:
		what = EndKey(d.Work.UID, r.At)
	case d.Range != nil:
		what = fmt.Sprintf("%d-%d", d.Range.First, d.Range.Last)
	}
	return fmt.Sprintf("release:%s/%s/%s/%d", d.Release.UID, what, kind, r.Occurrence)
}

// normalized has the times as they are after a round trip.
func (d *Delivery) normalized() *Delivery {
	if d == nil || d.Work == nil || d.Work.Intent == nil {
		return d
	}
	out, work, intent := *d, *d.Work, *d.Work.Intent
	intent.At = normalTime(intent.At)
	work.Intent, out.Work = &intent, &work
	return &out
}

var (
	eventPattern   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}(\.[a-z][a-z0-9_]{0,30}){1,3}$`)
	percentPattern = regexp.MustCompile(`^(100|[0-9]{1,2}(\.[0-9]{1,2})?)$`)
)

// validateDelivery checks that a record of a release has what its kind needs, and nothing of a plan.
func (r Record) validateDelivery(must rules) error {
	d := r.Delivery
	switch {
	case must.delivery && (d == nil || d.Release == nil):
		return invalid("delivery", "is missing; a %s needs its release", r.Kind)
	case d == nil:
		return nil
	case !must.delivery && (!must.key || d.Release != nil):
		return invalid("delivery", "is not that of a %s", r.Kind)
	case r.hasPlan():
		return invalid("delivery", "a record of a release has no fields of a plan")
	}
	return cmp.Or(
		r.validateContent(), text("delivery.environment", d.Environment, 0, maxName),
		d.Release.validate(), d.Decision.validate(), d.Work.validate(), d.Range.validate(),
	)
}

// hasPlan says whether a record has anything of a plan.
func (r Record) hasPlan() bool {
	return r.Plan != nil || r.Step != nil || r.Policy != nil || r.Intent != nil || r.Drift != nil || r.Severity != nil
}

// validateContent checks that a record of a release is about what its kind is about.
func (r Record) validateContent() error {
	d := r.Delivery
	isOfWork := r.Kind == KindWorkIntended || r.Kind == KindWorkEnded
	isOfLines := r.Kind == KindHistoryGap || r.Kind == KindHistorySetBack || r.Kind == KindReleaseGone
	switch {
	case (r.Kind == KindReleaseDecision) != (d.Decision != nil):
		return invalid("delivery.decision", "is that of a %s, and of no other kind", KindReleaseDecision)
	case isOfWork != (d.Work != nil):
		return invalid("delivery.work", "is that of a work, and of no other kind")
	case isOfLines != (d.Range != nil):
		return invalid("delivery.range", "is that of lines of a history, and of no other kind")
	case r.Kind == KindWorkIntended && d.Work.Intent == nil:
		return invalid("delivery.work.intent", "is missing")
	}
	return nil
}

func (r *Release) validate() error {
	if r == nil {
		return nil
	}
	return cmp.Or(
		text("delivery.release.namespace", r.Namespace, 1, maxName),
		text("delivery.release.name", r.Name, 1, maxName),
		required(uidPattern, "delivery.release.uid", r.UID, maxUID),
	)
}

func (d *Decision) validate() error {
	if d == nil {
		return nil
	}
	if d.Number < 1 {
		return invalid("delivery.decision.number", "%d is below 1", d.Number)
	}
	return cmp.Or(
		notNegative("delivery.decision.run", d.Run),
		required(eventPattern, "delivery.decision.event", d.Event, maxName),
		optional(percentPattern, "delivery.decision.from", d.From),
		optional(percentPattern, "delivery.decision.to", d.To),
		notNegative("delivery.decision.sequence", d.Sequence),
	)
}

func (w *Work) validate() error {
	if w == nil {
		return nil
	}
	if w.Replicas != nil && *w.Replicas < 0 {
		return invalid("delivery.work.replicas", "%d is below 0", *w.Replicas)
	}
	return cmp.Or(
		text("delivery.work.name", w.Name, 1, maxName),
		required(uidPattern, "delivery.work.uid", w.UID, maxUID),
		notNegative("delivery.work.run", w.Run),
		notNegative("delivery.work.number", w.Number),
		required(wordPattern, "delivery.work.verb", w.Verb, maxName),
		text("delivery.work.variation", w.Variation, 1, maxName),
		optional(hashPattern, "delivery.work.expectedHash", w.ExpectedHash),
		w.Target.validate(), w.Intent.validate(),
	)
}

func (t *WorkTarget) validate() error {
	if t == nil {
		return nil
	}
	return cmp.Or(
		text("delivery.work.target.apiVersion", t.APIVersion, 1, maxName),
		required(wordPattern, "delivery.work.target.kind", t.Kind, maxName),
		text("delivery.work.target.name", t.Name, 1, maxName),
		optional(uidPattern, "delivery.work.target.uid", t.UID),
	)
}

func (i *WorkIntent) validate() error {
	if i == nil {
		return nil
	}
	if i.At.IsZero() {
		return invalid("delivery.work.intent.at", "is missing")
	}
	return cmp.Or(
		optional(uidPattern, "delivery.work.intent.uid", i.UID),
		text("delivery.work.intent.resourceVersion", i.ResourceVersion, 0, maxUID),
		optional(hashPattern, "delivery.work.intent.templateHash", i.TemplateHash),
	)
}

func (r *Range) validate() error {
	if r == nil {
		return nil
	}
	return cmp.Or(
		notNegative("delivery.range.first", r.First),
		notNegative("delivery.range.last", r.Last),
		notNegative("delivery.range.next", r.Next),
	)
}
