// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	noon        = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

func always() bool { return true }

// samples are the gauges of a collector, one line each.
func samples(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := ""
			for _, label := range m.GetLabel() {
				labels += fmt.Sprintf("{%s=%q}", label.GetName(), label.GetValue())
			}
			lines = append(lines, fmt.Sprintf("%s%s %v", family.GetName(), labels, m.GetGauge().GetValue()))
		}
	}
	return strings.Join(lines, "\n")
}

func TestLeadership(t *testing.T) {
	var l Leadership
	if got := samples(t, &l); got != "plumbline_assessor_leader 0" {
		t.Errorf("waiting: %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Start(ctx) }()
	poll.True(t, 10*time.Second, "it leads after it was started", l.Leading)
	if got := samples(t, &l); got != "plumbline_assessor_leader 1" {
		t.Errorf("leading: %s", got)
	}
	cancel()
	if err := <-ended; err != nil || l.Leading() {
		t.Errorf("after the end: %v, leading %t", err, l.Leading())
	}
}

// cached are Baselines in a cache, which cannot be read if err is not nil.
func cached(err error, items ...v1alpha1.Baseline) func(context.Context, func(*v1alpha1.Baseline)) error {
	return func(_ context.Context, f func(*v1alpha1.Baseline)) error {
		for i := range items {
			f(&items[i])
		}
		return err
	}
}

func drifting(level v1alpha1.SeverityLevel, since time.Duration, class v1alpha1.ActorClass) v1alpha1.Baseline {
	first := metav1.NewTime(noon.Add(-since))
	return v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{
		State: v1alpha1.StateDrifted, Severity: &v1alpha1.Severity{Level: level}, FirstSeenTime: &first,
		Findings: []v1alpha1.Finding{{Actor: v1alpha1.Actor{Class: class}}},
	}}
}

func TestFleet(t *testing.T) {
	contended := drifting(v1alpha1.SeverityHigh, time.Minute, v1alpha1.ActorUnknown)
	contended.Status.Contention = &v1alpha1.Contention{}
	retired, released := contended, contended
	retired.Status.RetirementTime = &metav1.Time{Time: noon}
	released.Status.State = v1alpha1.StateNotGuarded
	fleet := &Fleet{Active: always, Clock: clocktesting.NewFakePassiveClock(noon), Baselines: cached(nil,
		drifting(v1alpha1.SeverityHigh, time.Hour, v1alpha1.ActorUntrusted), contended, retired, released,
		drifting(v1alpha1.SeverityLow, 2*time.Hour, v1alpha1.ActorUntrusted), v1alpha1.Baseline{},
		drifting(v1alpha1.SeverityInfo, -time.Second, v1alpha1.ActorUntrusted), // another clock is ahead
	)}
	want := `plumbline_drift_contended_objects 1
plumbline_drift_open_age_seconds{severity="Critical"} 0
plumbline_drift_open_age_seconds{severity="High"} 3600
plumbline_drift_open_age_seconds{severity="Info"} 0
plumbline_drift_open_age_seconds{severity="Low"} 7200
plumbline_drift_open_age_seconds{severity="Medium"} 0
plumbline_drift_unattributed_objects 1`
	if diff := cmp.Diff(want, samples(t, fleet)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fleet.Baselines = cached(errors.New("no cache"))
	if got := samples(t, fleet); got != "" {
		t.Errorf("a list that failed gave figures:\n%s", got)
	}
	fleet.Baselines, fleet.Active = nil, func() bool { return false }
	if got := samples(t, fleet); got != "" {
		t.Errorf("a replica that waits gave figures:\n%s", got)
	}
}

// watched is what a tracker knows.
type watched struct {
	health  map[schema.GroupVersionKind]kube.Health
	pending map[kube.Key][]kube.Transition
}

func (w watched) Kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for gvk := range w.health {
		kinds = append(kinds, gvk)
	}
	return kinds
}
func (w watched) Health(gvk schema.GroupVersionKind) kube.Health { return w.health[gvk] }
func (w watched) View(key kube.Key) kube.View                    { return kube.View{Pending: w.pending[key]} }
func (w watched) Each(f func(kube.Key)) {
	for key := range w.pending {
		f(key)
	}
}

func TestFreshness(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	key := func(name string) kube.Key { return kube.Key{GroupVersionKind: deployments, Namespace: "n", Name: name} }
	tests := map[string]struct {
		objects watched
		want    string
	}{
		"nothing is watched": {watched{}, "plumbline_assessor_staleness_seconds 0"},
		"a watch is silent": {
			watched{health: map[schema.GroupVersionKind]kube.Health{deployments: {Contact: ago(time.Minute)}}},
			"plumbline_assessor_staleness_seconds 60\nplumbline_watch_contact_age_seconds{kind=\"Deployment.apps\"} 60",
		},
		"a kind that never answered counts from its first failure": {
			watched{health: map[schema.GroupVersionKind]kube.Health{deployments: {FailingSince: ago(time.Hour)}}},
			"plumbline_assessor_staleness_seconds 3600\nplumbline_watch_contact_age_seconds{kind=\"Deployment.apps\"} 3600",
		},
		"a kind that was just asked": {
			watched{health: map[schema.GroupVersionKind]kube.Health{deployments: {}}}, "plumbline_assessor_staleness_seconds 0",
		},
		"a change that was not settled is older than the silence": {
			watched{
				health: map[schema.GroupVersionKind]kube.Health{deployments: {Contact: ago(time.Second)}},
				pending: map[kube.Key][]kube.Transition{
					key("a"): {{SeenAt: ago(2 * time.Minute)}, {SeenAt: ago(time.Second)}}, key("b"): nil,
				},
			},
			"plumbline_assessor_staleness_seconds 120\nplumbline_watch_contact_age_seconds{kind=\"Deployment.apps\"} 1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := &Freshness{Objects: tc.objects, Active: always, Clock: clocktesting.NewFakePassiveClock(noon)}
			if diff := cmp.Diff(tc.want, samples(t, f)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			f.Active = func() bool { return false }
			if got := samples(t, f); got != "" {
				t.Errorf("a replica that waits gave figures:\n%s", got)
			}
		})
	}
}

func object(uid string, generation int64) *kube.Object {
	return &kube.Object{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Generation: generation}}
}

