// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// The most that one assessment may cost, whatever its sources answer.
const (
	mostWrites = 8
	mostLists  = 4
)

// BenchmarkAssessments has 1,000 assessments in flight at once, of as many Deployments with a pod each. All of
// them were written in the same second, so all verdicts are due in the same second: two minutes later.
//
//   - answered: each source answers. The metrics have five points then, and not before.
//   - silent: Prometheus answers 503, and the verdict comes at the deadline.
//
// The figures, each for one assessment where it says so:
//
//   - due-to-verdict: from that second until a watch tells the verdict,
//   - verdicts/s: from the first verdict to the last one,
//   - writes, lists, gets: requests of the assessor to the API server about assessments, pods and targets,
//   - queries: requests to both sources,
//   - heap-KiB: the heap beyond that of the process before the writes, caches included.
//
// In the same run poll-reads are those of a client that reads target and pods every 15 s, as long as the
// assessment is in flight.
func BenchmarkAssessments(b *testing.B) {
	for _, name := range []string{"answered", "silent"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				newCrowd(b, name == "silent").measure(b)
			}
			b.ReportMetric(0, "ns/op") // with one number for all of it nothing is said
		})
	}
}

// inFlight is how many assessments are measured at once.
func inFlight(b *testing.B) int {
	b.Helper()
	text := os.Getenv("PLUMBLINE_BENCH_OBJECTS")
	if text == "" {
		return 1000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// The windows of the policy: the verdict is due after measuredFor, because the metrics have five points then, or
// because nothing is waited for any more.
const (
	stabilizedAfter = time.Minute
	measuredFor     = 2 * time.Minute
	waitedFor       = 10 * time.Minute
	polledEvery     = 15 * time.Second
)

// crowd is a world with many Deployments that are as authorized.
type crowd struct {
	*world
	names    []string
	requests *requests
	sources  *sources
	policy   *v1alpha1.RemediationPolicy
}

func newCrowd(b *testing.B, silent bool) *crowd {
	b.Helper()
	c := &crowd{world: newWorld(b), requests: &requests{counts: map[string]int{}}, sources: startSources(b, silent)}
	for i := range inFlight(b) {
		c.names = append(c.names, fmt.Sprint("web-", i))
	}
	c.each(c.deploy)
	startAssessor(b, assessesEffects, func(s *assessor.Setup) {
		s.Config = c.requests.of(s.Config)
		s.Effectiveness.Alertmanager.URL, s.Effectiveness.Watchdog, s.Effectiveness.Prometheus.URL = c.sources.url, "Watchdog", c.sources.url
	})
	c.UnderGuard()
	validity := waitedFor
	if silent {
		validity = measuredFor
	}
	c.policy = c.world.policy(selectsNothing, func(s *v1alpha1.RemediationPolicySpec) {
		s.Safety.Cooldown = &metav1.Duration{Duration: stabilizedAfter}
		s.Effectiveness.Stabilization, s.Effectiveness.Validity = &metav1.Duration{Duration: stabilizedAfter}, &metav1.Duration{Duration: validity}
		s.Effectiveness.Metrics = &v1alpha1.EffectMetrics{Queries: []v1alpha1.EffectQuery{{
			Name: "errors", Query: `errors{namespace="$(namespace)"}`, Objective: v1alpha1.ObjectiveLower, Floor: "0.01",
		}}}
	})
	return c
}

func (c *crowd) each(do func(ctx context.Context, name string) error) {
	c.t.Helper()
	group, ctx := errgroup.WithContext(c.t.Context())
	group.SetLimit(16)
	for _, name := range c.names {
		group.Go(func() error { return do(ctx, name) })
	}
	c.Must(group.Wait())
}

// deploy makes a Deployment with one ready pod.
func (c *crowd) deploy(ctx context.Context, name string) error {
	d := guarded.Workload(c.Name, name, guarded.Image, 1)
	if err := c.As(ci).Create(ctx, d); err != nil {
		return err
	}
	d.Status = remediation.RolledOut(d, true)
	if err := admin.Status().Update(ctx, d); err != nil {
		return err
	}
	return c.CreatePods(ctx, name, remediation.PodReady)
}

func (c *crowd) measure(b *testing.B) {
	baselines := c.adopted()
	ends := c.watchEnds(b)
	c.requests.clear()
	empty, reconciled := heapInUse(), reconciles(b)
	written := c.write(baselines)
	due := written.Add(measuredFor)
	poll.Until(b, setUp, "all assessments are in flight", func() error { return ends.begun(len(c.names)) })
	// Above zero, some assessments were not in flight together.
	b.ReportMetric(max(time.Since(written.Add(stabilizedAfter)), 0).Seconds(), "begun-late-s")
	used := (heapInUse() - empty) / 1024 / float64(len(c.names))
	poll.Until(b, measuredFor+setUp, "all assessments have ended", func() error { return ends.all(len(c.names)) })
	n := float64(len(c.names))
	first, last, lateness := ends.since(due)
	quantile.Report(b, "due-to-verdict", lateness)
	b.ReportMetric(n/max(last.Sub(first), time.Millisecond).Seconds(), "verdicts/s")
	b.ReportMetric((reconciles(b)-reconciled)/n, "reconciles/assessment")
	b.ReportMetric(used, "heap-KiB/assessment")
	c.report(b, n)
	b.ReportMetric(float64(c.pollReads(last.Sub(written)))/n, "poll-reads/assessment")
	b.Logf("the reasons are %v", ends.reasons)
}

// adopted waits until each Deployment has its Baseline.
func (c *crowd) adopted() []v1alpha1.Baseline {
	c.t.Helper()
	var all v1alpha1.BaselineList
	poll.Until(c.t, setUp, "all are adopted", func() error {
		if err := admin.List(c.t.Context(), &all, client.InNamespace(c.Name)); err != nil {
			return err
		}
		n := 0
		for i := range all.Items {
			if all.Items[i].Status.State == v1alpha1.StateInSync {
				n++
			}
		}
		if n < len(c.names) {
			return fmt.Errorf("%d of %d are", n, len(c.names))
		}
		return nil
	})
	return all.Items
}

// targetsOfPlan is how many targets a plan may have.
const targetsOfPlan = 10

// write stores plans that have written each Deployment in one second, as an executor would.
func (c *crowd) write(baselines []v1alpha1.Baseline) time.Time {
	c.t.Helper()
	at := metav1.NewTime(time.Now().Truncate(time.Second))
	store := c.As(remediation.ExecutorUser)
	group := errgroup.Group{}
	group.SetLimit(8)
	for some := range slices.Chunk(baselines, targetsOfPlan) {
		p := c.PlanOf(c.policy)
		var steps []v1alpha1.PlanStep
		for i := range some {
			p.Spec.Plan.Targets = append(p.Spec.Plan.Targets, writtenTarget(&some[i], at))
			p.Spec.Plan.Batches = append(p.Spec.Plan.Batches, v1alpha1.PlanBatch{Order: int32(i), Steps: []int32{int32(i)}, RequiresHealthCheck: v1alpha1.Enabled}) //nolint:gosec // ten
			steps = append(steps, v1alpha1.PlanStep{
				Index: int32(i), State: v1alpha1.StepVerified, CompletionTime: &at, //nolint:gosec // ten
				Result: &v1alpha1.StepResult{
					ResourceVersion: "1", Hash: some[i].Status.Observed.Hash, UID: some[i].Status.Observed.UID, Generation: 1, Origin: v1alpha1.ResultResponse, RecordTime: at,
				},
			})
		}
		c.Store(p)
		group.Go(func() error {
			p.Status.Phase, p.Status.Epoch, p.Status.Holder, p.Status.Steps = v1alpha1.PlanSucceeded, 1, "bench", steps
			p.Status.CompletionTime = &at
			return store.Status().Update(c.t.Context(), p)
		})
	}
	c.Must(group.Wait())
	return at.Time
}

// writtenTarget is a target that drifted ten minutes before it was written, so that its metrics have points.
func writtenTarget(b *v1alpha1.Baseline, at metav1.Time) v1alpha1.PlanTarget {
	return v1alpha1.PlanTarget{
		BaselineTarget: b.Spec.Target, BaselineName: b.Name, UID: b.Status.Observed.UID,
		DriftedHash: "pl1:sha256:" + strings.Repeat("d", 64), DesiredHash: b.Spec.Authorized.Hash,
		Revision: b.Spec.Authorized.Revision, RevisionHash: b.Spec.Authorized.Hash, Action: v1alpha1.ActionReconcile,
		Severity:  v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Urgency: v1alpha1.UrgencyNormal},
		DriftType: v1alpha1.DriftOther, FirstSeenTime: metav1.NewTime(at.Add(-10 * time.Minute)),
	}
}

// report says what the assessments cost, and fails beyond the bounds.
func (c *crowd) report(b *testing.B, n float64) {
	b.Helper()
	c.requests.mu.Lock()
	counts := maps.Clone(c.requests.counts)
	c.requests.mu.Unlock()
	sum := func(names ...string) (total float64) {
		for _, name := range names {
			total += float64(counts[name])
		}
		return total / n
	}
	writes, lists := sum("post effectivenessassessments", "patch effectivenessassessments"), sum("list pods")
	b.ReportMetric(writes, "writes/assessment")
	b.ReportMetric(lists, "lists/assessment")
	b.ReportMetric(sum("get deployments", "get effectivenessassessments"), "gets/assessment")
	b.ReportMetric(float64(c.sources.asked.Load())/n, "queries/assessment")
	if writes > mostWrites || lists > mostLists {
		b.Errorf("an assessment costs %.2f writes and %.2f lists, want at most %d and %d", writes, lists, mostWrites, mostLists)
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if !strings.HasPrefix(what, "watch") {
			b.Logf("%-40s %.3f for each", what, float64(counts[what])/n)
		}
	}
}

// pollReads reads target and pods of each Deployment as often as a client that looks every 15 s.
func (c *crowd) pollReads(flight time.Duration) (reads int64) {
	c.t.Helper()
	var n atomic.Int64
	for range (flight + polledEvery - 1) / polledEvery {
		c.each(func(ctx context.Context, name string) error {
			if err := admin.Get(ctx, client.ObjectKey{Namespace: c.Name, Name: name}, guarded.Deployment(c.Name, name)); err != nil {
				return err
			}
			n.Add(2)
			return admin.List(ctx, &corev1.PodList{}, client.InNamespace(c.Name), client.MatchingLabels{"app": name})
		})
	}
	return n.Load()
}

// assessmentEnds are when a watch told that assessments have ended, by their names.
type assessmentEnds struct {
	mu      sync.Mutex
	seen    map[string]bool
	ended   map[string]time.Time
	reasons map[v1alpha1.AssessmentReason]int
}

func (e *assessmentEnds) note(o any) {
	a, is := o.(*v1alpha1.EffectivenessAssessment)
	if !is {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[a.Name] = true
	if effect.Phase(a.Status.Phase).Ended() && e.ended[a.Name].IsZero() {
		e.ended[a.Name] = time.Now()
		e.reasons[a.Status.Reason]++
	}
}

func (e *assessmentEnds) begun(n int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.seen) < n {
		return fmt.Errorf("%d of %d have begun", len(e.seen), n)
	}
	return nil
}

func (e *assessmentEnds) all(n int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ended) < n {
		return fmt.Errorf("%d of %d have", len(e.ended), n)
	}
	return nil
}

