// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// decision is what the rules say about everything that happened to one object,
// and how far it was carried out.
type decision struct {
	state specguard.State
	// last is the newest observation that was decided.
	last      observed
	revisions []specguard.AuthorizeRevision
	events    []news
	// clearAccept: the request to accept was answered.
	clearAccept bool
	// clearLift: a request to lift a quarantine was answered.
	clearLift bool
	// refusal says why the request was not honored, empty if a guard did not refuse it.
	refusal string
	remove  bool
	// settled counts the pending transitions that were decided.
	settled int
	// joined are the records that explained something.
	joined  []arrival
	records []specguard.WriteRecord
	// retry is when to try the first undecided observation again; zero when all
	// are decided.
	retry time.Duration
	// due is when something changes by time alone; zero when nothing does.
	due time.Time

	// removed says that the Baseline was deleted.
	removed bool
	// before is the status the decision started from.
	before v1alpha1.BaselineStatus
}

// decide runs the rules over each observation in order.
func (r *Reconciler) decide(ctx context.Context, s *subject) (*decision, error) {
	d := &decision{state: s.state}
	if s.baseline != nil {
		d.before = *s.baseline.Status.DeepCopy()
	}
	looks, err := s.observations()
	if err != nil {
		return nil, err
	}
	records := r.Records.of(s.uids(looks)...)
	for i, look := range looks {
		concerns, err := r.concerns(ctx, s, d, look)
		if err != nil {
			return nil, err
		}
		if !concerns {
			d.settled += look.settles
			continue
		}
		if err := r.fillBefore(ctx, s, &d.state, &look); err != nil {
			return nil, err
		}
		in, err := r.inputOf(ctx, s, d, look, i == len(looks)-1, records)
		if err != nil {
			return nil, err
		}
		result, err := r.step(ctx, s, in, d.revisions)
		if err != nil {
			return nil, err
		}
		if after, undecided := onlyRetry(result); undecided {
			d.retry = after
			return d, nil
		}
		records = d.take(s, result, look, records)
		if look.dropped > 0 {
			d.events = append(d.events, news{tellDropped(look), d.state.Observed.ResourceVersion})
		}
	}
	if s.baseline != nil {
		s.judgeLift(d)
	}
	if !d.state.RetiredAt.IsZero() && specguard.RetentionOver(d.state, r.Config.Retention, s.now) {
		d.remove = true
	}
	return d, nil
}

// inputOf gathers what an observation is judged by. newest: no later version of the object was seen.
func (r *Reconciler) inputOf(ctx context.Context, s *subject, d *decision, look observed, newest bool, records joinable) (in specguard.Input, err error) {
	in = specguard.Input{
		State: d.state, Observation: look.observation, Rules: s.rules,
		Records: records.records, RecordsHealthy: records.healthy,
		EncodedSize: encodedSize, Now: s.now, Config: r.Config.Rules, Scale: r.findScale(s, d, look),
	}
	if newest && s.baseline != nil {
		// What is accepted is what is there now, not what was there for a moment.
		in.Accept = s.baseline.Spec.Accept
	}
	if in.Stamps, err = r.stamps(ctx, s, in, newest, look); err != nil {
		return in, err
	}
	in.Released, err = r.readLeft(ctx, s, &d.state, look)
	return in, err
}

func (s *subject) observations() ([]observed, error) {
	if s.view.Unknown != nil {
		return []observed{{observation: specguard.Unknown{Why: s.view.Unknown.Error()}}}, nil //nolint:nilerr // unknown is a result
	}
	return observations(s.view, s.state.Observed, s.terminating)
}

// uids are those whose records may explain what is observed: an object that was
// deleted and made again has two.
func (s *subject) uids(looks []observed) []string {
	uids := []string{s.state.Observed.UID}
	if s.state.Authorized != nil {
		uids = append(uids, s.state.Authorized.UID)
	}
	for _, look := range looks {
		if look.object != nil {
			uids = append(uids, string(look.object.UID))
		}
	}
	for _, t := range s.view.Pending {
		if t.Prev != nil {
			uids = append(uids, string(t.Prev.UID))
		}
	}
	return uids
}

