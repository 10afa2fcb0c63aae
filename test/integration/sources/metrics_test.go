// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sources

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness/monitoring"
)

// The story of each recording, in minutes from its begin: a drift at 30, a write at 40, stable at 45, and the
// look at 55.
const (
	step                              = 15 * time.Second
	length                            = 55 * time.Minute
	drifted, wrote, stabilized, ended = 30 * time.Minute, 40 * time.Minute, 45 * time.Minute, length
)

// rates are how many events a second a counter has before the drift, during it, and after the write.
type rates struct{ before, during, after float64 }

// counter is what a counter has recorded.
func (r rates) counter(from time.Time, labels map[string]string) monitoring.Series {
	s := monitoring.Series{Labels: labels, Start: from, Step: step}
	sum := 0.0
	for at := time.Duration(0); at <= length; at += step {
		switch {
		case at < drifted:
			sum += r.before * step.Seconds()
		case at < wrote:
			sum += r.during * step.Seconds()
		default:
			sum += r.after * step.Seconds()
		}
		s.Values = append(s.Values, sum)
	}
	return s
}

func with(labels map[string]string, pairs ...string) map[string]string {
	labels = maps.Clone(labels)
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return labels
}

// recording are the series of two workloads, of which the names of one begin like those of the other, and of
// a pod that a fix replaced.
func recording(from time.Time) (all []monitoring.Series) {
	constant := func(labels map[string]string, value float64) {
		s := monitoring.Series{Labels: labels, Start: from, Step: step}
		for at := time.Duration(0); at <= length; at += step {
			s.Values = append(s.Values, value)
		}
		all = append(all, s)
	}
	for set, owner := range map[string]string{"web-5d4f": "web", "web-77e0": "web", "web-shop-1a2b": "web-shop"} {
		constant(map[string]string{"__name__": "kube_pod_owner", "namespace": "shop", "pod": set + "-abcde", "owner_kind": "ReplicaSet", "owner_name": set}, 1)
		constant(map[string]string{"__name__": "kube_replicaset_owner", "namespace": "shop", "replicaset": set, "owner_kind": "Deployment", "owner_name": owner}, 1)
	}
	const family = "http_server_request_duration_seconds_"
	requests := func(pod, code string, r rates) {
		of := map[string]string{"namespace": "shop", "pod": pod, "http_response_status_code": code}
		all = append(all, r.counter(from, with(of, "__name__", family+"count")))
		for le, share := range map[string]float64{"0.1": 0.5, "0.5": 0.97, "+Inf": 1} {
			all = append(all, rates{r.before * share, r.during * share, r.after * share}.counter(from, with(of, "__name__", family+"bucket", "le", le)))
		}
	}
	requests("web-5d4f-abcde", "200", rates{100, 96, 0}) // the old pod, which is gone after the write
	requests("web-77e0-abcde", "200", rates{0, 0, 100})
	requests("web-77e0-abcde", "500", rates{0, 0, 0.3})
	requests("web-5d4f-abcde", "500", rates{0.3, 4.1, 0})
	requests("web-shop-1a2b-abcde", "500", rates{50, 50, 500}) // which is no pod of web
	return all
}

func startPrometheus(t *testing.T) (*monitoring.Server, *effectiveness.Sources, time.Time) {
	t.Helper()
	s := monitoring.StartPrometheus(t, "{}", "--web.enable-remote-write-receiver")
	client, err := prometheus.New(source.Config{URL: s.URL()}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	sources := newSources(t)
	sources.Metrics = client
	from := time.Now().Add(-length).Truncate(time.Second)
	s.WriteSeries(recording(from)...)
	return s, sources, from
}

// Defects 10 and 11: the pods are those of the workload by their owners, and windows have medians.
func TestARealPrometheusTellsHowTheMetricsOfAWorkloadWere(t *testing.T) {
	t.Parallel()
	_, sources, from := startPrometheus(t)
	ask := func(target effect.Target, queries ...effect.Query) (all []effect.MetricOutcome) {
		for _, series := range sources.AskMetrics(t.Context(), &effectiveness.Question{
			Target: target, Queries: queries, DriftTime: from.Add(drifted), WrittenTime: from.Add(wrote), StabilizedTime: from.Add(stabilized), Now: from.Add(ended),
		}) {
			all = append(all, effect.JudgeMetric(series))
		}
		return all
	}
	t.Run("the default queries", func(t *testing.T) {
		want := []string{
			"errors 0.002991 0.04096 0.002991: 10000 back", "latency 0.483 0.483 0.483: 10000 the drift was not visible in it",
			"saturation: the query has no series", "throughput 100.3 100.1 100.3: 10000 the drift was not visible in it",
		}
		if diff := cmp.Diff(want, words(ask(web, effect.DefaultQueries...))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	query := func(promQL string) effect.Query {
		return effect.Query{Name: "q", PromQL: promQL, Objective: effect.LowerIsBetter, Floor: 0.001}
	}
	ofWeb := `rate(http_server_request_duration_seconds_count{namespace="$(namespace)"}[$(range)]) * on (namespace, pod) group_left () $(pods)`
	tests := map[string]struct {
		target effect.Target
		query  effect.Query
		want   []string
	}{
		"a workload whose name begins alike": {effect.Target{Namespace: "shop", Kind: "Deployment", Name: "web-shop"}, query("sum(" + ofWeb + ")"), []string{"q 50 50 500: 0 worse than during the drift"}},
		"another kind of the same name":      {effect.Target{Namespace: "shop", Kind: "StatefulSet", Name: "web"}, query("sum(" + ofWeb + ")"), []string{"q: the query has no series"}},
		"defect 18: another namespace":       {effect.Target{Namespace: "cart", Kind: "Deployment", Name: "web"}, query("sum(" + ofWeb + ")"), []string{"q: the query has no series"}},
		"defect 9: no errors of no requests": {web, query(`0 * sum(` + ofWeb + `) / 0`), []string{"q: 0 points before, 0 points during, 0 points after, wants 5"}},
		"defect 10: pods stay apart": {web, query(`sum by (pod) (` + ofWeb + `)`), []string{
			`q{pod="web-5d4f-abcde"} 100.3 100.1 0: 10000 the drift was not visible in it`, `q{pod="web-77e0-abcde"} 0 0 100.3: 0 worse than during the drift`,
		}},
		"a series that began after the drift": {web, query(`vector(1) and on () (vector(time()) > ` + fmt.Sprint(from.Add(drifted).Unix()) + `)`), []string{"q: 0 points before, wants 5"}},
		"a scalar is one series":              {web, query(`scalar(sum(` + ofWeb + `))`), []string{"q 100.3 100.1 100.3: 10000 the drift was not visible in it"}},
		"a text":                              {web, query(`"text"`), []string{"q: Prometheus answers 400"}},
		"a query that does not parse":         {web, query(`sum(`), []string{"q: Prometheus answers 400"}},
		"a placeholder that is unknown":       {web, query(`$(canary)`), []string{"q: unknown placeholder $(canary)"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, words(ask(tc.target, tc.query))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// words tells outcomes in short: a reason up to its first colon.
func words(all []effect.MetricOutcome) (lines []string) {
	for _, m := range all {
		if m.Score == nil {
			why, _, _ := strings.Cut(m.Why, ": ")
			lines = append(lines, m.Name+": "+why)
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %.4g %.4g %.4g: %d %s", m.Name, m.Before, m.During, m.After, *m.Score, m.Why))
	}
	return lines
}
