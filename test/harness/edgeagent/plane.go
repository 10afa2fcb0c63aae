// SPDX-License-Identifier: Apache-2.0

package edgeagent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience bounds each wait. A refusal of a proof that is late takes 15 s, so its wait is twice as long.
const patience = 30 * time.Second

// Plane is a discovery server of two replicas, each with its counts. It implements serve.Directory.
type Plane struct {
	testing.TB
	authority []byte
	group     *serve.Group
	replicas  [2]*replica

	mu     sync.Mutex
	tokens map[string]bool // that opened a stream
}

type replica struct {
	address string
	serving tls.Certificate
	server  *serve.Server
	counts  *receive.Server
	// stop is nil while the replica is away.
	stop func()
}

// NewPlane starts a plane, which runs until the test ends.
func NewPlane(tb testing.TB) *Plane {
	tb.Helper()
	p := &Plane{TB: tb, group: serve.NewGroup(ads.NewView()), tokens: map[string]bool{}}
	var serving tls.Certificate
	serving, p.authority = envoy.NewServing(tb)
	for i := range p.replicas {
		p.replicas[i] = &replica{address: freeport.Address(tb), serving: serving}
		p.StartReplica(i)
		tb.Cleanup(func() { p.StopReplica(i) })
	}
	return p
}

// StartReplica starts the replica 0 or 1 at its address. The replica begins without streams and counts.
func (p *Plane) StartReplica(i int) {
	p.Helper()
	r := p.replicas[i]
	l, err := net.Listen("tcp", r.address) //nolint:noctx // as a server would
	if err != nil {
		p.Fatal(err)
	}
	running := grpc.NewServer(append(serve.Options(), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{r.serving}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
	})))...)
	r.server = serve.New(serve.Config{}, p, serve.NewProofs(), envoyxds.Missing, silent{})
	r.counts = receive.New(receive.Config{
		Signals: signals.Config{Interval: time.Second}, Acknowledged: func(string, signals.Slot) signals.Stratum { return signals.Stratum{} },
	}, counting{p}, silent{}, time.Now)
	r.server.Register(running)
	r.counts.Register(running)
	served := make(chan error, 1)
	go func() { served <- running.Serve(l) }()
	r.stop = func() {
		running.Stop()
		if err := <-served; err != nil {
			p.Errorf("the server ended: %v", err)
		}
	}
}

// StopReplica ends the replica 0 or 1, if it runs.
func (p *Plane) StopReplica(i int) {
	if r := p.replicas[i]; r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// Admit implements serve.Directory.
func (p *Plane) Admit(_ context.Context, authorization []string) (serve.Admission, error) {
	token, err := identity.Bearer(authorization)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens[token] = true
	return serve.Admission{Proxy: identity.Proxy{Namespace: "shop", Pod: "edge-0", PodUID: "edge-0"}, Group: p.group}, err
}

// HasSeen says whether a token opened a stream.
func (p *Plane) HasSeen(token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens[token]
}

// counting implements receive.Directory.
type counting struct{ *Plane }

func (c counting) Admit(ctx context.Context, authorization []string) (receive.Admission, error) {
	in, err := c.Plane.Admit(ctx, authorization)
	return receive.Admission{Proxy: in.Proxy, Has: func(cluster string) bool { return c.group.View().Get(ads.Cluster, cluster) != nil }}, err
}

// silent implements serve.Observer and receive.Observer.
type silent struct{}

func (silent) Streams(int)                         {}
func (silent) Received(int)                        {}
func (silent) Rejected(receive.Reason, int)        {}
func (silent) Opened(identity.Proxy)               {}
func (silent) Closed(identity.Proxy, error)        {}
func (silent) Refused(codes.Code, serve.Bound)     {}
func (silent) Sent(identity.Proxy, *ads.Send, int) {}
func (silent) Happened(identity.Proxy, ads.Effect) {}

// Publish publishes a Service as shop/web.
func (p *Plane) Publish(s ir.Service) {
	p.Helper()
	s.Namespace, s.Name, s.Addresses = "shop", "web", []netip.Addr{netip.MustParseAddr("10.96.0.7")}
	p.PublishAll(s)
}

// PublishAll publishes Services under their names, and no other one.
func (p *Plane) PublishAll(services ...ir.Service) {
	p.Helper()
	resources, err := envoyxds.Resources(ir.Mesh{Services: services}, nil)
	if err != nil {
		p.Fatal(err)
	}
	p.group.Publish(ads.NewView(resources...))
}

// FindRoute returns the agent and the state of its route, by the replica that the agent is connected to.
func (p *Plane) FindRoute() (serve.Connected, ads.State, error) {
	for _, r := range p.replicas {
		for _, c := range r.server.Proxies(p.Context(), nil) {
			for _, s := range c.Resources {
				if s.Type == ads.Route {
					return c, s, nil
				}
			}
		}
	}
	return serve.Connected{}, ads.State{}, errors.New("no agent has asked for a route")
}

// AwaitAcknowledged waits until the agent has acknowledged the sequence of the route, and no later one is under way.
func (p *Plane) AwaitAcknowledged(sequence uint64) {
	p.Helper()
	poll.Until(p, patience, fmt.Sprint("sequence ", sequence, " is acknowledged"), func() error {
		_, s, err := p.FindRoute()
		if err == nil && (s.Has.Sequence != sequence || s.Stage != ads.Acknowledged) {
			err = fmt.Errorf("the route is %s with sequence %d: %s", s.Stage, s.Has.Sequence, s.Why)
		}
		return err
	})
}

// AwaitOnTheWay waits until the server has sent the route, and has no answer of the agent.
func (p *Plane) AwaitOnTheWay() {
	p.Helper()
	poll.Until(p, patience, "the route is on the way", func() error {
		if _, s, err := p.FindRoute(); err != nil || s.Stage != ads.OnTheWay {
			return errors.Join(fmt.Errorf("it is %s", s.Stage), err)
		}
		return nil
	})
}

// AwaitRefusal waits until the server shows that the agent refuses the route, with these words.
func (p *Plane) AwaitRefusal(words string) {
	p.Helper()
	poll.Until(p, 2*patience, "the route is refused for "+words, func() error {
		_, s, err := p.FindRoute()
		if err == nil && (s.Stage != ads.Refused || !strings.Contains(s.Why, words)) {
			err = fmt.Errorf("the route is %s: %s", s.Stage, s.Why)
		}
		return err
	})
}

// AwaitCounts waits until the replicas have counted these requests by variation.
func (p *Plane) AwaitCounts(served map[string]int) {
	p.Helper()
	poll.Until(p, patience, "the server has the counts of the clients", func() error {
		counted := map[string]int{}
		for _, r := range p.replicas {
			for _, v := range r.counts.Service("shop", "web", time.Time{}).Variations {
				counted[v.Name] += int(v.Total[signals.Completed]) //nolint:gosec // some thousands
			}
		}
		for _, variation := range []string{"stable", "canary"} {
			if counted[variation] != served[variation] {
				return fmt.Errorf("counted %v, served %v", counted, served)
			}
		}
		return nil
	})
}
