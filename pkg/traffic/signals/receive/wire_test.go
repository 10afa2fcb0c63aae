// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

var _ serve.Decoder = (*message)(nil)

// everything is a proxy that has all clusters.
func everything(string) bool { return true }

// read is what we make of bytes.
func read(data []byte) (signals.Flush, error) {
	known := &names{}
	f := &flush{find: func(cluster []byte) (string, signals.Slot, bool) { return known.find(cluster, everything) }}
	err := f.decode(data)
	return f.Flush, err
}

// asLibrary is what is made of the same bytes by the types of the library.
func asLibrary(data []byte) (f signals.Flush, err error) {
	var m metricsv3.StreamMetricsMessage
	if err := proto.Unmarshal(data, &m); err != nil {
		return f, err
	}
	known := &names{}
	at := map[signals.Slot]int{}
	for _, family := range m.GetEnvoyMetrics() {
		for _, metric := range family.GetMetric() {
			if err := one(&f, family.GetName(), metric, known, at); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

func one(f *signals.Flush, family string, metric *dto.Metric, known *names, at map[signals.Slot]int) error {
	if family == uptimeFamily {
		return uptimeOf(f, metric)
	}
	name, ours := strings.CutPrefix(family, "cluster.")
	s, counted := families[name]
	if code, grpc := strings.CutPrefix(name, "grpc."); grpc && len(code) <= 2 && code != "" && code[0] >= '0' && code[0] <= '9' {
		if n, err := strconv.Atoi(code); err == nil {
			s.counter, counted = signals.GRPCStatus(n)
		}
	}
	if !ours || !counted {
		return nil
	}
	if metric.TimestampMs != nil {
		f.At = time.UnixMilli(metric.GetTimestampMs())
	}
	labels := map[string]string{}
	for _, label := range metric.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	if s.kind == histogram && metric.Histogram == nil || s.kind == gauge && metric.Gauge == nil || s.kind <= byClass && metric.Counter == nil {
		return nil
	}
	_, slot, found := known.find([]byte(labels[clusterLabel]), everything)
	if !found {
		return nil
	}
	i, there := at[slot]
	if !there {
		i = len(f.Slots)
		at[slot] = i
		f.Slots = append(f.Slots, signals.Reported{Slot: slot})
	}
	into := &f.Slots[i]
	value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
	if s.kind == counter || s.kind == byClass {
		value = metric.GetCounter().GetValue()
	}
	if s.kind == gauge {
		value = metric.GetGauge().GetValue()
	}
	if s.kind != histogram && (math.IsNaN(value) || value < 0 || value > maxNumber) {
		return errors.New("no count")
	}
	switch s.kind {
	case counter:
		into.Counts[s.counter] += uint64(value)
	case byClass:
		if class := labels[classLabel]; len(class) == 1 && class >= "1" && class <= "5" {
			into.Counts[signals.Class1+signals.Counter(class[0]-'1')] += uint64(value)
		}
	case gauge:
		into.Active = uint64(value)
	case histogram:
		return samples(into, metric.GetHistogram())
	case uptime: // above
	}
	return nil
}

func uptimeOf(f *signals.Flush, metric *dto.Metric) error {
	if metric.TimestampMs != nil {
		f.At = time.UnixMilli(metric.GetTimestampMs())
	}
	switch up := metric.GetGauge().GetValue(); {
	case metric.Gauge == nil:
	case math.IsNaN(up) || up < 0 || up > maxNumber:
		return errors.New("no uptime")
	case !f.At.IsZero():
		f.Began = f.At.Add(-time.Duration(min(up, maxUptime)) * time.Second)
	}
	return nil
}

func samples(into *signals.Reported, h *dto.Histogram) error {
	below := uint64(0)
	for _, b := range h.GetBucket() {
		if b.GetCumulativeCount() < below || b.GetCumulativeCount() > maxNumber || math.IsNaN(b.GetUpperBound()) {
			return errors.New("no bucket")
		}
		into.Counts.Latency()[signals.Bucket(b.GetUpperBound())] += b.GetCumulativeCount() - below
		below = b.GetCumulativeCount()
	}
	if h.GetSampleCount() < below || h.GetSampleCount() > maxNumber {
		return errors.New("no histogram")
	}
	into.Counts.Latency()[signals.Buckets-1] += h.GetSampleCount() - below
	return nil
}

var flushes = cmpopts.EquateEmpty()

// family of one metric, as Envoy sends each.
func family(name, cluster string, set func(*dto.Metric), labels ...*dto.LabelPair) *dto.MetricFamily {
	m := &dto.Metric{Label: append(labels, label(clusterLabel, cluster)), TimestampMs: proto.Int64(1_800_000_000_123)}
	set(m)
	return &dto.MetricFamily{Name: new("cluster." + name), Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{m}}
}

// own is a family about the proxy itself.
func own(name string, set func(*dto.Metric)) *dto.MetricFamily {
	f := family("", "", set)
	f.Name, f.Metric[0].Label = &name, nil
	return f
}

func label(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: &name, Value: &value}
}

func counts(n float64) func(*dto.Metric) {
	return func(m *dto.Metric) { m.Counter = &dto.Counter{Value: &n} }
}

func gauges(n float64) func(*dto.Metric) {
	return func(m *dto.Metric) { m.Gauge = &dto.Gauge{Value: &n} }
}

// latencies of one request for each bucket but the last two.
func latencies(m *dto.Metric) {
	m.Histogram = &dto.Histogram{SampleSum: proto.Float64(1)}
	for i, bound := range signals.Bounds() {
		m.Histogram.Bucket = append(m.Histogram.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(uint64(min(i+1, 32)))}) //nolint:gosec // small
	}
	m.Histogram.SampleCount = proto.Uint64(32)
}

// telling of these clusters, as an Envoy whose slots have been used does.
func telling(clusters ...string) *metricsv3.StreamMetricsMessage {
	m := &metricsv3.StreamMetricsMessage{}
	for _, cluster := range clusters {
		for _, name := range []string{
			"upstream_rq_total", "upstream_rq_completed", "upstream_rq_timeout", "upstream_rq_cancelled", "upstream_cx_none_healthy",
			"upstream_cx_connect_fail", "upstream_rq_pending_failure_eject", "upstream_rq_rx_reset", "grpc.0", "grpc.14", "grpc.total",
			"grpc.success", "grpc.failure", "grpc.response_message_count",
		} {
			m.EnvoyMetrics = append(m.EnvoyMetrics, family(name, cluster, counts(7)))
		}
		for _, class := range []string{"2", "4", "5"} {
			m.EnvoyMetrics = append(m.EnvoyMetrics, family("upstream_rq_xx", cluster, counts(2), label(classLabel, class)))
		}
		m.EnvoyMetrics = append(m.EnvoyMetrics, family("upstream_rq_active", cluster, gauges(3)), family("upstream_rq_time", cluster, latencies))
	}
	m.EnvoyMetrics = append(m.EnvoyMetrics, own(uptimeFamily, gauges(77)))
	return m
}

// first is a message with a node of 516 extensions, as Envoy 1.40 begins a stream.
func first(m *metricsv3.StreamMetricsMessage) *metricsv3.StreamMetricsMessage {
	node := &corev3.Node{Id: "shop/web-0", UserAgentName: "envoy"}
	for range 516 {
		node.Extensions = append(node.Extensions, &corev3.Extension{
			Name: "envoy.filters.http.something", Category: "envoy.filters.http",
			TypeUrls: []string{"envoy.extensions.filters.http.something.v3.SomethingOrOther"},
		})
	}
	m.Identifier = &metricsv3.StreamMetricsMessage_Identifier{Node: node}
	return m
}

func encoded(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func TestAMessageIsReadAsTheLibraryReadsIt(t *testing.T) {
	data := encoded(t, first(telling("shop/web|80|stable", "shop/web|80|canary")))
	want, err := asLibrary(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, flushes); d != "" {
		t.Errorf("the flush (-want +got):\n%s", d)
	}
	if len(got.Slots) != 2 || got.Slots[1].Counts[signals.Class5] != 2 || got.Slots[0].Active != 3 || got.Slots[0].Counts.Latency()[31] != 1 ||
		!got.Began.Equal(got.At.Add(-77*time.Second)) {
		t.Errorf("the flush is %+v", got)
	}
}

func TestAnyMessageIsReadAsTheLibraryReadsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &metricsv3.StreamMetricsMessage{}
		known := []string{"upstream_cx_total", "grpc.x", "grpc.99", "grpc.7", "grpc.total", "x"}
		for name := range families {
			known = append(known, name)
		}
		for range rapid.IntRange(0, 20).Draw(t, "families") {
			set := rapid.SampledFrom([]func(*dto.Metric){counts(3), gauges(2), latencies, func(*dto.Metric) {}, counts(0.5)}).Draw(t, "value")
			if rapid.IntRange(0, 9).Draw(t, "own") == 0 {
				m.EnvoyMetrics = append(m.EnvoyMetrics, own(uptimeFamily, set))
			}
			m.EnvoyMetrics = append(m.EnvoyMetrics, family(
				rapid.SampledFrom(known).Draw(t, "name"),
				rapid.SampledFrom([]string{"shop/web|80|a", "shop/web|80|b", "shop/web|80|", "shop/web|80|a|forced", "xds", ""}).Draw(t, "cluster"),
				set, label(classLabel, rapid.SampledFrom([]string{"1", "5", "6", "", "22"}).Draw(t, "class"))))
		}
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		want, wants := asLibrary(data)
		got, err := read(data)
		if (err == nil) != (wants == nil) {
			t.Fatalf("it is %v, want %v", err, wants)
		}
		if d := cmp.Diff(want, got, flushes); err == nil && d != "" {
			t.Errorf("the flush (-want +got):\n%s", d)
		}
	})
}

