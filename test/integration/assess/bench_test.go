// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/procfs"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
	"github.com/plumbline-dev/plumbline/test/harness/replay"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// BenchmarkWatchToStatus measures from the API server's answer to a person's
// write until the drift is delivered by a watch of Baselines, one object after
// the other, over guarded objects of 20 KiB (PLUMBLINE_BENCH_OBJECTS, 100 if unset).
func BenchmarkWatchToStatus(b *testing.B) {
	n := benchObjects(b, 100)
	w, stop := benchWorld(b)
	defer stop()
	binary := measured{startBinary(b)}
	defer kill(b, binary.Process)
	w.benchDeploy(b, n, 8)
	binary.await(b, n)
	events, err := watcher(b, w.namespace)
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	var took []time.Duration
	for b.Loop() {
		took = append(took, w.detect(b, events, len(took), n))
	}
	quantile.Report(b, "detection", took)
}

// detect makes the next drift among n objects, and returns how long after the answer of
// the API server a watch of Baselines tells of the finding.
func (w *benchEnv) detect(b *testing.B, events watch.Interface, number, n int) time.Duration {
	b.Helper()
	name := fmt.Sprintf("web-%d", number%n)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.alice.Patch(b.Context(), d, guarded.ImagePatch(fmt.Sprintf("registry.example/evil:%d", number))); err != nil {
		b.Fatal(err)
	}
	answered := time.Now()
	for e := range events.ResultChan() {
		baseline, ok := e.Object.(*v1alpha1.Baseline)
		if !ok {
			b.Fatalf("the watch ended: %v", e.Object)
		}
		if baseline.Spec.Target.Name == name && baseline.Status.Observed.Generation >= d.Generation {
			break
		}
	}
	return max(0, time.Since(answered))
}

// BenchmarkColdStart measures a start of the assessor with many guarded objects
// of 20 KiB (PLUMBLINE_BENCH_OBJECTS, 1000 if unset; the figures to reach are
// stated for 10000 and 50000): until all are re-hashed and compared, and its memory
// then and at most. PLUMBLINE_BENCH_MEMORY is the assessor's GOMEMLIMIT.
func BenchmarkColdStart(b *testing.B) {
	n := benchObjects(b, 1000)
	w, stop := benchWorld(b)
	defer stop()
	w.benchDeploy(b, n, 8)
	limit := cmp.Or(os.Getenv("PLUMBLINE_BENCH_MEMORY"), "270MiB")
	first := measured{startWithin(b, limit)}
	began := time.Now()
	first.await(b, n)
	adoption := time.Since(began).Seconds()
	_, adoptionPeak := first.memory(b)
	kill(b, first.Process)
	for b.Loop() {
		p := measured{startWithin(b, limit)}
		began := time.Now()
		p.await(b, n)
		b.ReportMetric(time.Since(began).Seconds(), "rehash-s")
		b.ReportMetric(p.cpu(b), "cpu-s")
		now, peak := p.memory(b)
		b.ReportMetric(now, "rss-MiB")
		b.ReportMetric(peak, "peak-MiB")
		b.ReportMetric(peak*1024/float64(n), "peak-KiB/object")
		kill(b, p.Process)
	}
	b.ReportMetric(adoption, "adopt-s")
	b.ReportMetric(adoptionPeak, "adopt-peak-MiB")
}

// benchObjects is how many objects a benchmark guards.
func benchObjects(b *testing.B, otherwise int) int {
	b.Helper()
	text := os.Getenv("PLUMBLINE_BENCH_OBJECTS")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// benchEnv is the namespace of a benchmark.
type benchEnv struct {
	namespace string
	ci, alice client.Client
}

func benchWorld(b *testing.B) (*benchEnv, func()) {
	b.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := admin.Create(b.Context(), ns); err != nil {
		b.Fatal(err)
	}
	guard := guarded.Guard(ns.Name)
	if err := admin.Create(b.Context(), guard); err != nil {
		b.Fatal(err)
	}
	w := &benchEnv{namespace: ns.Name}
	var err error
	if w.ci, err = cluster.As(ci); err != nil {
		b.Fatal(err)
	}
	if w.alice, err = cluster.As(alice); err != nil {
		b.Fatal(err)
	}
	return w, func() {
		if err := admin.Delete(context.Background(), guard); err != nil {
			b.Error(err)
		}
	}
}

// benchDeploy creates deployments of about 20 KiB.
func (w *benchEnv) benchDeploy(b *testing.B, n, parallel int) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			d := guarded.Deployment(w.namespace, fmt.Sprintf("web-%d", i))
			for j := range 160 {
				d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{
					Name:  fmt.Sprintf("SETTING_%03d", j),
					Value: fmt.Sprintf("value %d of object %d, %s", j, i, strings.Repeat(strconv.Itoa(i*j), 8)),
				})
			}
			return w.ci.Create(ctx, d)
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

func watcher(b *testing.B, namespace string) (watch.Interface, error) {
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, err
	}
	return c.Watch(b.Context(), &v1alpha1.BaselineList{}, client.InNamespace(namespace))
}

// measured is an assessor that is watched from outside.
type measured struct{ *server.Process }

// await waits until n objects are assessed.
func (p measured) await(b *testing.B, n int) {
	b.Helper()
	poll.Until(b, 45*time.Minute, fmt.Sprintf("%d objects are assessed", n), func() error {
		got, err := p.Metric(b.Context(), "plumbline_drift_objects") // an error means that it does not answer yet
		if err == nil && got < float64(n) {
			err = fmt.Errorf("%v are", got)
		}
		return err
	})
}

// memory reads the resident set now and at most, in MiB.
func (p measured) memory(b *testing.B) (now, peak float64) {
	b.Helper()
	nowBytes, peakBytes, err := replay.ResidentBytes(p.PID())
	if err != nil {
		b.Fatal(err)
	}
	return float64(nowBytes) / (1 << 20), float64(peakBytes) / (1 << 20)
}

// cpu reads the processor time used so far, in seconds; on a busy machine it
// tells more than the clock on the wall.
func (p measured) cpu(b *testing.B) float64 {
	b.Helper()
	stat, err := procfs.ReadStat(p.PID())
	if err != nil {
		b.Fatal(err)
	}
	return stat.Processor.Seconds()
}
