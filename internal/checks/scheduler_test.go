// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// fleet is what checks see of the world: objects, what the watch has of them, and
// how long a read takes.
type fleet struct {
	mu      sync.Mutex
	views   map[kube.Key]kube.View
	objects map[kube.Key]Reading
	takes   time.Duration
	fails   error
	atOnce  int
	most    int // reads at once
	reads   int
	looked  map[kube.Key]bool
}

// Look implements Trigger.
func (f *fleet) Look(key kube.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked[key] = true
}

func (f *fleet) View(key kube.Key) kube.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.views[key]
}

func (f *fleet) RestoreContent(kube.Key, *kube.Object) {}

func (f *fleet) Settle(kube.Key, []kube.Transition) {}

func (f *fleet) Health(schema.GroupVersionKind) kube.Health { return kube.Health{} }

// Snapshot implements Guards.
func (f *fleet) Snapshot() *guards.Snapshot {
	return &guards.Snapshot{Resources: map[schema.GroupVersionKind]kube.Resource{deployments: {GVK: deployments, Plural: "deployments"}}}
}

// Active implements Defaults: no bound but the maximum.
func (f *fleet) Active() *guarddefaults.Active {
	d := v1alpha1.GuardDefaults{Spec: v1alpha1.GuardDefaultsSpec{DriftThreshold: "100%"}}
	return guarddefaults.NewActive([]v1alpha1.GuardDefaults{d}, nil)
}

// Read implements ObjectReader.
func (f *fleet) Read(ctx context.Context, _ kube.Resource, key kube.Key) (Reading, error) {
	f.mu.Lock()
	f.reads++
	f.atOnce++
	f.most = max(f.most, f.atOnce)
	reading, fails := f.objects[key], f.fails
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.atOnce--
	}()
	select {
	case <-ctx.Done():
		return Reading{}, ctx.Err()
	case <-time.After(f.takes): // of a bubble's own time
	}
	reading.At = time.Now()
	return reading, fails
}

// counts are the reads so far, and how many of them went on at once at most.
func (f *fleet) counts() (reads, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads, f.most
}

// deliver has the watch come to a version.
func (f *fleet) deliver(key kube.Key, rv int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views[key] = kube.View{Current: version(rv), Progress: fmt.Sprint(rv)}
}

func (f *fleet) write(key kube.Key, rv int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[key] = read(rv)
}

// guarded puts an object on the agenda whose check is due, as version 1.
func (f *fleet) guarded(c *Scheduler, name string) kube.Key {
	key := keyNamed(name)
	f.deliver(key, 1)
	f.write(key, 1)
	found := Appointment{Timing: resync.Timing{UID: name, Period: time.Hour, LastCheck: time.Now().Add(-2 * time.Hour)}}
	found.Told = Told{UID: "u", FullHash: string(version(1).FullHash)}
	c.Agenda.Note(key, found, time.Now())
	return key
}

// checksOf are checks of a fleet, not started yet.
func checksOf(t *testing.T, f *fleet, objects ...client.Object) *Scheduler {
	t.Helper()
	agenda, types := NewAgenda(), runtime.NewScheme()
	metrics, err := NewMetrics(prometheus.NewRegistry(), clock.RealClock{}, agenda)
	if err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	f.views, f.objects, f.looked = map[kube.Key]kube.View{}, map[kube.Key]Reading{}, map[kube.Key]bool{}
	return &Scheduler{
		Client: fakeclient.NewBuilder(types).WithObjects(objects...).Build(), Agenda: agenda, Watch: NewAhead(f), Trigger: f,
		Live: f, Guards: f, Defaults: f, Metrics: metrics, MaxConcurrent: 3, Clock: clock.RealClock{}, Log: logr.Discard(),
	}
}

// run starts checks until the test's end; that it ends then, and all of them with
// it, the bubble proves.
func (c *Scheduler) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		if err := c.Start(ctx); err != nil {
			t.Errorf("checks ended with %v", err)
		}
	})
	t.Cleanup(func() { cancel(); over.Wait() })
}

// counted are the checks by their result.
func (c *Scheduler) counted() map[string]float64 {
	counts := map[string]float64{}
	for _, result := range []result{resultUnchanged, resultChanged, resultMissed, resultFailed} {
		if n := testutil.ToFloat64(c.Metrics.total.WithLabelValues("Deployment.apps", string(result))); n > 0 {
			counts[string(result)] = n
		}
	}
	return counts
}

