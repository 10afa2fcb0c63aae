// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// service stands in for a Service: it hands each connection to the next of its
// backends, and leaves it there, as kube-proxy does.
type service struct {
	listener net.Listener
	next     atomic.Int64
	wg       sync.WaitGroup

	mu       sync.Mutex
	backends []int
	open     map[net.Conn]struct{}
}

func startService(port int, backends ...int) (*service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	s := &service{listener: l, backends: backends, open: map[net.Conn]struct{}{}}
	s.wg.Go(s.accept)
	return s, nil
}

// set changes the backends of connections to come.
func (s *service) set(backends ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backends = backends
}

func (s *service) pick() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backends[int(s.next.Add(1))%len(s.backends)]
}

func (s *service) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.carry(client) })
	}
}

func (s *service) carry(client net.Conn) {
	backend, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(s.pick()))
	if err != nil {
		_ = client.Close()
		return
	}
	s.track(client, backend)
	defer s.forget(client, backend)
	var both sync.WaitGroup
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
	}
	both.Go(func() { pipe(backend, client) })
	both.Go(func() { pipe(client, backend) })
	both.Wait()
}

func (s *service) track(conns ...net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		s.open[c] = struct{}{}
	}
}

func (s *service) forget(conns ...net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		delete(s.open, c)
		_ = c.Close()
	}
}

func (s *service) stop() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// replicas are webhooks behind one address, in place of the one that all tests
// share, until the test ends.
type replicas struct {
	hooks   []*process
	service *service
}

// metric sums a metric over the replicas.
func (r *replicas) metric(name string, labels ...string) float64 {
	sum := 0.0
	for _, h := range r.hooks {
		sum += h.metric(name, labels...)
	}
	return sum
}

func (r *replicas) start(ctx context.Context, extra ...string) (*process, error) {
	port, err := freeport.Claim()
	if err != nil {
		return nil, err
	}
	h, err := startWebhook(port, "replica-"+strconv.Itoa(port), extra...)
	if err != nil {
		return nil, err
	}
	r.hooks = append(r.hooks, h)
	return h, h.Ready(ctx)
}

// startReplicas stops the webhook that all tests share and puts n others behind
// its address; afterwards there is one like it again.
func startReplicas(t testing.TB, n int, extra ...string) *replicas {
	t.Helper()
	port := w.hook.port
	w.hook.stop(t)
	r := &replicas{}
	t.Cleanup(func() {
		if r.service != nil {
			r.service.stop()
		}
		for _, h := range r.hooks {
			h.stop(t)
		}
		hook, err := startWebhook(port, "replica-a")
		if err != nil {
			t.Fatal(err)
		}
		w.hook = hook
		if err := hook.Ready(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var ports []int
	for range n {
		h, err := r.start(t.Context(), extra...)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, h.port)
	}
	var err error
	if r.service, err = startService(port, ports...); err != nil {
		t.Fatal(err)
	}
	w.hook = r.hooks[0]
	return r
}

// startProbes writes from several callers at once, without a pause.
func startProbes(t *testing.T, p *place, n int) (count func() (sent, missing int, err error), stop func()) {
	t.Helper()
	var probes []*probe
	var stops []func()
	for range n {
		pr, stop := startProbe(t.Context(), t, p)
		probes, stops = append(probes, pr), append(stops, stop)
	}
	count = func() (sent, missing int, err error) {
		for _, pr := range probes {
			s, m, e := pr.count()
			sent, missing, err = sent+s, missing+m, errors.Join(err, e)
		}
		return sent, missing, err
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			for _, s := range stops {
				s()
			}
		})
	}
	t.Cleanup(stop)
	return count, stop
}

// The API server keeps its connections for as long as it can. A replica that
// comes later gets its share all the same, because the others end theirs.
func TestAReplicaThatComesLaterGetsItsShare(t *testing.T) {
	r := startReplicas(t, 1, "--connection-age=1s")
	p := newPlace(t, unchanged)
	opened := failOpen(t)
	count, stop := startProbes(t, p, 4)
	eventually(t, "the first replica works", func() bool { sent, _, _ := count(); return sent > 20 })
	second, err := r.start(t.Context(), "--connection-age=1s")
	if err != nil {
		t.Fatal(err)
	}
	r.service.set(r.hooks[0].port, second.port)
	started := time.Now()
	const reviewed = "plumbline_admission_reviews_total"
	share := func(since [2]float64) float64 {
		a, b := r.hooks[0].metric(reviewed)-since[0], second.metric(reviewed)-since[1]
		return b / max(a+b, 1)
	}
	var since [2]float64
	eventually(t, "the second replica works", func() bool { return second.metric(reviewed) > 0 })
	first := time.Since(started)
	// All connections of before have ended after twice the age.
	eventually(t, "the old connections are gone", func() bool { return time.Since(started) > 2*time.Second })
	since = [2]float64{r.hooks[0].metric(reviewed), second.metric(reviewed)}
	eventually(t, "enough reviews to tell", func() bool { return second.metric(reviewed)-since[1] > 200 })
	eventually(t, "its share is a fair one", func() bool { s := share(since); return s > .25 && s < .75 })
	t.Logf("the second replica's first review after %v; its share then: %.0f %%", first.Round(time.Millisecond), 100*share(since))
	stop()
	if sent, missing, err := count(); missing != 0 {
		t.Errorf("%d of %d writes had no stamp; last error %v", missing, sent, err)
	}
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server gave up on %v calls", n)
	}
}

// metrics of the API server, as text.
func apiServerMetrics(t testing.TB) string {
	t.Helper()
	raw, err := w.kube.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// guarded makes a namespace of a given name with guards. The namespace stays: a
// namespace is never quite gone without its controller.
func guarded(t testing.TB, namespace string, guards int) {
	t.Helper()
	p := benchPlace(t, namespace)
	for n := range guards {
		p.guardNamed(fmt.Sprintf("guard-%d", n))
	}
	known := func() float64 { return w.hook.metric("plumbline_guards") }
	eventually(t, "the webhook knows the guards", func() bool { return known() >= float64(guards) })
	t.Cleanup(func() {
		all := client.InNamespace(namespace)
		if err := w.client.DeleteAllOf(context.Background(), &v1alpha1.SpecGuard{}, all); err != nil {
			t.Error(err)
		}
		eventually(t, "the webhook forgets the guards", func() bool { return known() < float64(guards) })
	})
}
