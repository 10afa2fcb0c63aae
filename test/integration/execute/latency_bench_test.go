// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// BenchmarkDriftToPutBack measures from the API server's answer to a write that
// drifts an object until that object is as authorized again, and what of that time
// is finding it (detect), waiting for the plan before it (turn), planning (plan),
// and carrying the plan out up to its first write (write). So many other objects,
// all of the same policy, have drifted by less and are
//
//   - held: the policy asks for more severity, so nothing is under way;
//   - queued: they are put back one after the other all the time. A policy has one
//     operation under way, so a worse drift waits for its end, and is next.
//
// In the same run floor is a client's plain GET and PUT of such an object, which no guard
// selects, and writes are what the two processes had the API server store.
func BenchmarkDriftToPutBack(b *testing.B) {
	for _, others := range []int{0, 100, 1000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			p := newPile(b, others)
			held := p.policy(func(s *v1alpha1.RemediationPolicySpec) {
				s.MinimumSeverity = v1alpha1.SeverityCritical
				s.Safety.MaxPerHour, s.Safety.MaxPerDay, s.Safety.MaxConcurrent, s.Safety.MaxTargets = 1000, 1000, 10, 1
				s.Health.Stabilization = &metav1.Duration{}
				s.Exceptions.ActiveWriter = v1alpha1.Allowed
			})
			p.selected(held, 0)
			b.Run("held", func(b *testing.B) { p.in(b).measure(b, false) })
			if others == 0 {
				return
			}
			b.Run("queued", func(b *testing.B) {
				p := p.in(b)
				body := fmt.Appendf(nil, `{"spec":{"minimumSeverity":%q,"requestedBy":%q}}`, v1alpha1.SeverityInfo, platform)
				p.Must(p.As(platform).Patch(b.Context(), held, client.RawPatch(types.MergePatchType, body)))
				p.measure(b, true)
			})
		})
	}
}

// pile is a world with many objects, of which so many others have drifted.
type pile struct {
	*world
	others int
	// unused have never drifted.
	unused   *[]string
	seen     *sightings
	executor *storedWrites
	assessor *storedWrites
}

// setUp bounds each part of making a pile.
const setUp = 2 * time.Minute

// newPile makes as many objects as keep the drifted ones below the share of a mass
// drift, and some for the rounds, since one that drifts again and again is fought
// over. They are there before the guard, and are adopted.
func newPile(b *testing.B, others int) *pile {
	b.Helper()
	p := &pile{world: newWorld(b), others: others, unused: new([]string), seen: newSightings(), executor: newStoredWrites(), assessor: newStoredWrites()}
	total := max(others*7/2, others+500)
	for i := range total {
		*p.unused = append(*p.unused, fmt.Sprint("web-", i))
	}
	p.watch(b)
	p.each(*p.unused, func(ctx context.Context, name string) error {
		return p.As(ci).Create(ctx, guarded.Deployment(p.Name, name))
	})
	p.until("all are rolled out", func(s *sightings) int { return len(s.ready) }, total)
	p.Must(admin.Create(b.Context(), guarded.Deployment(metav1.NamespaceDefault, p.Name)))
	p.SecondOver(time.Now())
	startAssessor(b, func(s *assessor.Setup) { s.Config = p.assessor.of(s.Config) })
	p.UnderGuard()
	p.until("all are adopted", func(s *sightings) int { return s.count(v1alpha1.StateInSync) }, total)
	p.drift(others)
	startExecutor(b, newEvidence(b), func(s *executor.Setup) { s.Config = p.executor.of(s.Config) })
	return p
}

// in is the pile in a benchmark within the benchmark.
func (p *pile) in(b *testing.B) *pile {
	return &pile{world: p.within(b), others: p.others, unused: p.unused, seen: p.seen, executor: p.executor, assessor: p.assessor}
}

func (p *pile) each(names []string, do func(context.Context, string) error) {
	p.t.Helper()
	group, ctx := errgroup.WithContext(p.t.Context())
	group.SetLimit(16)
	for _, name := range names {
		group.Go(func() error { return do(ctx, name) })
	}
	p.Must(group.Wait())
}