// step runs the rules once, with the authorized bodies that they need. pending are the
// revisions of this decision, which are not stored yet.
func (r *Reconciler) step(ctx context.Context, s *subject, in specguard.Input, pending []specguard.AuthorizeRevision) (specguard.Result, error) {
	if in.State.Body == nil && specguard.NeedsBody(in.State, in.Observation, in.Rules, in.Accept) {
		body, err := r.body(ctx, s, in.State.Authorized)
		switch {
		case err == nil:
			in.State.Body = body
		case apierrors.IsNotFound(err), errors.Is(err, errDamaged):
			in.BodyLost = err.Error()
		default:
			return specguard.Result{}, err
		}
	}
	if specguard.Imports(in.State, in.Observation, in.Rules) {
		since, err := r.baselinesSince(ctx)
		if err != nil {
			return specguard.Result{}, err
		}
		in.BaselinesSince = since
	}
	result, err := specguard.Step(in)
	if errors.Is(err, specguard.ErrFormerNeeded) {
		if in.Former, err = r.loadFormer(ctx, s, in.State, pending); err == nil {
			result, err = specguard.Step(in)
		}
	}
	if errors.Is(err, specguard.ErrAppliedNeeded) {
		if in.Applied, err = r.loadApplied(ctx, s, in.Observation); err == nil {
			result, err = specguard.Step(in)
		}
	}
	if err != nil {
		return specguard.Result{}, fmt.Errorf("deciding about %s: %w", s.key, err)
	}
	return result, nil
}

// findScale asks whether the kind has /scale, where an object's content changed: for an
// answer of "no" the mapper may have to list all kinds.
func (r *Reconciler) findScale(s *subject, d *decision, look observed) specguard.ScaleSubresource {
	if r.Kinds == nil || look.object == nil || string(look.object.FullHash) == d.state.Observed.FullHash {
		return specguard.ScaleUnknown
	}
	switch served, known := r.Kinds.ServesScale(schema.GroupResource{Group: s.key.Group, Resource: s.resource.Plural}); {
	case served:
		return specguard.ScaleServed
	case known:
		return specguard.ScaleNotServed
	default:
		return specguard.ScaleUnknown
	}
}

// onlyRetry recognizes a result that decided nothing.
func onlyRetry(result specguard.Result) (time.Duration, bool) {
	if len(result.Effects) != 1 {
		return 0, false
	}
	retry, ok := result.Effects[0].(specguard.Retry)
	return retry.After, ok
}

// take adds one result to the decision, and returns the records that are left.
func (d *decision) take(s *subject, result specguard.Result, look observed, records joinable) joinable {
	d.state, d.last = result.State, look
	d.settled += look.settles
	for _, effect := range result.Effects {
		d.add(s, effect)
	}
	rest := joinable{healthy: records.healthy}
	consumed := make(map[int]bool, len(result.Consumed))
	for _, i := range result.Consumed {
		consumed[i] = true
	}
	for i := range records.records {
		if consumed[i] {
			d.joined = append(d.joined, records.from[i])
			d.records = append(d.records, records.records[i])
			continue
		}
		rest.records = append(rest.records, records.records[i])
		rest.from = append(rest.from, records.from[i])
	}
	return rest
}

func (d *decision) add(s *subject, effect specguard.Effect) {
	switch e := effect.(type) {
	case specguard.AuthorizeRevision:
		d.revisions = append(d.revisions, e)
	case specguard.BackfillHash:
		// Result.State carries the hash; the spec is written from it.
	case specguard.ClearAccept:
		d.clearAccept = true
	case specguard.RefuseAccept:
		d.refusal = e.Why
	case specguard.RemoveBaseline:
		d.remove = true
	case specguard.Recheck:
		d.dueBy(s.now.Add(e.After))
	case specguard.Retry:
		d.dueBy(s.now.Add(e.After))
	case specguard.Event:
		d.events = append(d.events, news{e, d.state.Observed.ResourceVersion})
	default:
		panic(fmt.Sprintf("an effect without a handler: %T", effect))
	}
}

// dueBy brings forward when to look again.
func (d *decision) dueBy(t time.Time) {
	if d.due.IsZero() || t.Before(d.due) {
		d.due = t
	}
}
