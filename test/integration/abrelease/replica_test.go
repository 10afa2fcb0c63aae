// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"crypto/tls"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/controller/abrelease"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
	"github.com/plumbline-dev/plumbline/test/harness/discoveryserver"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
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
	log := logr.Discard() // a benchmark shows ten lines
	if t, tests := s.t.(*testing.T); tests {
		log = inprocess.Told(t)
	}
	server := discoveryserver.New(s.t, config, s.namespace, address, &like.certificate, log)
	r := &replica{address: server.Address(), certificate: like.certificate, authority: like.authority, routers: &routers{}}
	switch {
	case as == asksProxies || as == waits:
		r.routers = server.Routers
	case s.rollouts != nil:
		r.routers = s.rollouts
	}
	if s.rollouts != nil {
		server.Releases.Times = abrelease.Times{} // a benchmark has those of production
	}
	serving, counting, begin := make(chan *serve.Server, 1), make(chan *receive.Server, 1), make(chan struct{})
	server.Serving = func(s *serve.Server) { serving <- s }
	server.Counting = func(s *receive.Server) { counting <- s }
	server.Times.OldConnections, server.Times.Silence = s.oldConnections, s.silence
	server.Releases.Times.KeptFor = s.keptFor
	server.Releases.Connectors = s.connectors
	server.Releases.Routers, server.Releases.Rollouts = r.routers, s.rollouts != nil
	if s.prepare != nil {
		s.prepare(server)
	}
	if r.lead = sync.OnceFunc(func() { close(begin) }); as != waits {
		r.lead()
	}
	if as != follows {
		server.Lead = begin
	}
	r.stop = server.Start(s.t, patience)
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
	// connectors are the routers of TrafficRouters; nil where no release names one.
	connectors abrelease.Connectors
	// prepare changes a replica before it starts; may be nil.
	prepare func(*discoveryserver.Server)
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