func (p *pile) until(what string, count func(*sightings) int, want int) {
	p.t.Helper()
	poll.Until(p.t, setUp, what, func() error {
		p.seen.mu.Lock()
		defer p.seen.mu.Unlock()
		if got := count(p.seen); got < want {
			states := map[v1alpha1.DriftState]int{}
			for _, state := range p.seen.state {
				states[state]++
			}
			return fmt.Errorf("it is %d of %d; the states are %v", got, want, states)
		}
		return nil
	})
}

func (p *pile) take(n int) []string {
	p.t.Helper()
	if len(*p.unused) < n {
		p.t.Fatal("no object is left that has not drifted before; ask for fewer rounds")
	}
	names := (*p.unused)[:n]
	*p.unused = (*p.unused)[n:]
	return names
}

// drift has so many more objects drift, by less than an image of somebody else's,
// and waits until that is told.
func (p *pile) drift(n int) {
	p.t.Helper()
	names := p.take(n)
	p.each(names, func(ctx context.Context, name string) error {
		return p.As(mallory).Patch(ctx, p.Named(name), guarded.EnvPatch("DEBUG", "1"))
	})
	p.until("the drift is told", func(s *sightings) int {
		told := 0
		for _, name := range names {
			if !s.drifted[name].IsZero() {
				told++
			}
		}
		return told
	}, n)
}

// selected waits until the policy says that it has all of the pile, and how many of
// what drifted it would put back.
func (p *pile) selected(policy *v1alpha1.RemediationPolicy, eligible int) {
	p.t.Helper()
	p.Eventually("the policy has looked at all of it", func() error {
		if err := admin.Get(p.t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		if t := policy.Status.Targets; int(t.Drifted) != p.others || int(t.Eligible) != eligible {
			return fmt.Errorf("it counts %+v and waits for %q", t, policy.Status.WaitingFor)
		}
		return nil
	})
}

// measure has one object after the other drift by much, beside the others.
func (p *pile) measure(b *testing.B, queued bool) {
	var rounds []round
	var begun []time.Time
	least := p.others
	p.executor.clear()
	p.assessor.clear()
	for b.Loop() {
		b.StopTimer()
		if queued {
			p.refill()
		} else {
			p.pace(begun)
		}
		begun = append(begun, time.Now())
		name := p.take(1)[0]
		floor := p.plainWrite()
		least = min(least, p.seen.waiting())
		b.StartTimer()
		r := p.putBack(name)
		b.StopTimer()
		r.floor = floor
		rounds = append(rounds, r)
		if !queued {
			p.Eventually("its plan has ended", func() error { return p.seen.ended(name) })
		}
		b.StartTimer()
	}
	report(b, rounds)
	b.ReportMetric(float64(least), "others-min")
	b.ReportMetric(p.executor.perObject(b, p.executor, "executor"), "executor-writes/object")
	b.ReportMetric(p.assessor.perObject(b, p.executor, "assessor"), "assessor-writes/object")
}

// plansPerMinute is what the planner makes for one policy in a minute.
const plansPerMinute = 20

// pace waits while the planner would make no further plan, which is no part of a repair.
func (p *pile) pace(begun []time.Time) {
	p.t.Helper()
	if len(begun) < plansPerMinute {
		return
	}
	select {
	case <-p.t.Context().Done():
	case <-time.After(time.Until(begun[len(begun)-plansPerMinute].Add(time.Minute + time.Second))):
	}
}

// refill has as many drift as were put back, and lets the turn that is under way be
// at any point of it.
func (p *pile) refill() {
	p.t.Helper()
	p.drift(max(0, p.others-p.seen.waiting()))
	select {
	case <-p.t.Context().Done():
	case <-time.After(rand.N(max(p.seen.turn(), time.Millisecond))): //nolint:gosec // no secret
	}
}

// plainWrite is what a client does that changes an object and asks nobody. No guard selects the
// object, so that the assessor writes nothing because of it.
func (p *pile) plainWrite() time.Duration {
	p.t.Helper()
	at := time.Now()
	d := guarded.Deployment(metav1.NamespaceDefault, p.Name)
	p.Must(admin.Get(p.t.Context(), client.ObjectKeyFromObject(d), d))
	metav1.SetMetaDataLabel(&d.ObjectMeta, "bench", fmt.Sprint(at.UnixNano()))
	p.Must(admin.Update(p.t.Context(), d))
	return time.Since(at)
}

// round is one drift, and how long each part took until it was put back.
type round struct{ detect, turn, plan, write, all, floor time.Duration }

func (p *pile) putBack(name string) round {
	p.t.Helper()
	d := p.Named(name)
	p.Must(p.As(mallory).Patch(p.t.Context(), d, guarded.ImagePatch(evilImage)))
	answered := time.Now()
	p.seen.mu.Lock()
	p.seen.evil[name] = d.Generation
	p.seen.mu.Unlock()
	p.Eventually(name+" is put back", func() error { return p.seen.putBack(name) })
	p.seen.mu.Lock()
	defer p.seen.mu.Unlock()
	drifted, planned, back := p.seen.drifted[name], p.seen.planned[name], p.seen.back[name]
	free := drifted
	if before := p.seen.before[name]; before.After(free) {
		free = before
	}
	return round{
		detect: max(0, drifted.Sub(answered)), turn: free.Sub(drifted), plan: planned.Sub(free), write: back.Sub(planned),
		all: back.Sub(answered),
	}
}

func report(b *testing.B, rounds []round) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // with one number for all of it nothing is said
	for name, part := range map[string]func(round) time.Duration{
		"detect": func(r round) time.Duration { return r.detect }, "turn": func(r round) time.Duration { return r.turn },
		"plan": func(r round) time.Duration { return r.plan }, "write": func(r round) time.Duration { return r.write },
		"all": func(r round) time.Duration { return r.all }, "floor": func(r round) time.Duration { return r.floor },
	} {
		var took []time.Duration
		for _, r := range rounds {
			took = append(took, part(r))
		}
		slices.Sort(took)
		for _, percent := range []int{50, 99} {
			at := took[len(took)*percent/100]
			b.ReportMetric(float64(at.Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, percent))
		}
	}
}

