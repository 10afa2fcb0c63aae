// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

const (
	// chaosVariable names the environment variable that says how long the chaos lasts, such as 30m.
	chaosVariable = "PLUMBLINE_CHAOS"
	usualChaos    = 15 * time.Second
	// usersOfClient ask in turn.
	usersOfClient = 40
	// longestPause between two events.
	longestPause = 500 * time.Millisecond
)

// chaos is two discovery servers, two proxies, a Service web that a release divides by user, and a
// Service guest that comes into the mesh and leaves it.
type chaos struct {
	*shop
	*judge
	random  *rand.Rand
	seats   []*seat
	proxies []*captured
	// stable and canary are the pods of web, which the API server knows.
	stable, canary []*instance
	made           int
	web            *corev1.Service
	release        *v1alpha1.ABRelease
	share          int // of the canary, in percent
	guest          *corev1.Service
	joined         bool
}

// The steps of a split, the discovery servers, the streams of proxies, the API server, and the pods of
// both variations: at random, one after the other, in any combination. A Service comes and leaves
// meanwhile. No request fails, and no user is moved back but by the rules, see [judge].
func TestNoRequestIsLostInChaos(t *testing.T) {
	rotation.Share(t, 3)
	t.Parallel() // it has a cluster of its own
	length := chaosLength(t)
	of := seed.Of(t, 1)
	t.Logf("%s of random events with the seed %d (%s)", length, of, seed.Variable)
	c := newChaos(t, rand.New(rand.NewPCG(of, 0))) //nolint:gosec // no secret
	stop := c.open()
	c.ramp()
	c.run(length)
	c.heal()
	stop()
	c.verdict(t)
}

func chaosLength(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(chaosVariable)
	if text == "" {
		return usualChaos
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("reading %s: %v", chaosVariable, err)
	}
	return d
}

func newChaos(t *testing.T, random *rand.Rand) *chaos {
	t.Helper()
	s := ownCluster(t, manifest).shop(t, enabled)
	c := &chaos{shop: s, judge: newJudge(), random: random, seats: s.seats("xds-one", "xds-two")}
	t.Cleanup(func() {
		for _, of := range c.seats {
			if t.Failed() && of.process != nil {
				t.Logf("%s said:\n%s", of.name, of.process.Said())
			}
			of.end(true)
		}
	})
	for _, of := range c.seats {
		of.start()
	}
	c.web = s.selecting("web")
	for range 3 {
		c.stable = append(c.stable, c.another("stable"))
	}
	c.canary = []*instance{c.another("canary"), c.another("canary")}
	upstream := startGuest(t)
	s.service("guest", upstream)
	c.guest, c.joined = &corev1.Service{ObjectMeta: s.named("guest")}, true
	s.must(s.c.admin.Get(t.Context(), client.ObjectKeyFromObject(c.guest), c.guest))
	c.share = 10
	c.release = s.releaseBy("web", c.share, "type: Sticky, sticky: {header: "+userHeader+"}")
	s.awaitCopy()
	for i := range 2 {
		c.proxies = append(c.proxies, s.captured(fmt.Sprint("front-", i), s.copied().Data["ca.crt"], upstream))
	}
	c.settle()
	return c
}

// settle waits until all servers are ready, and all proxies have what is wanted; users are held from
// then on.
func (c *chaos) settle() {
	c.Helper()
	poll.Until(c.T, patience, "all discovery servers are ready", func() error {
		for _, s := range c.seats {
			if s.look(); !s.ready {
				return fmt.Errorf("%s is not", s.name)
			}
		}
		return nil
	})
	c.lead()
	for _, p := range c.proxies {
		poll.Until(c.T, patience, "the proxy listens for web", func() error { return p.listens(destination(c.web)) })
	}
	split := fmt.Sprintf("stable %d / canary %d", 100-c.share, c.share)
	c.wait(c.release, patience, split+" is in force, and acknowledged by both proxies", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Split == split && r.Status.Acknowledged != nil && r.Status.Acknowledged.Count == "2/2"
	})
	poll.Until(c.T, patience, "all proxies have what is wanted", c.settled)
	c.bind()
}

// open has clients of both proxies ask both Services until stop is called.
func (c *chaos) open() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i, p := range c.proxies {
		for protocol, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			name := fmt.Sprintf("%s by proxy %d", protocol, i)
			web := newCustomers(c.judge, "web over "+name, p.outbound, destination(c.web), http2, usersOfClient)
			guest := newCustomers(c.judge, "guest over "+name, p.outbound, destination(c.guest), http2, 0)
			running.Go(func() { web.run(ctx) })
			running.Go(func() { guest.run(ctx) })
		}
	}
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	c.Cleanup(stop)
	return stop
}

