// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/controller/policy"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// Assessor is the user of the assessors, one of which is the leader and plans.
const Assessor = "system:serviceaccount:" + namespaceOfPlumbline + ":plumbline-assessor"

// leader is one life of the process that plans: the real reconciler of policies. What it reads
// from its cache comes from informers; each other read, and each write, is a message.
type leader struct {
	w          *World
	l          *schedule.Life
	rng        *rand.Rand
	reconciler *policy.Reconciler
	informers  *informers
	own        clock.PassiveClock
	failures   int
	// deaf is one who does not know when to look again.
	deaf bool

	mu sync.Mutex
	// due is when the policy is looked at; zero when nothing says so.
	due     time.Time
	looking bool
}

// planned are the kinds that a leader watches.
var planned = []string{
	"remediationplans", "remediationpolicies", "remediationledgers", "specguards", "clusterspecguards", "baselines",
	"environments", "guarddefaults", "namespaces", deployments.resource, services.resource,
}

// After a failure the real controller looks again soon, and then ever later.
const (
	lookSoon = 50 * time.Millisecond
	lookLate = 30 * time.Second
)

// planner is the body of the process that plans. Each of its lives is that of one of two
// processes, whose clocks are wrong, each in a way of its own.
func (w *World) planner(ahead [2]time.Duration) func(*schedule.Life) {
	return func(l *schedule.Life) {
		p, err := w.newLeader(l, ahead[l.Aside("leader").IntN(2)])
		if err != nil {
			panic(err)
		}
		w.leads(p)
		for {
			p.listen()
			if at := p.next(); !at.IsZero() && !time.Now().Before(at) {
				p.look()
				continue
			}
			p.linger()
		}
	}
}

func (w *World) newLeader(l *schedule.Life, ahead time.Duration) (*leader, error) {
	own := w.wrong(ahead, jump{})
	keeper := servertime.New(own)
	config := &rest.Config{Host: "http://sim", QPS: -1, Timeout: protocol.RequestTimeout}
	config.Transport = l.Transport(w.Server, Assessor, schedule.Wire{Critical: makesPlan, Name: nameOfReview})
	config.ContentType = "application/json"
	keeper.Watch(config)
	kinds, err := elected.Kinds()
	if err != nil {
		return nil, fmt.Errorf("making the planner: %w", err)
	}
	live, err := client.New(config, client.Options{Scheme: kinds, Mapper: w.Server.Mapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client of the planner: %w", err)
	}
	metrics, err := policy.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		return nil, fmt.Errorf("making the planner: %w", err)
	}
	p := &leader{w: w, l: l, rng: l.Aside("planner"), informers: w.informers(l, planned), own: own, due: time.Now()}
	p.reconciler = &policy.Reconciler{
		Client: ofManager{live, p}, Live: live, Namespace: namespaceOfPlumbline, Recorder: unread{w}, Metrics: metrics, Notifier: unread{w},
		Clock: keeper, Skew: keeper.Skew, Executor: Executor, ResyncPeriod: new(10 * time.Minute), Log: logr.Discard(),
	}
	p.reconciler.Source = &planning.FromCache{Cache: p.informers, Live: live, Snapshot: p.snapshot, Objects: p}
	w.mutant.plan(p)
	return p, nil
}

// makesPlan says that a request is one of those that everything is about.
func makesPlan(r apiserver.Request) bool { return r.Writes() && strings.HasPrefix(r.Path, plansPath) }

// nameOfReview tells the reviews apart that a planner asks beside each other.
func nameOfReview(r apiserver.Request) string {
	if !strings.HasSuffix(r.Path, "subjectaccessreviews") {
		return ""
	}
	sum := fnv.New32a()
	_, _ = sum.Write(r.Body) // it never fails
	return fmt.Sprintf(" #%08x", sum.Sum32())
}

// leads says which life plans.
func (w *World) leads(p *leader) {
	w.leaderMu.Lock()
	defer w.leaderMu.Unlock()
	w.leader = p
	w.begun = append(w.begun, beginningOf{p.l.Name, time.Now()})
}

// rests says that no planner has anything to do, now or later.
func (w *World) rests() bool {
	w.leaderMu.Lock()
	defer w.leaderMu.Unlock()
	return w.leader != nil && w.leader.rests()
}

// unrest says what keeps a world from its end.
func (w *World) unrest() string {
	if !w.plansItself {
		return "a plan, a ledger or a message"
	}
	policy := typedOf[v1alpha1.RemediationPolicy](w, w.Server.Look(group, "remediationpolicies", "", policyName))
	return fmt.Sprintf("the planner rests %t until %s, all is assessed %t, nothing is under way %t, the policy waits for %q", w.rests(), w.leader.next(), w.assessed.Load(), w.s.Quiet(), policy.Status.WaitingFor)
}