// evilImage is from somebody else's repository, which is Critical in Production.
const evilImage = "registry.example/evil:1"

// sightings are what watches have told about objects by their names, and when.
type sightings struct {
	mu    sync.Mutex
	ready map[string]bool
	evil  map[string]int64 // the generation that runs an evil image
	state map[string]v1alpha1.DriftState
	// drifted, planned and back are when an object was first told to have drifted,
	// had a plan, and was as authorized again; before is the end of the plan before.
	drifted, planned, before, back map[string]time.Time
	// over are the objects whose plans have ended; ends is how many have.
	over             map[string]bool
	ends             int
	firstEnd, newest time.Time
}

func newSightings() *sightings {
	times := func() map[string]time.Time { return map[string]time.Time{} }
	return &sightings{
		ready: map[string]bool{}, evil: map[string]int64{}, state: map[string]v1alpha1.DriftState{}, over: map[string]bool{},
		drifted: times(), planned: times(), before: times(), back: times(),
	}
}

func (s *sightings) count(state v1alpha1.DriftState) int {
	n := 0
	for _, is := range s.state {
		if is == state {
			n++
		}
	}
	return n
}

// waiting is how many are drifted now.
func (s *sightings) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count(v1alpha1.StateDrifted)
}

// turn is the mean time from the end of one plan to that of the next.
func (s *sightings) turn() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest.Sub(s.firstEnd) / time.Duration(max(1, s.ends-1))
}

func (s *sightings) putBack(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back[name].IsZero() {
		return fmt.Errorf("it drifted at %s and was planned at %s", s.drifted[name], s.planned[name])
	}
	return nil
}

func (s *sightings) ended(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over[name] {
		return errors.New("it has not")
	}
	return nil
}

func (s *sightings) baseline(b *v1alpha1.Baseline, at time.Time) {
	name := b.Spec.Target.Name
	s.state[name] = b.Status.State
	if b.Status.State == v1alpha1.StateDrifted && s.drifted[name].IsZero() {
		s.drifted[name] = at
	}
}

func (s *sightings) plan(p *v1alpha1.RemediationPlan, at time.Time) {
	name := p.Spec.Plan.Targets[0].Name // the policy has one for each
	if s.planned[name].IsZero() {
		s.planned[name], s.before[name] = at, s.newest
	}
	if !protocol.Final(p.Status.Phase) || s.over[name] {
		return
	}
	s.over[name], s.newest = true, at
	if s.ends++; s.ends == 1 {
		s.firstEnd = at
	}
}

func (s *sightings) deployment(d *appsv1.Deployment, at time.Time) {
	if d.Status.ObservedGeneration == d.Generation {
		s.ready[d.Name] = true
	}
	evil := s.evil[d.Name]
	if evil > 0 && d.Generation > evil && s.back[d.Name].IsZero() && d.Spec.Template.Spec.Containers[0].Image == guarded.Image {
		s.back[d.Name] = at
	}
}

