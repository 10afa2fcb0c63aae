// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// connections that an Envoy has made to the discovery server.
func connections(t *testing.T, e *envoy.Envoy) int {
	t.Helper()
	n, err := e.Stat(t.Context(), "cluster.plumbline-xds.upstream_cx_total")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheInstalledServerServesAPodsProxy(t *testing.T) {
	r := shared.start(t, "one")
	s := shared.shop(t, enabled)
	s.service("web", backend.Start(t, "one"))
	s.awaitCopy()
	_, front := s.proxy(r, s.copied().Data[inject.CAKey], "front-0", s.token(s.pod("front-0", proxied)), "web")
	backend.Answers(t, patience, front, "200 one")
	if said := r.Said(); strings.Contains(said, "forbidden") {
		t.Errorf("a right is missing:\n%s", said)
	}
}

// Deleting the Secret forces a change of authority. Proxies read what is published
// with a delay, that of their kubelet.
func TestAChangeOfAuthorityRefusesNoProxy(t *testing.T) {
	const settle, delay = 6 * time.Second, 3 * time.Second
	replicas := []*replica{shared.start(t, "one", "--certificate-settle="+settle.String()), shared.start(t, "two", "--certificate-settle="+settle.String())}
	s, other := shared.shop(t, enabled), shared.shop(t, enabled)
	slice := s.service("web", backend.Start(t, "one"))
	s.awaitCopy()
	other.awaitCopy()
	first := s.copied().Data[inject.CAKey]
	e, front := s.proxy(replicas[0], first, "front-0", s.token(s.pod("front-0", proxied)), "web")
	backend.Answers(t, patience, front, "200 one")
	before, err := replicas[0].shake(t.Context(), first)
	s.must(err)

	s.must(shared.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "plumbline-xds"}}))
	late := &lagging{delay: delay}
	late.see(first)
	done, shakes := map[int]bool{}, 0
	poll.Until(t, patience, "both replicas have a certificate of the new authority", func() error {
		if m := s.copied(); m != nil {
			late.see(m.Data[inject.CAKey])
		}
		for i, r := range replicas {
			after, err := r.shake(t.Context(), late.bundle())
			if err != nil {
				t.Fatalf("after %d handshakes replica %d was not trusted: %v", shakes, i, err)
			}
			shakes++
			done[i] = after.AuthorityKeyId != nil && string(after.AuthorityKeyId) != string(before.AuthorityKeyId)
		}
		if !done[0] || !done[1] {
			return fmt.Errorf("new ones: %v", done)
		}
		return nil
	})
	t.Logf("%d handshakes with a bundle that was %s old", shakes, delay)
	s.awaitCopy()
	other.awaitCopy()
	// The stream of before is there, and one with the new bundle is served.
	s.move(slice, backend.Start(t, "two"))
	backend.Answers(t, patience, front, "200 two")
	if n := connections(t, e); n != 1 {
		t.Errorf("the proxy made %d connections", n)
	}
	_, again := s.proxy(replicas[1], s.copied().Data[inject.CAKey], "front-1", s.token(s.pod("front-1", proxied)), "web")
	backend.Answers(t, patience, again, "200 two")
}

// lagging is what a pod sees of a ConfigMap that changes.
type lagging struct {
	delay  time.Duration
	seen   []seen
	looked time.Time // last
}

type seen struct {
	bundle string
	at     time.Time
}

// see what is published now. A kubelet could have had it since the look before.
func (l *lagging) see(bundle string) {
	now := time.Now()
	if n := len(l.seen); n == 0 {
		l.seen = append(l.seen, seen{bundle, now})
	} else if l.seen[n-1].bundle != bundle {
		l.seen = append(l.seen, seen{bundle, l.looked})
	}
	l.looked = now
}

// bundle is the newest one that is old enough, or the first.
func (l *lagging) bundle() string {
	bundle := l.seen[0].bundle
	for _, s := range l.seen {
		if time.Since(s.at) >= l.delay {
			bundle = s.bundle
		}
	}
	return bundle
}

// A replica that loses its lease serves on, and leads again when it can.
func TestWhoLosesItsLeaseServesOn(t *testing.T) {
	r := shared.start(t, "one")
	s := shared.shop(t, enabled)
	slice := s.service("web", backend.Start(t, "one"))
	s.awaitCopy()
	e, front := s.proxy(r, s.copied().Data[inject.CAKey], "front-0", s.token(s.pod("front-0", proxied)), "web")
	backend.Answers(t, patience, front, "200 one")
	steal(s, "plumbline-xds")
	steal(s, "plumbline-xds-certificates")
	poll.True(t, patience, "it leads no more", func() bool { return strings.Contains(r.Said(), "leading ended") })
	s.move(slice, backend.Start(t, "two"))
	backend.Answers(t, patience, front, "200 two")
	later := shared.shop(t, enabled)
	poll.Takeover.Until(t, patience, later.name+" has the authorities", later.hasCopy) // The thief does not renew it.
	s.move(slice, backend.Start(t, "three"))
	backend.Answers(t, patience, front, "200 three")
	if n := connections(t, e); n != 1 {
		t.Errorf("the proxy made %d connections", n)
	}
}

// steal gives a lease to somebody who does not exist.
func steal(s *shop, name string) {
	s.Helper()
	poll.Until(s.T, patience, "the lease "+name+" is stolen", func() error {
		var lease coordinationv1.Lease
		if err := s.c.admin.Get(s.Context(), client.ObjectKey{Namespace: rendered.Namespace, Name: name}, &lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = new("thief"), new(metav1.NowMicro())
		return s.c.admin.Update(s.Context(), &lease)
	})
}

// What a replica has it serves while the API server is away, also to a proxy that it
// has never seen, and it leads again afterwards.
func TestProxiesAreServedWhileTheAPIServerIsAway(t *testing.T) {
	c := ownCluster(t, manifest)
	r := c.start(t, "one")
	s := c.shop(t, enabled)
	slice := s.service("web", backend.Start(t, "one"))
	s.awaitCopy()
	bundle := s.copied().Data[inject.CAKey]
	e, front := s.proxy(r, bundle, "front-0", s.token(s.pod("front-0", proxied)), "web")
	backend.Answers(t, patience, front, "200 one")
	token := s.token(s.pod("front-1", proxied))
	// The second pod is known when its proxy is: the cache of pods is not asked.
	_, known := s.proxy(r, bundle, "front-1", token, "web")
	backend.Answers(t, patience, known, "200 one")

	s.must(apiserver.Kill(c.server))
	poll.True(t, patience, "it leads no more", func() bool { return strings.Contains(r.Said(), "leading ended") })
	_, fresh := s.proxy(r, bundle, "front-1", token, "web")
	backend.Answers(t, patience, fresh, "200 one")
	backend.Answers(t, patience, front, "200 one")
	if code, body, err := r.Get(t.Context(), r.Health, "/readyz"); code != 200 || err != nil {
		t.Errorf("it is not ready: %s %v", body, err)
	}

	s.must(apiserver.Revive(c.server))
	s.move(slice, backend.Start(t, "two"))
	backend.Answers(t, patience, front, "200 two")
	later := c.shop(t, enabled)
	later.awaitCopy()
	if n := connections(t, e); n != 1 {
		t.Errorf("the proxy made %d connections", n)
	}
}