func TestWriteRate(t *testing.T) {
	tests := map[string]struct {
		every time.Duration
		step  int64
		steps int
		low   float64 // the figure lies between
		high  float64
	}{
		"nothing is written":                       {time.Minute, 0, 20, 0, 0},
		"an autoscaler at its fastest":             {15 * time.Second, 1, 60, 3.5, 4.5},
		"a loop":                                   {time.Second, 1, 900, 50, 61},
		"a burst of thirty writes is six a minute": {time.Millisecond, 1, 30, 5.5, 6.5},
		"generations that were not seen count":     {time.Minute, 30, 10, 25, 31},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakePassiveClock(noon)
			w := &WriteRate{Clock: clk, Log: logr.Discard()}
			key := kube.Key{GroupVersionKind: deployments, Namespace: "n", Name: "a"}
			for i := range tc.steps + 1 {
				w.Note(key, object("u", 1+int64(i)*tc.step))
				clk.SetTime(clk.Now().Add(tc.every))
			}
			if got := testutil.ToFloat64(w); got < tc.low || got > tc.high {
				t.Errorf("%v a minute, want between %v and %v", got, tc.low, tc.high)
			}
			clk.SetTime(clk.Now().Add(rateWindow))
			if got := testutil.ToFloat64(w); got != 0 || len(w.objects) != 0 {
				t.Errorf("a quiet window later: %v a minute, %d remembered", got, len(w.objects))
			}
		})
	}
}

func TestWriteRateNamesTheObjectInTheLogAndNowhereElse(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(noon)
	var lines []string
	w := &WriteRate{Clock: clk, Log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
	key := kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: "web"}
	for i := range int64(400) {
		w.Note(key, object("u", i))
		clk.SetTime(clk.Now().Add(time.Second))
	}
	if len(lines) == 0 || len(lines) > 2 || !strings.Contains(lines[0], `"name"="web"`) {
		t.Errorf("log lines: %q", lines)
	}
	if got := samples(t, w); strings.Contains(got, "web") {
		t.Errorf("the object is in a label: %s", got)
	}
}

func TestWriteRateForgetsWhatIsGone(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(noon)
	w := &WriteRate{Clock: clk, Log: logr.Discard()}
	key := kube.Key{GroupVersionKind: deployments, Namespace: "n", Name: "a"}
	w.Note(key, object("u", 1))
	w.Note(key, object("u", 1000))
	w.Note(key, object("v", 2)) // another object of the name
	if got := testutil.ToFloat64(w); got != 0 {
		t.Errorf("a new object has the rate %v of the one before", got)
	}
	w.Note(key, nil)
	if len(w.objects) != 0 {
		t.Error("a deleted object is remembered")
	}
	for i := range maxRated + 10 {
		w.Note(kube.Key{Name: strings.Repeat("x", i%7) + time.Duration(i).String()}, object("u", 1))
	}
	if len(w.objects) > maxRated {
		t.Errorf("%d objects are remembered", len(w.objects))
	}
}

// The figure is the average since one of the writes, over a window at least; so
// it is never more than the highest of these averages.
func TestWriteRateIsNeverTooHigh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clk := clocktesting.NewFakePassiveClock(noon)
		w := &WriteRate{Clock: clk, Log: logr.Discard()}
		key := kube.Key{GroupVersionKind: deployments, Name: "a"}
		generation := int64(1)
		w.Note(key, object("u", generation))
		history := []point{{noon, generation}}
		for range rapid.IntRange(1, 60).Draw(t, "writes") {
			clk.SetTime(clk.Now().Add(time.Duration(rapid.Int64Range(0, int64(4*time.Minute)).Draw(t, "gap"))))
			history = append(history, point{clk.Now(), generation})
			generation += rapid.Int64Range(0, 50).Draw(t, "generations")
			w.Note(key, object("u", generation))
		}
		highest := 0.0
		for _, since := range history {
			span := max(clk.Now().Sub(since.at), rateWindow)
			highest = max(highest, float64(generation-since.generation)/span.Minutes())
		}
		if got := testutil.ToFloat64(w); got > highest+1e-9 {
			t.Fatalf("%v a minute, the highest average is %v", got, highest)
		}
	})
}