func TestAMessageIsRefusedWhen(t *testing.T) {
	histogram := func(count uint64, buckets ...*dto.Bucket) func(*dto.Metric) {
		return func(m *dto.Metric) { m.Histogram = &dto.Histogram{SampleCount: &count, Bucket: buckets} }
	}
	bucket := func(bound float64, count uint64) *dto.Bucket {
		return &dto.Bucket{UpperBound: &bound, CumulativeCount: &count}
	}
	of := func(name string, set func(*dto.Metric)) *metricsv3.StreamMetricsMessage {
		return &metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{family(name, "shop/web|80|a", set)}}
	}
	many := &metricsv3.StreamMetricsMessage{}
	for range maxFamilies + 1 {
		many.EnvoyMetrics = append(many.EnvoyMetrics, &dto.MetricFamily{})
	}
	for name, tc := range map[string]struct {
		message *metricsv3.StreamMetricsMessage
		says    string
	}{
		"a counter is negative":           {of("upstream_rq_total", counts(-1)), "-1 counts nothing"},
		"a counter is no number":          {of("upstream_rq_total", counts(math.NaN())), "NaN counts nothing"},
		"a counter is too large":          {of("upstream_rq_total", counts(1e300)), "1e+300 counts nothing"},
		"a gauge is negative":             {of("upstream_rq_active", gauges(-2)), "-2 counts nothing"},
		"an uptime is negative":           {&metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{own(uptimeFamily, gauges(-1))}}, "-1 counts nothing"},
		"a bucket has less than the last": {of("upstream_rq_time", histogram(9, bucket(1, 5), bucket(2, 4))), "less than those below"},
		"a bucket has no bound":           {of("upstream_rq_time", histogram(9, bucket(math.NaN(), 5))), "up to NaN"},
		"there are fewer than in buckets": {of("upstream_rq_time", histogram(4, bucket(1, 5))), "5 in its buckets and 4 in all"},
		"a label is too long":             {&metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{family("upstream_rq_total", strings.Repeat("x", 1025), counts(1))}}, "1025 bytes, want at most 1024"},
		"there are too many metrics":      {many, "more than 8192 metrics"},
		"it is too large as a whole":      {&metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{{Help: new(strings.Repeat("x", 1<<20))}}}, "want at most 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(encoded(t, tc.message)); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q in it", err, tc.says)
			}
		})
	}
	for name, data := range map[string][]byte{
		"a family is cut off":  {0x12, 0x05, 'a'},
		"a tag has no end":     {0xff},
		"a family is no other": {0x12, 0x01, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(data); !errors.Is(err, errWire) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOnlyClustersThatAProxyHasAreCounted(t *testing.T) {
	known := &names{}
	has := "shop/web|80|a"
	f := &flush{find: func(cluster []byte) (string, signals.Slot, bool) {
		return known.find(cluster, func(c string) bool { return c == has })
	}}
	data := encoded(t, telling("shop/web|80|a", "shop/web|80|b", "shop/web|80|a|forced", "other/web|80|a"))
	for range 2 { // what is known of names is of all proxies
		if err := f.decode(data); err != nil {
			t.Fatal(err)
		}
		if len(f.Slots) != 1 || f.Slots[0].Slot.Variation != "a" || f.ignored == 0 {
			t.Errorf("%d slots are counted and %d numbers are not", len(f.Slots), f.ignored)
		}
	}
	has = ""
	if err := f.decode(data); err != nil {
		t.Fatal(err)
	}
	if len(f.Slots) != 0 {
		t.Error("what another proxy had is counted")
	}
}

func TestNamesAreBounded(t *testing.T) {
	known := &names{}
	for i := range 3 * maxNames {
		if _, _, found := known.find(fmt.Appendf(nil, "shop/web|80|v%d", i), everything); !found || len(known.of) > maxNames {
			t.Fatalf("found is %v, and %d are remembered", found, len(known.of))
		}
	}
}

func FuzzDecode(f *testing.F) {
	// Small ones: what is large is only slower.
	data := encoded(f, &metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{
		family("upstream_rq_xx", "shop/web|80|a", counts(2), label(classLabel, "5")), family("upstream_rq_active", "shop/web|80|b", gauges(2)),
		family("upstream_rq_time", "shop/web|80|a", func(m *dto.Metric) {
			m.Histogram = &dto.Histogram{SampleCount: proto.Uint64(3), Bucket: []*dto.Bucket{{UpperBound: proto.Float64(2), CumulativeCount: proto.Uint64(2)}}}
		}),
	}})
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add(encoded(f, &metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{own(uptimeFamily, gauges(77))}}))
	f.Add(encoded(f, &metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{family("grpc.14", "shop/web|80|a", counts(2))}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := read(data)
		want, wants := asLibrary(data)
		if err != nil || wants != nil {
			if err != nil && wants == nil && !strings.Contains(err.Error(), "want at most") && !strings.Contains(err.Error(), "more than") {
				t.Fatalf("the library reads it, and we do not: %v", err)
			}
			return // we read less of it, so we may see less that is wrong
		}
		if d := cmp.Diff(want, got, flushes); d != "" {
			t.Errorf("the flush (-want +got):\n%s", d)
		}
	})
}
