// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// repairedInBenchmark are as many objects, each in a namespace of its own.
const repairedInBenchmark = 5

// BenchmarkFeedback measures what is stored for a repaired object, without assessments and with them: the
// writes of the assessor and of the executor from the plan until the object is in sync, or its plan has the
// verdict.
func BenchmarkFeedback(b *testing.B) {
	for name, assesses := range map[string]bool{"without": false, "with": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				measureFeedback(b, assesses)
			}
			b.ReportMetric(0, "ns/op") // with one number for all of it nothing is said
		})
	}
}

func measureFeedback(b *testing.B, assesses bool) {
	b.Helper()
	assessed, executed := newStoredWrites(), newStoredWrites()
	startAssessor(b, func(s *assessor.Setup) {
		s.Config, s.Effectiveness.Enabled = assessed.of(s.Config), assesses
	})
	startExecutor(b, newEvidence(b), func(s *executor.Setup) {
		s.Config, s.AssessesEffects = executed.of(s.Config), assesses
	})
	var worlds []*world
	for range repairedInBenchmark {
		w := newWorld(b)
		w.Rollouts()
		w.UnderGuard()
		w.Drifted("web")
		readyPods(2)(w)
		worlds = append(worlds, w)
	}
	assessed.clear()
	executed.clear()
	for _, w := range worlds {
		plan := w.measuredPlan(v1alpha1.ActionReconcile)
		w.UntilIs("web", "InSync")
		if assesses {
			w.UntilPlan(plan, "the plan has the verdict", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Effect == v1alpha1.VerdictEffective })
		}
	}
	b.ReportMetric(executed.perObject(b, executed, "executor"), "executor-writes/object")
	b.ReportMetric(assessed.perObject(b, executed, "assessor"), "assessor-writes/object")
}

// sources answer as an Alertmanager and a Prometheus do, at once, and count what they are asked.
type sources struct {
	url   string
	asked atomic.Int64
}

// startSources has a watchdog that has just been received, and metrics that are always 1, or no Prometheus.
func startSources(b *testing.B, silent bool) *sources {
	b.Helper()
	s := &sources{}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v2/alerts", func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		answer := []map[string]any{}
		if now := time.Now().UTC(); r.URL.Query().Get("filter") == `alertname="Watchdog"` {
			answer = append(answer, map[string]any{
				"fingerprint": "f0", "labels": map[string]string{"alertname": "Watchdog"},
				"startsAt": now.Add(-time.Hour), "updatedAt": now, "endsAt": now.Add(4 * time.Minute),
			})
		}
		_ = json.NewEncoder(w).Encode(answer) // a client that is gone wants none
	})
	mux.HandleFunc("/api/v1/query_range", func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if silent {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		series := map[string]any{"metric": map[string]string{}, "values": pointsOf(r)}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"status": "success", "data": map[string]any{"resultType": "matrix", "result": []any{series}},
		})
	})
	server := httptest.NewServer(mux)
	b.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// pointsOf are 1 at each step of a range query.
func pointsOf(r *http.Request) (points [][2]any) {
	number := func(name string) float64 {
		n, err := strconv.ParseFloat(r.FormValue(name), 64)
		if err != nil {
			return 0
		}
		return n
	}
	step := max(number("step"), 1)
	for at := number("start"); at <= number("end"); at += step {
		points = append(points, [2]any{at, "1"})
	}
	return points
}

// heapInUse is in bytes.
func heapInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// reconciles are those of the controller of assessments, as controller-runtime counts them.
func reconciles(b *testing.B) (total float64) {
	b.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == "assessment" {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}