// beginningOf a life of the planner.
type beginningOf struct {
	client string
	at     time.Time
}

func (p *leader) next() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.due
}

// wake has the policy looked at after a while, or before.
func (p *leader) wake(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := time.Now().Add(after); p.due.IsZero() || at.Before(p.due) {
		p.due = at
	}
}

// look reconciles the policy, and knows when to do so again.
func (p *leader) look() {
	p.looks(true)
	defer p.looks(false)
	result, err := p.reconciler.Reconcile(p.l.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: policyName}})
	p.w.count("look of the planner")
	if err != nil {
		p.w.count("look of the planner that fails")
		p.wake(min(lookLate, lookSoon<<min(p.failures, 20)))
		p.failures++
		return
	}
	p.failures = 0
	if result.RequeueAfter > 0 && !p.deaf {
		p.wake(result.RequeueAfter)
	}
}

// looks notes whether the policy is being looked at; what is due is done with that.
func (p *leader) looks(looking bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looking = looking; looking {
		p.due = time.Time{}
	}
}

// rests says that nothing is due, now or later.
func (p *leader) rests() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.looking && p.due.IsZero() && p.l.Context().Err() == nil && p.informers.next().IsZero()
}

// listen wakes the policy by the rules of the real controller.
func (p *leader) listen() {
	for _, c := range p.informers.changes() {
		if c.resource == "remediationpolicies" && passes(p.w, c, &v1alpha1.RemediationPolicy{}, policy.Specs()) {
			p.wake(0)
		}
		for _, s := range policy.Sources() {
			if resourceOf(s.Kind) != c.resource || !passes(p.w, c, s.Kind, s.When...) {
				continue
			}
			if after, news := s.Urgency(p.typed(s.Kind, c.old), p.typed(s.Kind, c.now)); news {
				p.wake(after)
			}
		}
	}
}

func (p *leader) typed(kind client.Object, o apiserver.Object) client.Object {
	if o == nil {
		return nil
	}
	return typedLike(p.w, kind, o)
}

func (p *leader) linger() {
	until := time.Now().Add(time.Hour)
	for _, at := range []time.Time{p.next(), p.informers.next()} {
		if !at.IsZero() && at.Before(until) {
			until = at
		}
	}
	p.l.Await(p.informers.told, max(time.Until(until), time.Millisecond))
}

// snapshot are the guards as the leader sees them.
func (p *leader) snapshot() *guards.Snapshot {
	system := specguard.System{Executor: Executor}
	s, err := guards.Read(p.l.Context(), p.informers, p.w.Server.Mapper(), specguard.ExcludedNamespaces(namespaceOfPlumbline), system, p.own.Now())
	if err != nil {
		return nil // it was not read yet
	}
	return s
}

// View implements planning.Views.
func (p *leader) View(key kube.Key) kube.View {
	in := p.informers
	in.mu.Lock()
	defer in.mu.Unlock()
	in.catchUp()
	for _, k := range []*kind{&deployments, &services} {
		if k.gvk == canon.GVK(key.GroupVersionKind) {
			return kube.View{Current: p.w.decoded(in.streams[k.resource].objects[key.Namespace+"/"+key.Name], k)}
		}
	}
	return kube.View{Unknown: fmt.Errorf("reading %s: nobody watches it", key)}
}

// ofManager is the client of a manager: it reads from the cache.
type ofManager struct {
	client.Client
	p *leader
}

// Get implements client.Reader.
func (m ofManager) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return m.p.informers.Get(ctx, key, o, opts...)
}

// List implements client.Reader.
func (m ofManager) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return m.p.informers.List(ctx, list, opts...)
}

// Create implements client.Writer. It notes by which Baselines a plan was made.
func (m ofManager) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if _, ok := o.(*v1alpha1.RemediationPlan); ok {
		m.p.w.sights.note(sight{o.GetName(), time.Now()}, m.p.informers.seen("baselines"))
	}
	return m.Client.Create(ctx, o, opts...) //nolint:wrapcheck // it stands for the client
}

// sights are the revisions up to which planners had seen the Baselines when they made plans.
type sights struct {
	mu  sync.Mutex
	all map[sight]int64
}

// sight names a request that makes a plan.
type sight struct {
	plan string
	sent time.Time
}

func (s *sights) note(plan sight, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[sight]int64{}
	}
	s.all[plan] = revision
}

func (s *sights) of(plan string, sent time.Time) (revision int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, known = s.all[sight{plan, sent}]
	return revision, known
}

// unread are Events and notifications that nobody reads.
type unread struct{ w *World }

// Eventf implements events.EventRecorder.
func (u unread) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	u.w.count("event " + reason)
}

// Notify implements policy.Notifier.
func (u unread) Notify(notify.Event) {}
