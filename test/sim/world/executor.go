// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/controller/plan"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// process is one life of an executor: the real one, made as the assessor makes it,
// and woken by the rules of the real controller of plans, with every call a
// message and every watch behind.
type process struct {
	w          *World
	l          *schedule.Life
	executor   *exec.Executor
	reconciler *plan.Reconciler
	informers  *informers
	due        map[types.NamespacedName]time.Time
	// busy are the plans that a worker carries on.
	busy  map[types.NamespacedName]bool
	vigil plan.Vigil
}

// worker is what goes on in a process: the life itself, or one of its workers.
type worker interface {
	Context() context.Context
	Await(told <-chan struct{}, atMost time.Duration) bool
	Turn()
}

// sweepEvery is how often the assessor has the ledgers looked through.
const sweepEvery = time.Minute

// executor is the body of an executor.
func (w *World) executor(ahead time.Duration, jumps jump) func(*schedule.Life) {
	return func(l *schedule.Life) {
		p, err := w.newProcess(l, w.wrong(ahead, jumps))
		if err != nil {
			panic(err)
		}
		if w.workers == 0 {
			p.work(l)
			return
		}
		l.Fork(slices.Repeat([]func(*schedule.Strand){func(s *schedule.Strand) { p.work(s) }}, w.workers)...)
	}
}

// work carries plans on, and has the ledgers looked through.
func (p *process) work(by worker) {
	sweep := time.Now().Add(sweepEvery)
	for {
		p.listen()
		for _, key := range p.w.planKeys() {
			if at, waits := p.due[key]; waits && !p.busy[key] && !time.Now().Before(at) {
				p.carry(by, key)
			}
		}
		if !time.Now().Before(sweep) {
			_ = p.executor.ClearLeftovers(by.Context()) // it is called again
			sweep = time.Now().Add(sweepEvery)
		}
		p.linger(by, sweep)
	}
}

