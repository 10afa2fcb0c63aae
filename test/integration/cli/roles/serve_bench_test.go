// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

// benchNamespaces share the objects of the fleet.
const benchNamespaces = 200

// benchObjects is the number of Baselines; a tenth as many plans are stored beside them.
func benchObjects(b *testing.B) int {
	b.Helper()
	n := 10_000
	if text := os.Getenv("PLUMBLINE_BENCH_OBJECTS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(b, err)
	}
	return n
}

func benchNamespace(i int) string { return fmt.Sprintf("bench-%03d", i%benchNamespaces) }

// fleet is stored once for all benchmarks of a process.
var fleet struct {
	once    sync.Once
	objects int
}

// fillFleet stores the Baselines, of which each tenth has drifted, and the plans.
func fillFleet(b *testing.B) int {
	b.Helper()
	fleet.once.Do(func() {
		fleet.objects = benchObjects(b)
		for i := range benchNamespaces {
			must(b, admin.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: benchNamespace(i)}}))
		}
		inParallel(b, fleet.objects, storeBaseline)
		inParallel(b, fleet.objects/10, func(ctx context.Context, i int) error {
			p := newPlan(benchNamespace(i), fmt.Sprintf("plan-%04d", i))
			return asAssessor.Create(ctx, p)
		})
	})
	return fleet.objects
}

func inParallel(b *testing.B, n int, do func(ctx context.Context, i int) error) {
	b.Helper()
	next, failed := make(chan int), make(chan error, 1)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range next {
				if err := do(b.Context(), i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
}

func storeBaseline(ctx context.Context, i int) error {
	name := fmt.Sprintf("web-%05d", i)
	stored := &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Namespace: benchNamespace(i), Name: "deployments.apps." + name},
		Spec:       v1alpha1.BaselineSpec{Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}},
	}
	if err := asAssessor.Create(ctx, stored); err != nil {
		return err
	}
	hash := "pl1:sha256:" + strings.Repeat("d", 64)
	stored.Status = v1alpha1.BaselineStatus{State: v1alpha1.StateInSync, Observed: v1alpha1.ObservedState{Hash: hash, FullHash: hash}}
	if i%10 == 0 {
		stored.Status.State = v1alpha1.StateDrifted
	}
	return asAssessor.Status().Update(ctx, stored)
}

// question is asked of the API, and of the API server as a dashboard does: one call with the token of the caller.
type question struct{ path, reference string }

var questions = map[string]question{
	"one Baseline": {"baselines/bench-007.deployments.apps.web-00007", "/apis/plumbline.dev/v1alpha1/namespaces/bench-007/baselines/deployments.apps.web-00007"},
	"100 drifted Baselines of all namespaces": {"baselines?state=drifted&limit=100", "/apis/plumbline.dev/v1alpha1/baselines?limit=100"},
	"100 plans of all namespaces":             {"remediation/plans?limit=100", "/apis/plumbline.dev/v1alpha1/remediationplans?limit=100"},
}

// BenchmarkServe asks the built binary in the role serve. The wanted figures are a p99 of 10 ms for one object and of
// 50 ms for a list of 100, and 192 MiB.
func BenchmarkServe(b *testing.B) {
	fillFleet(b)
	p := startServingProcess(b)
	p.trust(b)
	direct, err := rest.HTTPClientFor(&rest.Config{Host: config.Host, BearerToken: tokenOf(viewer), TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}})
	must(b, err)
	for name, q := range questions {
		b.Run(name+"/Plumbline", func(b *testing.B) { askOften(b, p.http, p.base+q.path, tokenOf(viewer)) })
		b.Run(name+"/API server", func(b *testing.B) {
			askOften(b, direct, strings.TrimSuffix(config.Host, "/")+q.reference, tokenOf(viewer))
		})
	}
	now, peak, err := replay.ResidentBytes(p.PID())
	must(b, err)
	b.Logf("resident %d MiB, at most %d MiB", now>>20, peak>>20)
}

// askOften sends one request after the other, and reports the percentiles.
func askOften(b *testing.B, by *http.Client, url, token string) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		body, err := fetch(b.Context(), by, url, token)
		must(b, err)
		if len(body) == 0 {
			b.Fatal("the answer is empty")
		}
		took = append(took, time.Since(began))
	}
	reportPercentiles(b, took)
}

func reportPercentiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for name, part := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99} {
		b.ReportMetric(float64(took[int(part*float64(len(took)-1))].Microseconds())/1000, name)
	}
}