func TestWhatBecomesOfACheck(t *testing.T) {
	tests := map[string]struct {
		happens func(f *fleet, key kube.Key)
		after   time.Duration
		want    map[string]float64
		// differs is what the reconciliation is told; nil when it is told nothing.
		differs *bool
		view    string
		reads   int
	}{
		"nothing changed": {after: time.Second, want: map[string]float64{"unchanged": 1}, differs: new(false), view: "1:", reads: 1},
		"the watch delivers a change a little later": {
			happens: func(f *fleet, key kube.Key) {
				f.write(key, 2)
				time.AfterFunc(3*time.Second, func() { f.deliver(key, 2) })
			},
			after: 5 * time.Second, want: map[string]float64{"changed": 1}, differs: new(true), view: "2:", reads: 1,
		},
		"the watch never delivers a change": {
			happens: func(f *fleet, key kube.Key) { f.write(key, 2) },
			after:   CatchUp + time.Second, want: map[string]float64{"missed": 1}, differs: new(true), view: "2: 1>2?", reads: 2,
		},
		"it is not missed before the watch had its time": {
			happens: func(f *fleet, key kube.Key) { f.write(key, 2) }, after: CatchUp - time.Second, view: "1:", reads: 1,
		},
		"an event was lost: nobody waits": {
			happens: func(f *fleet, key kube.Key) {
				f.write(key, 2)
				f.views[key] = kube.View{Current: version(1), Progress: "9"}
			},
			after: time.Second, want: map[string]float64{"missed": 1}, differs: new(true), view: "2: 1>2?", reads: 2,
		},
		"it is gone, and the watch does not know": {
			happens: func(f *fleet, key kube.Key) { f.objects[key] = readNone(4) },
			after:   CatchUp + time.Second, want: map[string]float64{"missed": 1}, differs: new(true), view: "-: 1>-?", reads: 2,
		},
		"it cannot be read": {
			happens: func(f *fleet, _ kube.Key) { f.fails = errors.New("forbidden") },
			after:   time.Second, want: map[string]float64{"failed": 1}, view: "1:", reads: 1,
		},
		"it cannot be judged": {
			happens: func(f *fleet, key kube.Key) { f.views[key] = kube.View{Unknown: errors.New("forbidden")} },
			after:   time.Second, want: map[string]float64{"failed": 1}, view: "-:", reads: 1,
		},
		"the read takes too long": {
			happens: func(f *fleet, _ kube.Key) { f.takes = time.Hour },
			after:   ReadTimeout + time.Second, want: map[string]float64{"failed": 1}, view: "1:", reads: 1,
		},
		"nobody takes the answer": {
			after: unansweredAfter + 2*time.Second, want: map[string]float64{"unchanged": 1, "failed": 1}, view: "1:", reads: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{}
				c := checksOf(t, f)
				key := f.guarded(c, "web")
				if tc.happens != nil {
					tc.happens(f, key)
				}
				c.run(t)
				<-time.After(tc.after) // of the bubble's own time
				synctest.Wait()
				if diff := cmp.Diff(tc.want, c.counted()); diff != "" && len(tc.want)+len(c.counted()) > 0 {
					t.Errorf("checks (-want +got):\n%s", diff)
				}
				var differs *bool
				if answer := c.Agenda.AnswerOf(key); answer != nil {
					differs = &answer.Differs
				}
				if diff := cmp.Diff(tc.differs, differs); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
				if looked := f.looked[key]; looked != (tc.differs != nil || len(tc.want) == 2) {
					t.Errorf("a reconciliation was asked for: %t", looked)
				}
				if got := toldOf(c.Watch.View(key)); got != tc.view {
					t.Errorf("the view is %q, want %q", got, tc.view)
				}
				if reads, _ := f.counts(); reads != tc.reads {
					t.Errorf("%d reads, want %d", reads, tc.reads)
				}
			})
		})
	}
}

// Whoever is due at once is checked at a pace, and never more than the maximum at
// the same time; nobody is left out.
func TestManyChecksAtOnceKeepTheirPace(t *testing.T) {
	const objects = 200
	paced := time.Duration((objects - startsAtOnce) / float64(startsPerSecond) * float64(time.Second))
	tests := map[string]struct {
		takes         time.Duration
		maxConcurrent int
		fastest       time.Duration
	}{
		"short ones by the pace":   {takes: 50 * time.Millisecond, maxConcurrent: 100, fastest: paced},
		"long ones by the maximum": {takes: 2 * time.Second, maxConcurrent: 7, fastest: objects / 7 * 2 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{takes: tc.takes}
				c := checksOf(t, f)
				c.MaxConcurrent = tc.maxConcurrent
				for i := range objects {
					f.guarded(c, fmt.Sprint("web-", i))
				}
				c.run(t)
				began := time.Now()
				for reads, _ := f.counts(); reads < objects && time.Since(began) < 2*time.Minute; reads, _ = f.counts() {
					<-time.After(20 * time.Millisecond)
					synctest.Wait()
					c.answerAll()
				}
				took := time.Since(began)
				reads, most := f.counts()
				if took < tc.fastest || took > tc.fastest*3/2 {
					t.Errorf("%d checks took %s, want %s or a little more", reads, took, tc.fastest)
				}
				if most > c.MaxConcurrent || reads != objects {
					t.Errorf("%d reads, up to %d at once, want %d and up to %d", reads, most, objects, c.MaxConcurrent)
				}
			})
		})
	}
}

