// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

// BenchmarkRunningReleases measures what runs under way cost the leader, and how soon the leader rolls one
// of them back. The routers are recorders that count as ten proxies would, so the counts cost what the
// leader makes of them. In one minute, with healthCheckInterval 30s:
//
//   - cores: processors of this process, the informers of the discovery server included,
//   - writes/release: writes of the status of a release in that minute,
//   - status-bytes: the largest status in JSON,
//   - heap-KiB/release: the heap beyond that of the process with no release,
//   - verdict: from the end of the first ten seconds in which half of the canary's requests fail, until the
//     router has the split without the canary.
func BenchmarkRunningReleases(b *testing.B) {
	for _, n := range []int{1, 100, 500} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				measureRunning(b, n)
			}
			b.ReportMetric(0, "ns/op") // with one number for all of it nothing is said
		})
	}
}

const (
	// cellLength is that of production.
	cellLength = 10 * time.Second
	// rolledBackInBenchmark are as many canaries as go bad one after the other.
	rolledBackInBenchmark = 5
)

func measureRunning(b *testing.B, n int) {
	s := newShop(b)
	s.rollouts = &meters{}
	s.start(leads)
	empty := heap()
	s.runMany(n)
	began, used, writes := time.Now(), processor(b), s.statusWrites()
	timer := time.NewTimer(time.Minute) // what is measured is a minute
	<-timer.C
	minute := time.Since(began)
	b.ReportMetric((processor(b)-used).Seconds()/minute.Seconds(), "cores")
	b.ReportMetric(float64(s.statusWrites()-writes)/float64(n)/minute.Minutes(), "writes/release")
	b.ReportMetric(float64(s.largestStatus()), "status-bytes")
	b.ReportMetric((heap()-empty)/1024/float64(n), "heap-KiB/release")
	var verdicts []time.Duration
	for i := range min(n, rolledBackInBenchmark) {
		verdicts = append(verdicts, s.rollouts.of(s.t, s.namespace, releaseName(i)).goBad(b))
	}
	quantile.Report(b, "verdict", verdicts)
}

func releaseName(i int) string { return fmt.Sprint("web-", i) }

// runMany creates releases, and waits until the first stage of each is measured.
func (s *shop) runMany(n int) {
	s.t.Helper()
	var creating errgroup.Group
	creating.SetLimit(8)
	for i := range n {
		creating.Go(func() error { return s.runOne(releaseName(i), i) })
	}
	s.must(creating.Wait())
	poll.Until(s.t, 5*time.Minute, fmt.Sprintf("%d runs are measured", n), func() error {
		var all v1alpha1.ABReleaseList
		if err := admin.List(s.t.Context(), &all, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		running := 0
		for i := range all.Items {
			in := all.Items[i].Status.Rollout
			if in != nil && in.Run != nil && len(in.Run.Stages) > 0 && in.Run.Stages[0].StartTime != nil && in.Analysis != nil {
				running++
			}
		}
		if running < n {
			return fmt.Errorf("%d are; one is %+v", running, all.Items[0].Status.Rollout)
		}
		return nil
	})
}

// runOne creates a Service, two Deployments with a ready pod each, and a release.
func (s *shop) runOne(name string, i int) error {
	ctx := s.t.Context()
	labels := func(version string) map[string]string { return map[string]string{"app": name, "version": version} }
	objects := []client.Object{&corev1.Service{ObjectMeta: s.named(name), Spec: corev1.ServiceSpec{
		Selector: labels("stable"), Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}}
	for _, version := range []string{"stable", "canary"} {
		objects = append(objects, &appsv1.Deployment{ObjectMeta: s.named(name + "-" + version), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels(version)},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(version)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:" + version}}}},
		}})
	}
	for _, o := range objects {
		if err := admin.Create(ctx, o); err != nil {
			return err
		}
	}
	for j, version := range []string{"stable", "canary"} {
		d := objects[j+1].(*appsv1.Deployment) //nolint:forcetypeassert // made above
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		if err := admin.Status().Update(ctx, d); err != nil {
			return err
		}
		if err := s.runPod(d.Name, labels(version), netip.AddrFrom4([4]byte{10, byte(j + 1), byte(i / 250), byte(i%250 + 1)})); err != nil {
			return err
		}
	}
	r := &v1alpha1.ABRelease{ObjectMeta: s.named(name)}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, `
serviceName: %[1]s
stable: stable
variations:
- {name: stable, workload: {kind: Deployment, name: %[1]s-stable}}
- {name: canary, workload: {kind: Deployment, name: %[1]s-canary}}
trafficSplit: {type: Percentage, percentages: {stable: 100, canary: 0}}
rollout:
  strategy:
    healthCheckInterval: 30s
    stages:
    - {trafficPercentage: 10, duration: 24h, healthThreshold: 95}
    - {trafficPercentage: 100, duration: 0s}
`, name), &r.Spec); err != nil {
		return err
	}
	return admin.Create(ctx, r)
}

