// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestExpandQuery(t *testing.T) {
	const selected = `(max by (namespace, pod) (kube_pod_owner{namespace="shop",owner_kind="Deployment",owner_name="web.v2"})` +
		` or max by (namespace, pod) (label_replace(kube_pod_owner{namespace="shop",owner_kind="ReplicaSet"},"replicaset","$1","owner_name","(.+)")` +
		` * on (namespace, replicaset) group_left () max by (namespace, replicaset) (kube_replicaset_owner{namespace="shop",owner_kind="Deployment",owner_name="web.v2"})))`
	tests := map[string]struct {
		target      Target
		query, want string
		fault       string
	}{
		"no placeholder":            {web, "up", "up", ""},
		"names and the range":       {web, `rate(a{ns="$(namespace)",k="$(kind)",n="$(name)"}[$(range)])`, `rate(a{ns="shop",k="Deployment",n="web.v2"}[300s])`, ""},
		"pods by the owner's names": {web, "sum(up * on (namespace, pod) $(pods))", "sum(up * on (namespace, pod) " + selected + ")", ""},
		"an unknown placeholder":    {web, "$(canary)", "", "unknown placeholder $(canary): there are $(namespace), $(kind), $(name), $(pods) and $(range)"},
		"a name that is none":       {Target{"shop", "Deployment", `a"} or vector(1) #`, nil}, "up", "", "the value of $(name) is not a name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tc.target.ExpandQuery(tc.query, 5*time.Minute)
			if (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("the error is %v, want %q", err, tc.fault)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Defects 10 and 11: each default query has one series of the target's own pods.
func TestEachDefaultQueryIsAboutThePodsOfTheTarget(t *testing.T) {
	for _, q := range DefaultQueries {
		text, err := web.ExpandQuery(q.PromQL, time.Minute)
		if err != nil {
			t.Errorf("%s: %v", q.Name, err)
		}
		aggregated := strings.HasPrefix(text, "sum(") || strings.HasPrefix(text, "(sum(") || strings.HasPrefix(text, "histogram_quantile(0.95, sum by (le) (")
		if !aggregated || strings.Count(text, "kube_replicaset_owner") == 0 || !(q.Floor > 0) {
			t.Errorf("%s has no one series of the target's pods, or no floor: %s", q.Name, text)
		}
	}
}

func TestTheWindowsOfAMetric(t *testing.T) {
	span := func(from, to time.Duration, step time.Duration) Span {
		return Span{written.Add(from), written.Add(to), step}
	}
	const m, s = time.Minute, time.Second
	tests := map[string]struct {
		drift, stabilized, now time.Duration // from the write
		want                   MetricWindows
	}{
		"a drift of an hour":                                 {-60 * m, 5 * m, 20 * m, MetricWindows{span(-90*m, -60*m, 15*s), span(-55*m, 0, 17*s), span(5*m, 20*m, 15*s), 5 * m}},
		"a drift of three days":                              {-72 * 60 * m, 5 * m, 10 * m, MetricWindows{span(-72*60*m-30*m, -72*60*m, 15*s), span(-72*60*m+5*m, 0, 1301*s), span(5*m, 10*m, 15*s), 5 * m}},
		"a drift of two minutes leaves five points":          {-2 * m, 5 * m, 10 * m, MetricWindows{span(-32*m, -2*m, 15*s), span(-m, 0, 15*s), span(5*m, 10*m, 15*s), 5 * m}},
		"a drift of ten seconds":                             {-10 * s, 5 * m, 10 * m, MetricWindows{span(-30*m-10*s, -10*s, 15*s), span(-10*s, 0, 15*s), span(5*m, 10*m, 15*s), 5 * m}},
		"a stabilization that is shorter than a rate":        {-60 * m, 10 * s, 5 * m, MetricWindows{span(-90*m, -60*m, 15*s), span(-59*m, 0, 18*s), span(m, 5*m, 15*s), m}},
		"a look before rates are about what follows":         {-60 * m, 10 * s, 30 * s, MetricWindows{span(-90*m, -60*m, 15*s), span(-59*m, 0, 18*s), span(m, 30*s, 15*s), m}},
		"a stabilization of an hour, with a look at its end": {-60 * m, 60 * m, 60 * m, MetricWindows{span(-90*m, -60*m, 15*s), span(-55*m, 0, 17*s), span(60*m, 60*m, 15*s), 5 * m}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := PlaceMetricWindows(written.Add(tc.drift), written, written.Add(tc.stabilized), written.Add(tc.now))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the times are, a window has at most 200 points, 15 s or more apart, and none of another window.
func TestNoWindowHasTooManyPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		after := func(name string, from time.Time) time.Time {
			return from.Add(time.Duration(rapid.Int64Range(0, int64(90*24*time.Hour)).Draw(t, name)))
		}
		drift := written
		wrote := after("written", drift)
		stabilized := after("stabilized", wrote)
		w := PlaceMetricWindows(drift, wrote, stabilized, after("now", stabilized))
		for name, s := range map[string]Span{"before": w.Before, "during": w.During, "after": w.After} {
			if s.Step < 15*time.Second || s.Step%time.Second != 0 || !s.Empty() && s.To.Sub(s.From)/s.Step+1 > MaxPoints {
				t.Errorf("%s: %s in steps of %s", name, s.To.Sub(s.From), s.Step)
			}
		}
		if w.Before.To.After(drift) || w.During.From.Before(drift) || w.During.To.After(wrote) || w.After.From.Before(stabilized) || w.After.From.Sub(wrote) < w.Range {
			t.Errorf("the windows overlap: %v", w)
		}
	})
}

// The reference names each default query with its objective and its floor.
func TestTheReferenceNamesTheDefaultQueries(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/effectiveness.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range DefaultQueries {
		if row := fmt.Sprintf("| `%s` | %s | %v |", q.Name, q.Objective, q.Floor); !strings.Contains(string(page), row) {
			t.Errorf("the page has no row that begins %q", row)
		}
	}
}

func TestAWindowIsBriefIfItsMedianCountsForNothing(t *testing.T) {
	for seconds, want := range map[int]bool{-1: true, 0: true, 59: true, 60: false, 3600: false} {
		if got := spanOf(written, written.Add(time.Duration(seconds)*time.Second)).Brief(); got != want {
			t.Errorf("a window of %d s is brief: %t", seconds, got)
		}
	}
}
