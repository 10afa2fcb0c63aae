// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

// A look without a write reads the same checkpoint again, and counts its cells once.
func TestEachCellIsCountedOnce(t *testing.T) {
	w, registry, _ := measured(t)
	w.looks()
	for n := range uint64(5) {
		w.tells(n+1, 0)
		w.looks()
	}
	refuses := true
	w.refusing(&refuses)
	w.clock.Step(time.Minute)
	w.look()
	refuses = false
	w.clock.Step(time.Minute)
	w.looks()
	wantSample(t, registry, "plumbline_release_cells_total", "canary", 5)
	wantSample(t, registry, "plumbline_release_cells_total", "active", 5)
	wantSample(t, registry, "plumbline_release_gaps_total", "", 0)
}

func TestEachAnswerOfAGateIsCountedOnce(t *testing.T) {
	w, _ := gated(t)
	registry := prometheus.NewRegistry()
	var err error
	if w.Metrics, err = NewRolloutMetrics(registry); err != nil {
		t.Fatal(err)
	}
	resign := w.Metrics.lead(w.clock)
	w.looks()
	for range 3 {
		w.looks()
	}
	start := testutil.ToFloat64(w.Metrics.answers.WithLabelValues("Webhook", "Pass"))
	if start != 3 { // before the run, before the stage, and during the stage
		t.Errorf("%v webhooks have passed, want 3", start)
	}
	w.tells(1, 0)
	for range 4 {
		w.looks()
	}
	if got := testutil.ToFloat64(w.Metrics.answers.WithLabelValues("Query", "Pass")); got != 2 {
		t.Errorf("%v queries have passed, want 2: at the start and ten seconds later", got)
	}
	resign()
	before := testutil.ToFloat64(w.Metrics.answers.WithLabelValues("Query", "Pass"))
	w.tells(2, 0)
	w.looks()
	if got := testutil.ToFloat64(w.Metrics.answers.WithLabelValues("Query", "Pass")); got != before {
		t.Error("a process that does not lead counts answers")
	}
}

func TestAnAnswerOfAnotherProcessIsNotCounted(t *testing.T) {
	m, err := NewRolloutMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	m.lead(w.clock)
	key := gates.Key{Kind: gates.KindQuery, Name: "errors"}
	m.countAnswers(types.NamespacedName{Namespace: "shop", Name: "web"}, []gates.State{{Key: key, Result: gates.Pass, Time: noon}}, nil)
	if got := testutil.ToFloat64(m.answers.WithLabelValues("Query", "Pass")); got != 0 {
		t.Errorf("%v answers", got)
	}
}

func TestSeriesNameReleasesWhileARunIsOn(t *testing.T) {
	w, registry, resign := measured(t)
	if err := registry.Register(w.Metrics.Series()); err != nil {
		t.Fatal(err)
	}
	const name = "plumbline_release_weight_ratio"
	want := func(text string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(text), name); err != nil {
			t.Error(err)
		}
	}
	want("")
	w.looks()
	w.look()
	want(`# HELP plumbline_release_weight_ratio Part of the requests of a Service at a variation, from 0 to 1, while a run is under way, by kind: wanted, acknowledged (by all proxies), seen; on the leader.
# TYPE plumbline_release_weight_ratio gauge
plumbline_release_weight_ratio{kind="acknowledged",release="web",release_namespace="shop",variation="canary"} 0.1
plumbline_release_weight_ratio{kind="acknowledged",release="web",release_namespace="shop",variation="stable"} 0.9
plumbline_release_weight_ratio{kind="wanted",release="web",release_namespace="shop",variation="canary"} 0.1
plumbline_release_weight_ratio{kind="wanted",release="web",release_namespace="shop",variation="stable"} 0.9
`)
	problems, err := testutil.GatherAndLint(registry, name)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v: %v", problems, err)
	}
	resign()
	want("")
	w.Metrics.lead(w.clock)
	for n := range uint64(12) {
		w.tells(n+1, 0)
		w.look()
	}
	if r := w.looks(); r.Status.Rollout.Run.State != "Completed" {
		t.Fatalf("the run is %s", r.Status.Rollout.Run.State)
	}
	want("")
}

func TestSeenPart(t *testing.T) {
	for name, tc := range map[string]struct {
		observed []v1alpha1.ObservedVariation
		want     float64
		is       bool
	}{
		"the requests of one by all":   {[]v1alpha1.ObservedVariation{{Variation: "a", Requests: new(int64(30))}, {Variation: "b", Requests: new(int64(10))}}, 0.25, true},
		"no request":                   {[]v1alpha1.ObservedVariation{{Variation: "a", Requests: new(int64(0))}, {Variation: "b", Requests: new(int64(0))}}, 0, false},
		"a count that is missing":      {[]v1alpha1.ObservedVariation{{Variation: "a"}, {Variation: "b", Requests: new(int64(10))}}, 0, false},
		"nothing was observed":         {nil, 0, false},
		"a variation that has no line": {[]v1alpha1.ObservedVariation{{Variation: "a", Requests: new(int64(30))}}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, is := seenPart(tc.observed, "b"); got != tc.want || is != tc.is {
				t.Errorf("got %v, %t", got, is)
			}
		})
	}
}
