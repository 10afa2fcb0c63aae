// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

// BenchmarkReplay replays recorded reviews about 10,000 objects under ten
// guards to one replica, at fixed rates. Each iteration is one run; use
// -benchtime 1x.
func BenchmarkReplay(b *testing.B) {
	guarded(b, replayNamespace, 10)
	records := recorded(b)
	roots := publishedRoots(b)
	for _, rate := range []int{100, 500, 1000, 2000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			for b.Loop() {
				r, err := replay.Run(b.Context(), replay.Config{
					Target: target(w.hook), Roots: roots, Records: records,
					Rate: rate, Duration: benchSeconds(b), Warmup: time.Second, Timeout: 2 * time.Second, Names: 10_000,
				})
				if err != nil {
					b.Fatal(err)
				}
				now, peak, err := replay.ResidentBytes(w.hook.PID())
				if err != nil {
					b.Fatal(err)
				}
				b.Logf("%s; rss %d MiB, peak %d MiB", r, now>>20, peak>>20)
				ms := func(q float64) float64 { return float64(r.Latency.Quantile(q)) / float64(time.Millisecond) }
				b.ReportMetric(ms(.5), "p50-ms")
				b.ReportMetric(ms(.99), "p99-ms")
				b.ReportMetric(ms(.999), "p99.9-ms")
				b.ReportMetric(float64(r.Failed()), "errors")
				b.ReportMetric(float64(r.Shed), "shed")
				b.ReportMetric(float64(now>>20), "rss-MiB")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// buckets are the API server's own histogram of one webhook: upper ends to
// cumulated counts.
func buckets(metrics, webhook string) map[float64]float64 {
	out := map[float64]float64{}
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, "apiserver_admission_webhook_admission_duration_seconds_bucket{") || !strings.Contains(line, `name="`+webhook+`"`) {
			continue
		}
		_, rest, _ := strings.Cut(line, `le="`)
		le, rest, _ := strings.Cut(rest, `"`)
		end, err := strconv.ParseFloat(le, 64)
		if err != nil {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
		if err == nil {
			out[end] += n
		}
	}
	return out
}

// quantile is the upper end of the bucket that holds it: the API server's
// buckets are coarse, so nothing is interpolated.
func quantile(before, after map[float64]float64, q float64) (upTo float64, n float64) {
	var ends []float64
	for end := range after {
		ends = append(ends, end)
	}
	slices.Sort(ends)
	n = after[math.Inf(1)] - before[math.Inf(1)]
	for _, end := range ends {
		if after[end]-before[end] >= q*n {
			return end, n
		}
	}
	return math.Inf(1), n
}

// writeLoad updates objects as fast as so many writers can, until the time is over.
func writeLoad(b *testing.B, namespace string, writers int, d time.Duration) (writes int64) {
	b.Helper()
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: alice, Groups: []string{"system:authenticated"}}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	deployments := client.AppsV1().Deployments(namespace)
	var done atomic.Int64
	var wg sync.WaitGroup
	deadline := time.Now().Add(d)
	for n := range writers {
		wg.Go(func() {
			o := webDeployment()
			largeEnv(o)
			o.Name = fmt.Sprintf("w-%d", n)
			_ = deployments.Delete(b.Context(), o.Name, metav1.DeleteOptions{}) // Of the run before.
			if _, err := deployments.Create(b.Context(), o, metav1.CreateOptions{}); err != nil {
				b.Error(err)
				return
			}
			for i := 0; time.Now().Before(deadline); i++ {
				patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop/web:%d"}]}}}}`, i+2)
				if _, err := deployments.Patch(b.Context(), o.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return done.Load()
}

// BenchmarkAPIServer measures the webhooks by the API server's own metric,
// while 8 writers update Deployments of 20 KiB as fast as it lets them.
func BenchmarkAPIServer(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("replicas=%d", n), func(b *testing.B) {
			startReplicas(b, n)
			guarded(b, replayNamespace, 10)
			for b.Loop() {
				before := apiServerMetrics(b)
				seconds := benchSeconds(b)
				writes := writeLoad(b, replayNamespace, 8, seconds)
				after := apiServerMetrics(b)
				report := fmt.Sprintf("%d replicas, %.0f writes/s", n, float64(writes)/seconds.Seconds())
				for _, webhook := range []string{"spec-hash.plumbline.dev", "verdict.plumbline.dev"} {
					x, y := buckets(before, webhook), buckets(after, webhook)
					p50, calls := quantile(x, y, .5)
					p99, _ := quantile(x, y, .99)
					p999, _ := quantile(x, y, .999)
					mean := (sumSamples(b, after, "apiserver_admission_webhook_admission_duration_seconds_sum", webhook) -
						sumSamples(b, before, "apiserver_admission_webhook_admission_duration_seconds_sum", webhook)) / calls
					report += fmt.Sprintf("; %s: %.0f calls, mean %.2f ms, p50 ≤ %v s, p99 ≤ %v s, p99.9 ≤ %v s", webhook, calls, 1000*mean, p50, p99, p999)
				}
				opened := sumSamples(b, after, "apiserver_admission_webhook_fail_open_count") - sumSamples(b, before, "apiserver_admission_webhook_fail_open_count")
				b.Logf("%s; %v failed open", report, opened)
				b.ReportMetric(float64(writes)/seconds.Seconds(), "writes/s")
				b.ReportMetric(opened, "failed-open")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}