// runPod creates a ready pod of a Deployment, as its controller and a kubelet would.
func (s *shop) runPod(deployment string, labels map[string]string, at netip.Addr) error {
	pod := &corev1.Pod{ObjectMeta: s.named(deployment + "-1"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop"}}}}
	pod.Labels = map[string]string{"pod-template-hash": "1"}
	maps.Copy(pod.Labels, labels)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-1", UID: types.UID(deployment), Controller: new(true)}}
	if err := admin.Create(s.t.Context(), pod); err != nil {
		return err
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: at.String(), PodIPs: []corev1.PodIP{{IP: at.String()}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	return admin.Status().Update(s.t.Context(), pod)
}

func (s *shop) largestStatus() int {
	s.t.Helper()
	var all v1alpha1.ABReleaseList
	s.must(admin.List(s.t.Context(), &all, client.InNamespace(s.namespace)))
	largest := 0
	for i := range all.Items {
		body, err := json.Marshal(all.Items[i].Status)
		s.must(err)
		largest = max(largest, len(body))
	}
	return largest
}

// statusWrites are counted by the API server.
var statusWrites = regexp.MustCompile(`(?m)^apiserver_request_total\{.*resource="abreleases".*subresource="status".*verb="(?:PUT|PATCH|APPLY|UPDATE)".*\} ([0-9.e+]+)$`)

func (s *shop) statusWrites() int {
	s.t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	s.must(err)
	body, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(s.t.Context())
	s.must(err)
	sum := 0.0
	for _, found := range statusWrites.FindAllSubmatch(body, -1) {
		n, err := strconv.ParseFloat(string(found[1]), 64)
		s.must(err)
		sum += n
	}
	if sum == 0 {
		s.t.Fatal("the API server has counted no write of a status")
	}
	return int(sum)
}

// processor time of this process.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// heap that is in use, in bytes.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// meters give each release a router that counts.
type meters struct{ meters sync.Map }

// Router implements abrelease.Routers.
func (m *meters) Router(release types.NamespacedName) traffic.Router {
	of, _ := m.meters.LoadOrStore(release, &meter{epoch: time.Now()})
	return of.(*meter) //nolint:forcetypeassert // nothing else is stored
}

func (m *meters) of(t testing.TB, namespace, name string) *meter {
	t.Helper()
	of, is := m.meters.Load(types.NamespacedName{Namespace: namespace, Name: name})
	if !is {
		t.Fatalf("the router of %s was never asked for", name)
	}
	return of.(*meter) //nolint:forcetypeassert // nothing else is stored
}

// meter is a recorder that counts 50 requests of the canary in ten seconds, and 450 of the stable version.
type meter struct {
	routertest.Recorder
	epoch time.Time

	mu sync.Mutex
	// steps are when each sequence was applied.
	steps []step
	// bad is from when on half of the canary's requests fail; zero for never.
	bad time.Time
	// back is closed when the canary has nothing any more.
	back chan struct{}
}

type step struct {
	at       time.Time
	sequence uint64
}

// Apply implements traffic.Router.
func (m *meter) Apply(ctx context.Context, split traffic.Split) error {
	if err := m.Recorder.Apply(ctx, split); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.steps); n == 0 || m.steps[n-1].sequence != split.Sequence {
		m.steps = append(m.steps, step{time.Now(), split.Sequence})
	}
	if m.back != nil && split.Shares[1].Weight == 0 {
		close(m.back)
		m.back = nil
	}
	return nil
}

// Measure implements traffic.Router.
func (m *meter) Measure(_ context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	const part = "xds-0"
	out := traffic.Measurement{Next: since, Wanted: 10}
	epoch := m.epoch.UnixNano()
	read := since[part]
	if read.Epoch != epoch {
		read = traffic.Position{Epoch: epoch}
	}
	for at := read.Cell/2 + 1; m.start(at + 1).Before(time.Now()); at++ {
		for arm, variation := range []string{"stable", "canary"} {
			cell := m.cell(at, variation)
			cell.Part, cell.Position = part, traffic.Position{Epoch: epoch, Cell: at*2 + uint64(arm) - 1}
			out.Cells, out.Next = append(out.Cells, cell), out.Next.Advance(part, cell.Position)
		}
	}
	return out, nil
}

// start of the ten seconds with that number, from 1.
func (m *meter) start(number uint64) time.Time {
	return m.epoch.Add(time.Duration(number-1) * cellLength) //nolint:gosec // few
}

func (m *meter) cell(number uint64, variation string) traffic.Cell {
	start, end := m.start(number), m.start(number+1)
	cell := traffic.Cell{Variation: variation, Port: 80, Start: start, From: start, To: end, Coverage: traffic.Coverage{Expected: 10, Telling: 10}}
	for _, s := range m.steps {
		switch {
		case s.at.Before(start):
			cell.Sequence = s.sequence
		case s.at.Before(end):
			cell.Sequence = 0
		}
	}
	n, x := uint64(45), uint64(0)
	if variation == "canary" {
		if n = 5; !m.bad.IsZero() && !start.Before(m.bad) {
			x = 3
		}
	}
	const proxies = 10
	cell.Over, cell.Failed = proxies*n, proxies*x
	cell.Spread = traffic.Spread{
		Proxies: proxies, N: proxies * n, X: proxies * x,
		NN: proxies * float64(n*n), XN: proxies * float64(x*n), XX: proxies * float64(x*x),
	}
	return cell
}

// goBad has the canary fail from the next ten seconds on. The result is how long after their end the router
// has the split without the canary.
func (m *meter) goBad(b *testing.B) time.Duration {
	b.Helper()
	m.mu.Lock()
	number := uint64(time.Since(m.epoch)/cellLength) + 2 //nolint:gosec // few
	m.bad = m.start(number)
	back, told := make(chan struct{}), m.start(number+1)
	m.back = back
	m.mu.Unlock()
	timeout := time.NewTimer(patience + cellLength)
	defer timeout.Stop()
	select {
	case <-back:
	case <-timeout.C:
		b.Fatalf("a canary of which half of the requests fail since %s has its requests still", m.bad)
	}
	return time.Since(told)
}