func (w *World) planKeys() []types.NamespacedName {
	var keys []types.NamespacedName
	for _, name := range w.plans.names() {
		keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return keys
}

// carry reconciles one plan, and knows when to do so again.
func (p *process) carry(by worker, key types.NamespacedName) {
	delete(p.due, key)
	if len(p.busy) > 0 {
		p.w.count("plan beside a plan of the same process")
	}
	p.busy[key] = true
	p.w.carrying.Add(1)
	defer p.w.carrying.Add(-1) // it may die meanwhile
	if p.w.workers > 0 {
		p.informers.tell() // the other one may have something to do
	}
	result, err := p.reconciler.Reconcile(by.Context(), reconcile.Request{NamespacedName: key})
	by.Turn()
	delete(p.busy, key)
	switch {
	case err != nil:
		p.wake(key, time.Now().Add(time.Duration(p.l.Rand().Int64N(int64(3*time.Second)))))
	case result.RequeueAfter > 0:
		p.wake(key, time.Now().Add(result.RequeueAfter))
	}
}

// wake has a plan carried on at a time, or before.
func (p *process) wake(key types.NamespacedName, at time.Time) {
	if known, waits := p.due[key]; !waits || at.Before(known) {
		p.due[key] = at
	}
}

// listen wakes the plans that what was seen wakes.
func (p *process) listen() {
	for _, c := range p.informers.changes() {
		p.wakeThatWait(c)
		for _, key := range p.wakes(c) {
			p.w.wakes.Add(1)
			p.wake(key, time.Now())
		}
	}
}

// Watch implements plan.TargetWatcher.
func (p *process) Watch(of types.NamespacedName, targets []exec.Sighting) (watched bool) {
	p.vigil.Saw(of, targets, time.Now())
	return true
}

// wakeThatWait wakes the plans that wait for a target.
func (p *process) wakeThatWait(c change) {
	for _, k := range []*kind{&deployments, &services} {
		if k.resource != c.resource {
			continue
		}
		o := c.now
		if o == nil {
			o = c.old
		}
		version, _ := metadata(o)["resourceVersion"].(string)
		now := exec.Sighting{Reference: exec.Reference{GVK: k.gvk, Namespace: c.namespace, Name: c.name}, ResourceVersion: version}
		for _, key := range p.w.planKeys() {
			if p.vigil.Wakes(key, now) {
				p.w.wakes.Add(1)
				p.wake(key, p.vigil.Due(key))
			}
		}
	}
}

// wakes is what the controller's own rules say about a change.
func (p *process) wakes(c change) []types.NamespacedName {
	if c.resource == "remediationplans" {
		o := new(v1alpha1.RemediationPlan)
		if !passes(p.w, c, o, plan.Specs()) {
			return nil
		}
		return []types.NamespacedName{{Namespace: c.namespace, Name: c.name}}
	}
	var keys []types.NamespacedName
	for _, s := range p.reconciler.Sources() {
		if resourceOf(s.Kind) == c.resource && passes(p.w, c, s.Kind, s.When...) {
			keys = append(keys, wokenBy(p.w, s.Kind, c, func(o client.Object) (keys []types.NamespacedName) {
				for _, turn := range s.Wake(p.l.Context(), o) { // no world has enough plans for a turn that comes later
					keys = append(keys, turn.NamespacedName)
				}
				return keys
			})...)
		}
	}
	return keys
}

// wokenBy asks a handler about both states of a change, as one that enqueues does.
func wokenBy(w *World, kind client.Object, c change, wake func(client.Object) []types.NamespacedName) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, o := range []apiserver.Object{c.old, c.now} {
		if o == nil {
			continue
		}
		keys = append(keys, wake(typedLike(w, kind, o))...)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(keys)
}

func passes(w *World, c change, kind client.Object, all ...predicate.Predicate) bool {
	return !slices.ContainsFunc(all, func(p predicate.Predicate) bool {
		switch {
		case c.old == nil:
			return !p.Create(event.CreateEvent{Object: typedLike(w, kind, c.now)})
		case c.now == nil:
			return !p.Delete(event.DeleteEvent{Object: typedLike(w, kind, c.old)})
		}
		return !p.Update(event.UpdateEvent{ObjectOld: typedLike(w, kind, c.old), ObjectNew: typedLike(w, kind, c.now)})
	})
}

// linger waits until something is due, or something was seen.
func (p *process) linger(by worker, until time.Time) {
	for key, at := range p.due {
		if !p.busy[key] && at.Before(until) {
			until = at
		}
	}
	if next := p.informers.next(); !next.IsZero() && next.Before(until) {
		until = next
	}
	by.Await(p.informers.told, max(time.Until(until), time.Millisecond))
}

func (w *World) newProcess(l *schedule.Life, own aheadOf) (*process, error) {
	keeper := servertime.New(own)
	config := &rest.Config{Host: "http://sim", QPS: -1, Transport: l.Transport(w.Server, Executor, schedule.Wire{Critical: writesTarget})}
	config.ContentType = "application/json"
	keeper.Watch(config)
	e, err := executor.NewExecutor(config, w.Server.Mapper(), keeper, executor.Setup{
		Namespace: namespaceOfPlumbline, Clock: own, Log: logr.Discard(), Builder: evidence.Builder{Version: "sim"}, Caps: w.clusterCaps, ReleaseWorks: w.releases, Mesh: w.mesh,
		Evidence: evidence.Writer{
			Store:  evidence.NewMonitor(w.mutant.bound(&store{w.evidence, w, l}), evidence.ProbeInterval, time.Now), // durations go by the monotonic clock
			Signer: w.keys.signer, Keys: w.keys.ring,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the executor: %w", err)
	}
	e.Mirror, e.Observer, e.Holder = w.mirror(l), witness{w}, l.Name
	e.Targets = dozing{e.Targets, w, l, l.Aside("doze")}
	p := &process{w: w, l: l, executor: e, informers: w.informers(l, watched), due: map[types.NamespacedName]time.Time{}, busy: map[types.NamespacedName]bool{}}
	e.Cached = p.informers
	if w.verdicts {
		e.Assessments = p.informers
	}
	e.Evidence.Heads = lockedHeads{e.Evidence.Heads}
	w.mutant.apply(p, own)
	p.reconciler = &plan.Reconciler{Executor: e, Targets: p, Cached: p.informers, Time: e.Time, AssessesEffects: w.verdicts}
	return p, nil
}

// watched are the kinds that an executor watches, and those of targets: plans wait for
// these, and a mutant reads them from there.
var watched = []string{
	"remediationplans", "remediationpolicies", "remediationledgers", "specguards", "clusterspecguards", deployments.resource, services.resource,
	"environments", "guarddefaults", "namespaces", "effectivenessassessments",
}

// resourceOf is where a kind is served.
func resourceOf(kind client.Object) string {
	switch kind.(type) {
	case *v1alpha1.RemediationPlan:
		return "remediationplans"
	case *v1alpha1.RemediationPolicy:
		return "remediationpolicies"
	case *v1alpha1.RemediationLedger:
		return "remediationledgers"
	case *v1alpha1.SpecGuard:
		return "specguards"
	case *v1alpha1.ClusterSpecGuard:
		return "clusterspecguards"
	case *v1alpha1.Environment:
		return "environments"
	case *v1alpha1.Baseline:
		return "baselines"
	case *v1alpha1.GuardDefaults:
		return "guarddefaults"
	case *v1alpha1.EffectivenessAssessment:
		return "effectivenessassessments"
	case *metav1.PartialObjectMetadata:
		return "namespaces"
	}
	panic(fmt.Sprintf("nobody watches %T here", kind))
}

// typedLike turns an object into one of a type.
func typedLike(w *World, kind client.Object, o apiserver.Object) client.Object {
	switch kind.(type) {
	case *v1alpha1.RemediationPlan:
		return typedOf[v1alpha1.RemediationPlan](w, o)
	case *v1alpha1.RemediationPolicy:
		return typedOf[v1alpha1.RemediationPolicy](w, o)
	case *v1alpha1.RemediationLedger:
		return typedOf[v1alpha1.RemediationLedger](w, o)
	case *v1alpha1.SpecGuard:
		return typedOf[v1alpha1.SpecGuard](w, o)
	case *v1alpha1.ClusterSpecGuard:
		return typedOf[v1alpha1.ClusterSpecGuard](w, o)
	case *v1alpha1.Environment:
		return typedOf[v1alpha1.Environment](w, o)
	case *v1alpha1.Baseline:
		return typedOf[v1alpha1.Baseline](w, o)
	case *v1alpha1.GuardDefaults:
		return typedOf[v1alpha1.GuardDefaults](w, o)
	case *v1alpha1.EffectivenessAssessment:
		return typedOf[v1alpha1.EffectivenessAssessment](w, o)
	case *metav1.PartialObjectMetadata:
		return typedOf[metav1.PartialObjectMetadata](w, o)
	}
	panic(fmt.Sprintf("nobody watches %T here", kind))
}

// lockedHeads are asked while the records are locked.
type lockedHeads struct{ exec.Heads }

// Head implements exec.Heads.
func (h lockedHeads) Head(ctx context.Context, environment, chain string) (evidence.Head, error) {
	return h.Heads.Head(schedule.Alone(ctx), environment, chain) //nolint:wrapcheck // it stands for them
}

// Keep implements exec.Heads.
func (h lockedHeads) Keep(ctx context.Context, environment, chain string, left ...evidence.Head) error {
	return h.Heads.Keep(schedule.Alone(ctx), environment, chain, left...) //nolint:wrapcheck // it stands for them
}

// writesTarget says that a request is the one that everything is about.
func writesTarget(r apiserver.Request) bool { return r.Writes() && onTarget(r) }

// jump is a moment after the beginning at which a clock is set; the zero one is never.
type jump struct{ after, by time.Duration }

// aheadOf is a clock that is wrong, and that may jump at a moment.
type aheadOf struct {
	clock.WithTicker
	by      time.Duration
	jumpsAt time.Time
	jumpsBy time.Duration
	jumped  func()
}

// wrong makes a clock that is wrong, and that jumps.
func (w *World) wrong(by time.Duration, jumps jump) aheadOf {
	return aheadOf{clock.RealClock{}, by, w.epoch.Add(jumps.after), jumps.by, sync.OnceFunc(func() { w.count("clock that jumps") })}
}

// Now implements clock.PassiveClock.
func (c aheadOf) Now() time.Time {
	now := c.WithTicker.Now()
	if c.jumpsBy == 0 || now.Before(c.jumpsAt) {
		return now.Add(c.by)
	}
	c.jumped()
	return now.Add(c.by + c.jumpsBy)
}

// Since implements clock.PassiveClock. As of the real clock no jump counts between two of its
// results.
func (c aheadOf) Since(t time.Time) time.Duration { return c.WithTicker.Since(t.Add(-c.by)) }

// witness is told what executors tell people, and remembers the ends.
type witness struct{ w *World }

func (witness) Stored(*v1alpha1.RemediationPlan, *v1alpha1.RemediationPlanStatus) {}
func (witness) LedgerStored(*v1alpha1.RemediationLedger)                          {}
func (witness) Assessed(*v1alpha1.RemediationPlan, int32, *v1alpha1.StepEffect)   {}

func (o witness) Ended(p *v1alpha1.RemediationPlan) {
	o.w.announced.Store(p.Name, p.Status.Phase)
}
