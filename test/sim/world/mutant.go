// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// Mutant is an executor with one of its protections taken out. The zero value is
// the real one.
type Mutant struct {
	Name string
	// Breaks is the promise that breaks first, in one of the seeds.
	Breaks string
	// take the protection out of an executor, and what goes by the clock.
	take func(p *process, own clock.PassiveClock)
	// think takes a protection out of a planner.
	think func(p *leader)
	// in is a world in which it matters, beyond one that is rough.
	in func(*scenario)
	// patience is how many messages a run may take to end once nothing disturbs it; 0 is as many
	// as any run may. A mutant may go on for ever.
	patience int
	// unbounded says that the calls of the store never end.
	unbounded bool
}

// bound is the store as an executor gets it: each call ends after a time.
func (m Mutant) bound(s evidence.Store) evidence.Store {
	if m.unbounded {
		return patient{s}
	}
	return evidence.WithDeadline(s, storeDeadline)
}

// Without is the real executor in the worlds of the mutant.
func (m Mutant) Without() Mutant { return Mutant{in: m.in} }

func (m Mutant) plan(p *leader) {
	if m.think != nil {
		m.think(p)
	}
}

func (m Mutant) apply(p *process, own clock.PassiveClock) {
	if m.take != nil {
		m.take(p, own)
	}
}

// Mutants are the protections without which the promises do not hold. The first
// five are those that every model of this protocol has to catch; what is said
// about the fourth is in the documentation of the package above.
func Mutants() []Mutant {
	return append([]Mutant{
		{Name: "writes carry no uid", Breaks: "I10", take: both(timeless, without("uid")), in: withServices},
		{Name: "nothing is fenced before a plan ends", Breaks: "I5", take: func(p *process, _ clock.PassiveClock) { p.executor.Targets = unfenced{p.executor.Targets} }},
		{Name: "ledgers are written over whatever is there", Breaks: "I4", take: storesLedgers(overwrite)},
		{Name: "targets are read from a cache, and writes carry no resourceVersion", Breaks: "I3", take: both(cached, without("resourceVersion")), in: withWriters},
		{Name: "a copy that knows nothing grants", Breaks: "I11", take: storesLedgers(granted)},

		{Name: "targets are read from a cache", Breaks: "I5", take: cached, in: withTakeovers},
		{Name: "writes carry no resourceVersion", Breaks: "I3", take: without("resourceVersion"), in: withWriters},
		{Name: "writes carry no uid and no resourceVersion", Breaks: "I5", take: both(timeless, without("uid", "resourceVersion"))},
		{Name: "creations are admitted at any time", Breaks: "I5", take: timeless, in: (*scenario).makeAgain},
		{Name: "a status names records whose heads are not kept", Breaks: "I13", take: func(p *process, _ clock.PassiveClock) {
			p.executor.Evidence.Heads = headless{p.executor.Evidence.Heads}
		}},
		{Name: "the end of a plan is not recorded", Breaks: "I23", take: func(p *process, _ clock.PassiveClock) {
			p.executor.Evidence.Writer.Store = endless{p.executor.Evidence.Writer.Store, p.w}
		}},
		{Name: "a chain goes as far as the store has it", Breaks: "I26", take: adopts, in: withForgetting},
		{Name: "the time is that of the own clock", Breaks: "I16", in: withHours, take: func(p *process, own clock.PassiveClock) { p.executor.Time = ownTime{own} }},
	}, slices.Concat(blindMutants(), plannerMutants(), verdictMutants())...)
}

func both(first, second func(*process, clock.PassiveClock)) func(*process, clock.PassiveClock) {
	return func(p *process, own clock.PassiveClock) {
		first(p, own)
		second(p, own)
	}
}

// withServices has objects that a PUT makes anew, and nobody but those who delete
// them.
func withServices(c *scenario) {
	c.kind, c.action = &services, v1alpha1.ActionReconcile
	c.meddlers = []disturbance{
		disturber("replacer", "mallory", (*person).replaces), disturber("second-replacer", "mallory", (*person).replaces), disturber("third-replacer", "mallory", (*person).replaces),
	}
}

// withWriters has nobody interfere but those who write targets.
func withWriters(c *scenario) {
	c.meddlers = []disturbance{
		disturber("foreign", "mallory", (*person).changes), disturber("second-foreign", "mallory", (*person).changes), disturber("third-foreign", "mallory", (*person).changes),
	}
}

