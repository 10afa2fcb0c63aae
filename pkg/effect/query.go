// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/placeholder"
)

// Query is a metric of a target in PromQL. It can have the placeholders $(namespace), $(kind), $(name),
// $(pods) and $(range): see [Target.ExpandQuery].
type Query struct {
	Name      string
	PromQL    string
	Objective Objective
	// Floor is the value below which the metric has no meaning; positive.
	Floor float64
}

// The requests of a target by the semantic conventions of OpenTelemetry, as Prometheus names them, and
// restricted to the target's pods.
const (
	requests   = `rate(http_server_request_duration_seconds_count{namespace="$(namespace)"}[$(range)])` + ofPods
	failures   = `rate(http_server_request_duration_seconds_count{namespace="$(namespace)",http_response_status_code=~"5.."}[$(range)])` + ofPods
	buckets    = `rate(http_server_request_duration_seconds_bucket{namespace="$(namespace)"}[$(range)])` + ofPods
	workingSet = `container_memory_working_set_bytes{namespace="$(namespace)",container!="",container!="POD"}` + ofPods
	limits     = `kube_pod_container_resource_limits{namespace="$(namespace)",resource="memory"}` + ofPods
	ofPods     = ` * on (namespace, pod) group_left () $(pods)`
)

// DefaultQueries are the metrics where a policy names none. Each has one series for all pods, so that no
// pod is compared with another one. A service without failures has no series of failures, and 0 errors.
var DefaultQueries = []Query{
	{"errors", "(sum(" + failures + ") or 0 * sum(" + requests + ")) / sum(" + requests + ")", LowerIsBetter, 0.001},
	{"latency", "histogram_quantile(0.95, sum by (le) (" + buckets + "))", LowerIsBetter, 0.005},
	{"saturation", "sum(" + workingSet + ") / sum(" + limits + ")", LowerIsBetter, 0.1},
	{"throughput", "sum(" + requests + ")", HigherIsBetter, 0.1},
}

// ownedPods selects the pods of a target, by what kube-state-metrics tells of owners: those that the target owns,
// and those of ReplicaSets that it owns. Each has the value 1. The pods of the past are among them, and no
// pod is among them because its name begins like that of the target.
const ownedPods = `(max by (namespace, pod) (kube_pod_owner{namespace="$(namespace)",owner_kind="$(kind)",owner_name="$(name)"})` +
	` or max by (namespace, pod) (label_replace(kube_pod_owner{namespace="$(namespace)",owner_kind="ReplicaSet"},"replicaset","$1","owner_name","(.+)")` +
	` * on (namespace, replicaset) group_left () max by (namespace, replicaset) (kube_replicaset_owner{namespace="$(namespace)",owner_kind="$(kind)",owner_name="$(name)"})))`

// ExpandQuery replaces the placeholders of a query: the namespace, kind and name of the target, an
// expression that selects its pods, and how far back a rate looks.
func (t *Target) ExpandQuery(promQL string, rate time.Duration) (string, error) {
	values := t.values(Equals)
	selected, err := placeholder.Expand(ownedPods, values)
	if err != nil {
		return "", err
	}
	return placeholder.Expand(promQL, append(values,
		placeholder.Value{Name: "pods", Text: selected},
		placeholder.Value{Name: "range", Text: fmt.Sprintf("%ds", int64(rate.Seconds()))}))
}

// The bounds of a range query.
const (
	// MaxPoints of a window.
	MaxPoints = 200
	// minStep is the least time between two points.
	minStep = 15 * time.Second
	// lookback is how much of the time before a drift is the reference.
	lookback = 30 * time.Minute
	// The bounds of how far back a rate looks.
	minRange, maxRange = time.Minute, 5 * time.Minute
)

// Span is a window of a range query. Its points are at From, and at each step from there up to To.
type Span struct {
	From, To time.Time
	Step     time.Duration
}

// Empty says that the window has no point.
func (s Span) Empty() bool { return s.To.Before(s.From) }

// Brief says that the window has too few points for a median to count.
func (s Span) Brief() bool { return s.Empty() || s.To.Sub(s.From)/s.Step+1 < leastPoints }

// MetricWindows are the three windows that a metric is compared in.
type MetricWindows struct {
	Before, During, After Span
	// Range is how far back the rates of the points look.
	Range time.Duration
}

// PlaceMetricWindows returns the windows at a time after the stabilization. A rate looks back, so the first points
// of a window would tell of the window before: *after* begins when rates look at what follows the write
// alone. *During* begins likewise, but not later than five points before the write, because a drift is
// mostly put back soon.
func PlaceMetricWindows(drift, written, stabilized, now time.Time) MetricWindows {
	back := min(max(stabilized.Sub(written), minRange), maxRange)
	return MetricWindows{
		Before: spanOf(drift.Add(-lookback), drift),
		During: spanOf(latest(drift, earliest(drift.Add(back), written.Add(-(leastPoints-1)*minStep))), written),
		After:  spanOf(latest(stabilized, written.Add(back)), now),
		Range:  back,
	}
}

// spanOf has as many points as there may be, and the last one at the end.
func spanOf(from, to time.Time) Span {
	step := max(minStep, to.Sub(from)/(MaxPoints-1)).Round(time.Second)
	for to.Sub(from)/step >= MaxPoints {
		step += time.Second
	}
	return Span{From: from, To: to, Step: step}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