// ramp gives the canary more while users are held: in a short run chance may leave no time for it.
func (c *chaos) ramp() {
	c.Helper()
	poll.Until(c.T, patience, "both versions have answered users", func() error {
		if seen := c.answering(); !seen["stable"] || !seen["canary"] {
			return fmt.Errorf("users are answered by %v", seen)
		}
		return nil
	})
	c.divide(50)
	poll.Until(c.T, patience, "users move to the canary", func() error {
		if c.moves() == 0 {
			return errors.New("none has moved")
		}
		return nil
	})
}

func (c *chaos) run(length time.Duration) {
	for end := time.Now().Add(length); time.Now().Before(end); {
		c.step()
		c.tend()
		<-time.After(time.Duration(c.random.Int64N(int64(longestPause))))
	}
}

// chance is true once in so many times.
func (c *chaos) chance(of int) bool { return c.random.IntN(of) == 0 }

// tend has what is gone come back sooner or later, and leads proxies to servers that are ready.
func (c *chaos) tend() {
	for _, s := range c.seats {
		if s.process == nil && c.chance(4) {
			c.tell("%s is started", s.name)
			s.start()
		}
		before := s.ready
		if s.look(); s.ready && !before {
			c.tell("%s is ready", s.name)
		}
	}
	for i, p := range c.proxies {
		if p.away && c.chance(4) {
			c.tell("proxy %d can reach servers again", i)
			p.away = false
		}
	}
	for _, i := range slices.Concat(c.stable, c.canary) {
		if !i.lives && c.chance(3) {
			c.tell("%s lives again", i.pod.Name)
			i.restart()
		}
	}
	if len(c.canary) == 0 && c.chance(5) {
		c.tell("the canary has two new pods")
		c.canary = []*instance{c.another("canary"), c.another("canary")}
	}
	c.lead()
	if c.isFree() && c.settled() == nil {
		c.tell("users are held again, at %d %%", c.share)
		c.bind()
	}
}

// lead each proxy to the servers that are ready, one of them first.
func (c *chaos) lead() {
	for i, p := range c.proxies {
		var to []string
		for n := range c.seats {
			if s := c.seats[(i+n)%len(c.seats)]; s.ready && !p.away {
				to = append(to, s.address)
			}
		}
		p.way.Lead(to...)
	}
}

// settled says why users cannot be held: not each proxy has the share that is wanted, or not each
// has just the pods of the canary, all of which it would ask.
func (c *chaos) settled() error {
	r := c.release
	if err := c.c.admin.Get(c.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		return err
	}
	wanted := fmt.Sprintf("stable %d / canary %d", 100-c.share, c.share)
	if r.Status.ObservedGeneration != r.Generation || r.Status.Split != wanted || len(r.Status.Clamped) > 0 {
		return fmt.Errorf("in force is %s, of generation %d, want %s of %d", r.Status.Split, r.Status.ObservedGeneration, wanted, r.Generation)
	}
	for i, p := range c.proxies {
		is, err := p.sequence("web")
		if err == nil && is < r.Status.Effective.Sequence {
			err = fmt.Errorf("it has the sequence %d, want %d", is, r.Status.Effective.Sequence)
		}
		if err != nil {
			return fmt.Errorf("proxy %d: %w", i, err)
		}
	}
	if !c.spares("canary", c.canary, nil) {
		return fmt.Errorf("the proxies do not have the pods of the canary alone")
	}
	return nil
}

// spares says whether proxies serve a variation without one of its instances: each proxy has another
// one that lives and is not ejected, and none that is dead.
func (c *chaos) spares(variation string, of []*instance, without *instance) bool {
	c.Helper()
	lives := map[string]bool{}
	for _, i := range of {
		lives[i.Address] = i.lives
	}
	for _, p := range c.proxies {
		hosts, err := p.hosts("web", variation)
		c.must(err)
		others := 0
		for address, healthy := range hosts {
			if !lives[address] {
				return false
			}
			if healthy && (without == nil || address != without.Address) {
				others++
			}
		}
		if others == 0 || without == nil && others < len(of) {
			return false
		}
	}
	return true
}

// heal what is broken. All proxies acknowledge one more split in the end.
func (c *chaos) heal() {
	c.Helper()
	c.tell("all is healed")
	for _, s := range c.seats {
		if s.process == nil {
			s.start()
		}
	}
	for _, p := range c.proxies {
		p.away = false
	}
	for _, i := range slices.Concat(c.stable, c.canary) {
		if !i.lives {
			i.restart()
		}
	}
	for len(c.canary) < 2 {
		c.canary = append(c.canary, c.another("canary"))
	}
	c.divide(50)
	c.settle()
}