func fetch(ctx context.Context, by *http.Client, url, token string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := by.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", url, response.StatusCode, body)
	}
	return body, err
}

// BenchmarkStreams has streams of users hear the changes of plans, 100 in a second. The wanted figures are 1,000 streams
// with a p99 of 100 ms from the write to the last event that is heard, and 64 KiB for each stream.
func BenchmarkStreams(b *testing.B) {
	const perUser = 50
	fillFleet(b)
	must(b, apiserver.Bind(b.Context(), admin, "bench-streams", "plumbline-view", "system:serviceaccounts:"+tenant))
	p := startServingProcess(b)
	p.trust(b)
	for _, streams := range []int{100, 1000} {
		b.Run(strconv.Itoa(streams), func(b *testing.B) {
			before, _, err := replay.ResidentBytes(p.PID())
			must(b, err)
			heard := make(chan string, 1<<20)
			for user := range streams / perUser {
				token, connections := listeningUser(b, p, user)
				for range perUser {
					listenTo(b, p, connections, token, heard)
				}
			}
			after, _, err := replay.ResidentBytes(p.PID())
			must(b, err)
			used := processorTime(b, p.PID())
			reportPercentiles(b, changePlans(b, heard, streams))
			b.ReportMetric(float64((processorTime(b, p.PID())-used).Microseconds())/float64(b.N*streams), "µs-of-processor/event")
			b.ReportMetric(float64(after-before)/1024/float64(streams), "KiB/stream")
		})
	}
}

// processorTime reads the time of the processors that a process has used (proc(5), in hundredths of a second).
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		must(b, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// listeningUser makes a user, and connections from an address of the user alone: the streams of one address are bounded.
func listeningUser(b *testing.B, p *servingProcess, user int) (token string, connections *http.Client) {
	b.Helper()
	name := fmt.Sprintf("bench-%d", user)
	if err := admin.Create(b.Context(), serviceAccount(name)); !apierrors.IsAlreadyExists(err) {
		must(b, err)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(user+1))}} //nolint:gosec // there are 20 users
	//nolint:forcetypeassert // trust has made it
	transport := p.http.Transport.(*http.Transport).Clone()
	transport.DialContext = dialer.DialContext
	b.Cleanup(transport.CloseIdleConnections)
	return accountToken(b, tenant, name, nil), &http.Client{Transport: transport}
}

// listenTo opens a stream of server-sent events, and tells the name of each plan of which it hears.
func listenTo(b *testing.B, p *servingProcess, connections *http.Client, token string, heard chan<- string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, p.base+"events", http.NoBody)
	must(b, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "text/event-stream")
	response, err := connections.Do(r)
	must(b, err)
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		b.Fatalf("a stream: %d %s", response.StatusCode, body)
	}
	b.Cleanup(func() { _ = response.Body.Close() }) // the server may have closed it
	go tellPlans(response.Body, heard)
}

// changePlans changes plans at a steady rate, and returns how long each change took until all streams had told of it.
func changePlans(b *testing.B, heard <-chan string, streams int) (took []time.Duration) {
	b.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var mu sync.Mutex
	written, left := map[string]time.Time{}, map[string]int{}
	done := make(chan time.Duration, b.N)
	go func() {
		for name := range heard {
			mu.Lock()
			if at, known := written[name]; known {
				if left[name]--; left[name] == 0 {
					done <- time.Since(at)
				}
			}
			mu.Unlock()
		}
	}()
	var writes sync.WaitGroup
	b.ResetTimer()
	for i := range b.N {
		<-tick.C
		plan := newPlan(benchNamespace(i), fmt.Sprintf("told-%d-%d-%d", streams, b.N, i))
		mu.Lock()
		written[plan.Name], left[plan.Name] = time.Now(), streams
		mu.Unlock()
		writes.Go(func() {
			if err := asAssessor.Create(b.Context(), plan); err != nil {
				b.Error(err)
			}
		})
	}
	writes.Wait()
	poll.Until(b, patience, "all streams have told of all plans", func() error {
		if len(done) < b.N {
			return fmt.Errorf("%d of %d plans were told by all streams", len(done), b.N)
		}
		return nil
	})
	b.StopTimer()
	for range b.N {
		took = append(took, <-done)
	}
	return took
}

// tellPlans tells the name of each plan that a stream has as created.
func tellPlans(body io.Reader, heard chan<- string) {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var e wire.Event
		if json.Unmarshal([]byte(data), &e) == nil && e.Type == wire.EventPlanCreated {
			heard <- e.Name
		}
	}
}