func (s *sightings) note(o any, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := o.(type) {
	case *v1alpha1.Baseline:
		s.baseline(o, at)
	case *v1alpha1.RemediationPlan:
		s.plan(o, at)
	case *appsv1.Deployment:
		s.deployment(o, at)
	}
}

// watch notes what is told of the namespace, and does what the deployment
// controller and the kubelet would.
func (p *pile) watch(b *testing.B) {
	b.Helper()
	told, err := cache.New(config, cache.Options{
		Scheme: scheme.Scheme, DefaultNamespaces: map[string]cache.Config{p.Name: {}}, DefaultUnsafeDisableDeepCopy: new(true),
	})
	p.Must(err)
	rollouts := make(chan *appsv1.Deployment, 1<<14)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var all sync.WaitGroup
	b.Cleanup(func() { cancel(); all.Wait() })
	for _, kind := range []client.Object{&v1alpha1.Baseline{}, &v1alpha1.RemediationPlan{}, &appsv1.Deployment{}} {
		informer, err := told.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		p.Must(err)
		note := func(o any) {
			p.seen.note(o, time.Now())
			if d, ok := o.(*appsv1.Deployment); ok && d.Status.ObservedGeneration != d.Generation {
				rollouts <- d.DeepCopy()
			}
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, o any) { note(o) }})
		p.Must(err)
	}
	for range 4 {
		all.Go(func() { rollOutAll(ctx, rollouts) })
	}
	all.Go(func() {
		if err := told.Start(ctx); err != nil {
			b.Errorf("watching: %v", err)
		}
	})
	if !told.WaitForCacheSync(ctx) {
		b.Fatal("the watches do not begin")
	}
}

func rollOutAll(ctx context.Context, rollouts <-chan *appsv1.Deployment) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-rollouts:
			d.Status = remediation.RolledOut(d, true)
			_ = admin.Status().Update(ctx, d) // who was faster has made another event
		}
	}
}

// storedWrites count what a process has had the API server store, by resource.
type storedWrites struct {
	mu         sync.Mutex
	byResource map[string]int
}

func newStoredWrites() *storedWrites { return &storedWrites{byResource: map[string]int{}} }

// of is a configuration whose writes are counted.
func (w *storedWrites) of(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &countingTransport{next, w} })
	return config
}

func (w *storedWrites) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byResource = map[string]int{}
}

// perObject logs the counts by resource for each object that the executor has
// written meanwhile, and returns their sum without that object's own write.
func (w *storedWrites) perObject(b *testing.B, executor *storedWrites, who string) float64 {
	b.Helper()
	executor.mu.Lock()
	objects := float64(max(1, executor.byResource["deployments"]))
	executor.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	sum, lines := 0, []string{}
	for _, resource := range slices.Sorted(maps.Keys(w.byResource)) {
		lines = append(lines, fmt.Sprintf("%s %.1f", resource, float64(w.byResource[resource])/objects))
		if resource != "deployments" {
			sum += w.byResource[resource]
		}
	}
	b.Logf("writes of the %s for each of %.0f objects: %s", who, objects, strings.Join(lines, ", "))
	return float64(sum) / objects
}

type countingTransport struct {
	http.RoundTripper

	writes *storedWrites
}

// RoundTrip implements http.RoundTripper.
func (t *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil || request.Method == http.MethodGet || response.StatusCode >= http.StatusMultipleChoices || request.URL.Query().Has("dryRun") {
		return response, err
	}
	if resource := resourceOf(request.URL); !strings.HasSuffix(resource, "accessreviews") { // they are answered, and stored nowhere
		if request.Method == http.MethodPatch && resource == "deployments" {
			resource = "field managers of deployments" // beside the write that puts one back
		}
		t.writes.mu.Lock()
		t.writes.byResource[resource]++
		t.writes.mu.Unlock()
	}
	return response, nil
}

// resourceOf is "deployments" of /apis/apps/v1/namespaces/shop/deployments/web.
func resourceOf(u *url.URL) string {
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	if i := slices.Index(path, "namespaces"); i >= 0 && i+2 < len(path) {
		return path[i+2]
	}
	return path[min(3, len(path)-1)]
}