// withTakeovers has executors die over their writes, which are late, people who
// cancel, writers who move versions alone, and watches that often stand still.
func withTakeovers(c *scenario) {
	c.still = 4
	c.meddlers = []disturbance{
		disturber("churn", "mallory", (*person).churns), disturber("second-churn", "mallory", (*person).churns), disturber("third-churn", "mallory", (*person).churns),
		disturber("canceler", "alice", (*person).controls), disturber("second-canceler", "alice", (*person).controls), disturber("third-canceler", "alice", (*person).controls),
	}
	c.chances = schedule.Chances{Late: 10, Crash: 15, Critical: 30}
}

// withHours has a policy that may not always act, and a clock that is wrong.
func withHours(c *scenario) {
	c.hours = &hours{opens: time.Minute, closes: 3 * time.Minute, again: 5 * time.Minute, ends: 15 * time.Minute, zone: "UTC"}
	c.deadline = 20 * time.Minute
	c.ahead = [2]time.Duration{2 * time.Minute, 0}
}

// headless keeps no heads.
type headless struct{ exec.Heads }

// Keep implements exec.Heads.
func (headless) Keep(context.Context, string, string, ...evidence.Head) error { return nil }

// ownTime takes a clock for the API server's.
type ownTime struct{ clock.PassiveClock }

// Skew implements exec.Time.
func (ownTime) Skew() time.Duration { return 0 }

// timeless has the API server admit a creation whenever its request arrives.
func timeless(p *process, _ clock.PassiveClock) { p.w.timeless.Store(true) }

func cached(p *process, _ clock.PassiveClock) {
	p.executor.Targets = cachedTargets{p.executor.Targets, p.informers}
}

// without takes what binds a write to what was read out of it.
func without(fields ...string) func(*process, clock.PassiveClock) {
	return func(p *process, _ clock.PassiveClock) { p.executor.Targets = unbound{p.executor.Targets, fields} }
}

type unbound struct {
	exec.Targets
	fields []string
}

// Put implements exec.Targets.
func (u unbound) Put(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	var o apiserver.Object
	if err := utiljson.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	for _, field := range u.fields {
		delete(metadata(o), field)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return u.Targets.Put(ctx, ref, raw, dryRun)
}

// unfenced says that a fence was stored, and sends none.
type unfenced struct{ exec.Targets }

// Put implements exec.Targets.
func (u unfenced) Put(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	if !bytes.Contains(body, []byte(evidence.LabelFence)) {
		return u.Targets.Put(ctx, ref, body, dryRun)
	}
	var o apiserver.Object
	if err := utiljson.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	version, err := strconv.ParseInt(metadata(o)["resourceVersion"].(string), 10, 64)
	if err != nil {
		return nil, err
	}
	metadata(o)["resourceVersion"] = strconv.FormatInt(version+1, 10)
	return json.Marshal(o)
}

// storesLedgers has the statuses of ledgers stored in another way.
func storesLedgers(how ledgerStore) func(*process, clock.PassiveClock) {
	return func(p *process, _ clock.PassiveClock) { p.executor.Client = ledgerClient{p.executor.Client, how} }
}

// ledgerStore is told of a ledger to store, and of what is stored now. It says
// whether to store it.
type ledgerStore func(l, now *v1alpha1.RemediationLedger) bool

// overwrite a ledger's status, whatever version is there now.
func overwrite(l, now *v1alpha1.RemediationLedger) bool {
	l.ResourceVersion = now.ResourceVersion
	return true
}

// granted takes the word of a copy that knows nothing, and so refuses nothing, for
// a place in the ledger, and writes no entry.
func granted(l, now *v1alpha1.RemediationLedger) bool {
	return len(l.Status.Entries) <= len(now.Status.Entries)
}

type ledgerClient struct {
	client.Client
	how ledgerStore
}

// Status implements client.Client.
func (c ledgerClient) Status() client.SubResourceWriter {
	return ledgerWriter{c.Client.Status(), c}
}

type ledgerWriter struct {
	client.SubResourceWriter
	c ledgerClient
}

// Update implements client.SubResourceWriter.
func (w ledgerWriter) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	if l, ok := o.(*v1alpha1.RemediationLedger); ok {
		var now v1alpha1.RemediationLedger
		if err := w.c.Get(ctx, client.ObjectKeyFromObject(l), &now); err != nil {
			return err
		}
		if !w.c.how(l, &now) {
			return nil
		}
	}
	return w.SubResourceWriter.Update(ctx, o, opts...)
}
