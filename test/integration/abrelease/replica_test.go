// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/controller/abrelease"
	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

const patience = time.Minute

// replica is a discovery server that runs, and leads if it is to.
type replica struct {
	address     string
	certificate tls.Certificate
	authority   []byte
	routers     abrelease.Routers
	server      *serve.Server
	counts      *receive.Server
	stop        func()
	// lead has one that waits lead.
	lead func()
}

// routers gives each release a recorder, which has everything acknowledged at once: what
// proxies have is asked of them in most tests.
type routers struct{ recorders sync.Map }

// Router implements abrelease.Routers.
func (r *routers) Router(release types.NamespacedName) traffic.Router {
	of, _ := r.recorders.LoadOrStore(release, &routertest.Recorder{})
	return of.(*routertest.Recorder) //nolint:forcetypeassert // nothing else is stored
}

// role of a replica.
type role int

const (
	follows role = iota
	leads
	// asksProxies leads, and goes by what proxies acknowledge.
	asksProxies
	// waits is asksProxies from when it is told to lead.
	waits
)

// times are shorter than in production: what is tested is the order of what happens.
var times = abrelease.Times{Acknowledged: time.Second, Ledger: 500 * time.Millisecond, Counts: 2 * time.Second, Sweep: 200 * time.Millisecond}

// start one, which ends with the test or before. Plumbline's namespace is that of the
// shop, so that tests do not see each other.
func (s *shop) start(as role) *replica {
	s.t.Helper()
	r := &replica{}
	r.certificate, r.authority = envoy.NewServing(s.t)
	return s.startAt(freeport.Address(s.t), r, as)
}

// startAt an address, with the certificate of another one.
func (s *shop) startAt(address string, like *replica, as role) *replica {
	s.t.Helper()
	listener, err := net.Listen("tcp", address) //nolint:noctx // as a server would
	s.must(err)
	r := &replica{address: listener.Addr().String(), certificate: like.certificate, authority: like.authority, routers: &routers{}}
	window, proxies := discovery.NewWindow(), discovery.NewRouters()
	switch {
	case as == asksProxies || as == waits:
		r.routers = proxies
	case s.rollouts != nil:
		r.routers = s.rollouts
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done, serving := make(chan struct{}), make(chan error, 1), make(chan *serve.Server, 1)
	counting := make(chan *receive.Server, 1)
	log := logr.Discard() // a benchmark shows ten lines
	if t, tests := s.t.(*testing.T); tests {
		log = inprocess.Told(t)
	}
	go func() {
		done <- discovery.Run(ctx, discovery.Setup{
			Config: config, Listener: listener, Registry: prometheus.NewRegistry(), Log: log, Clock: clock.RealClock{}, Window: window,
			Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &r.certificate, nil },
			Ready:       func() { close(ready) }, Namespace: s.namespace, Routers: proxies, Serving: func(s *serve.Server) { serving <- s },
			Counting: func(s *receive.Server) { counting <- s },
			Times:    discovery.Times{Goodbye: 100 * time.Millisecond, OldConnections: s.oldConnections, Silence: s.silence},
		})
	}()
	led, begin := make(chan struct{}), make(chan struct{})
	r.lead = sync.OnceFunc(func() { close(begin) })
	if as != waits {
		r.lead()
	}
	times := times
	if s.rollouts != nil {
		times = abrelease.Times{} // a benchmark has those of production
	}
	times.KeptFor = s.keptFor
	go func() {
		defer close(led)
		select {
		case <-begin:
		case <-ctx.Done():
			return
		}
		if as != follows {
			part := elected.Part{Config: config, Lease: "xds", Namespace: s.namespace, Time: servertime.New(clock.RealClock{}), Log: log}
			part.Again(ctx, clock.RealClock{}, func(mgr ctrl.Manager, _ *rest.Config) error {
				if err := mgr.Add(manager.RunnableFunc(proxies.Lead)); err != nil {
					return err
				}
				return abrelease.Add(mgr, abrelease.Setup{Window: window, Routers: r.routers, Reporters: proxies, Namespace: s.namespace, Clock: clock.RealClock{}, Log: log, Times: times, Rollouts: s.rollouts != nil})
			})
		}
	}()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		<-led
	}
	s.t.Cleanup(r.stop)
	poll.Ready(s.t, patience, "the discovery server", ready, done)
	r.server, r.counts = <-serving, <-counting
	return r
}

// shop is a namespace with a service account.
type shop struct {
	t         testing.TB
	namespace string
	// oldConnections is how long pods are taken to have kept connections from before their
	// Service was managed.
	oldConnections time.Duration
	// keptFor is how long the sequence of a Service is kept that is gone.
	keptFor time.Duration
	// silence is how long a proxy is unheard when it counts as gone; 0 for that of production.
	silence time.Duration
	// rollouts are the routers of releases with stages; nil where no release has stages.
	rollouts *meters
}

func newShop(t testing.TB) *shop {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	s := &shop{t: t, oldConnections: time.Nanosecond}
	s.create(n)
	s.namespace = n.Name
	s.create(&corev1.ServiceAccount{ObjectMeta: s.named("front")})
	return s
}