// answerAll stands for the reconciliations.
func (c *Scheduler) answerAll() {
	agenda := c.Agenda
	for key, e := range agenda.entries {
		if a := agenda.AnswerOf(key); a != nil {
			agenda.EndCheck(key, a)
			found := e.Appointment
			found.Timing.LastCheck = time.Now()
			agenda.Note(key, found, time.Now())
		}
	}
}

// A claim holds as long as its plan goes on.
// Where no GuardDefaults say a threshold, that of the option holds.
func TestTheThresholdOfTheOptionBoundsTheChecks(t *testing.T) {
	want := limits{maxConcurrent: 3, installation: 40, environments: map[string]resync.Percent{}}
	if diff := cmp.Diff(want, limitsOf(nil, 40, 3), cmp.AllowUnexported(limits{})); diff != "" {
		t.Errorf("without GuardDefaults (-want +got):\n%s", diff)
	}
	silent := v1alpha1.GuardDefaults{Spec: v1alpha1.GuardDefaultsSpec{EnvironmentName: "prod"}}
	want.environments["prod"] = 40
	if diff := cmp.Diff(want, limitsOf(guarddefaults.NewActive([]v1alpha1.GuardDefaults{silent}, sets.New("prod")), 40, 3), cmp.AllowUnexported(limits{})); diff != "" {
		t.Errorf("with GuardDefaults that say none (-want +got):\n%s", diff)
	}
	want.environments, want.installation = map[string]resync.Percent{}, 100
	if diff := cmp.Diff(want, limitsOf((&fleet{}).Active(), 40, 3), cmp.AllowUnexported(limits{})); diff != "" {
		t.Errorf("with GuardDefaults that say one (-want +got):\n%s", diff)
	}
}

func TestAClaimHoldsAsLongAsItsPlan(t *testing.T) {
	plan := func(name string, phase v1alpha1.PlanPhase) *v1alpha1.RemediationPlan {
		p := &v1alpha1.RemediationPlan{}
		p.Namespace, p.Name, p.Status.Phase = "shop", name, phase
		return p
	}
	c := checksOf(t, &fleet{}, plan("running", v1alpha1.PlanRunning), plan("over", v1alpha1.PlanSucceeded), plan("new", ""))
	var claims []claimed
	for _, name := range []string{"running", "over", "new", "gone"} {
		claims = append(claims, claimed{keyNamed(name), name})
	}
	want := map[kube.Key]bool{keyNamed("running"): true, keyNamed("over"): false, keyNamed("new"): true, keyNamed("gone"): false}
	if diff := cmp.Diff(want, c.held(t.Context(), claims)); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Client = failing{c.Client}
	if held := c.held(ctx, claims[1:2]); !held[keyNamed("over")] {
		t.Error("a plan that cannot be read holds nothing")
	}
}

// failing is an API server that cannot be reached.
type failing struct{ client.Reader }

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("unreachable")
}

func TestTheFiguresOfChecks(t *testing.T) {
	a := NewAgenda()
	now := epoch
	note := func(name string, ago time.Duration, obstacle resync.Obstacle) {
		found := Appointment{Timing: resync.Timing{UID: name, Period: time.Hour, LastCheck: now.Add(-ago)}, Settled: obstacle}
		a.Note(keyNamed(name), found, now)
	}
	note("new", 0, "")
	note("a", 3*time.Hour, "")
	note("b", 4*time.Hour, "")
	note("fight", 9*time.Hour, resync.ObstacleContended)
	a.Note(keyNamed("off"), Appointment{}, now)
	for _, key := range a.choose(now, nil, limits{maxConcurrent: 1, installation: 100}) {
		a.begin(key)
	}
	got := a.figures(now)
	want := agendaFigures{
		running: 1, waiting: map[resync.Obstacle]int{resync.ObstacleThreshold: 1, resync.ObstacleContended: 1},
		oldest: now.Add(-9 * time.Hour), overdue: got.overdue,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(agendaFigures{})); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if got.overdue < 108*time.Minute || got.overdue > 2*time.Hour {
		t.Errorf("overdue is %s: a waits for room since then, and the fight does not count", got.overdue)
	}
}