// since returns the first and the last end, and how long after a time each one was.
func (e *assessmentEnds) since(due time.Time) (first, last time.Time, late []time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, at := range e.ended {
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
		late = append(late, at.Sub(due))
	}
	return first, last, late
}

func (c *crowd) watchEnds(b *testing.B) *assessmentEnds {
	b.Helper()
	e := &assessmentEnds{seen: map[string]bool{}, ended: map[string]time.Time{}, reasons: map[v1alpha1.AssessmentReason]int{}}
	told, err := cache.New(config, cache.Options{Scheme: scheme.Scheme, DefaultNamespaces: map[string]cache.Config{c.Name: {}}, DefaultUnsafeDisableDeepCopy: new(true)})
	c.Must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	var all sync.WaitGroup
	b.Cleanup(func() { cancel(); all.Wait() })
	informer, err := told.GetInformer(ctx, &v1alpha1.EffectivenessAssessment{}, cache.BlockUntilSynced(false))
	c.Must(err)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: e.note, UpdateFunc: func(_, o any) { e.note(o) }})
	c.Must(err)
	all.Go(func() {
		if err := told.Start(ctx); err != nil {
			b.Errorf("watching: %v", err)
		}
	})
	if !told.WaitForCacheSync(ctx) {
		b.Fatal("the watch does not begin")
	}
	return e
}
