// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	connector "github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/haproxy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// plane is a discovery server of two replicas, each with what is counted. A token names a pod. It
// implements serve.Directory and serve.Observer, and receive.Observer.
type plane struct {
	testing.TB
	authority []byte
	group     *serve.Group
	replicas  [2]*replica

	mu     sync.Mutex
	tokens map[string]bool // that opened a stream
	said   []string        // against resources
}

type replica struct {
	address string
	serving tls.Certificate
	server  *serve.Server
	counts  *receive.Server
	// stop is nil while the replica is away.
	stop func()
}

func newPlane(t testing.TB) *plane {
	t.Helper()
	p := &plane{TB: t, group: serve.NewGroup(ads.NewView()), tokens: map[string]bool{}}
	var serving tls.Certificate
	serving, p.authority = envoy.NewServing(t)
	for i := range p.replicas {
		p.replicas[i] = &replica{address: freeport.Address(t), serving: serving}
		p.start(p.replicas[i])
		t.Cleanup(func() { p.stop(p.replicas[i]) })
	}
	return p
}

func (p *plane) start(r *replica) {
	p.Helper()
	l, err := net.Listen("tcp", r.address) //nolint:noctx // as a server would
	must(p, err)
	running := grpc.NewServer(append(serve.Options(), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{r.serving}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
	})))...)
	r.server = serve.New(serve.Config{}, p, serve.NewProofs(), envoyxds.Missing, p)
	r.counts = receive.New(receive.Config{
		Signals: signals.Config{Interval: time.Second}, Acknowledged: func(string, signals.Slot) signals.Stratum { return signals.Stratum{} },
	}, counting{p}, p, time.Now)
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

func (*plane) stop(r *replica) {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// Admit implements serve.Directory.
func (p *plane) Admit(_ context.Context, authorization []string) (serve.Admission, error) {
	token, err := identity.Bearer(authorization)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens[token] = true
	return serve.Admission{Proxy: identity.Proxy{Namespace: "shop", Pod: "edge-0", PodUID: "edge-0"}, Group: p.group}, err
}

// counting implements receive.Directory.
type counting struct{ *plane }

func (c counting) Admit(ctx context.Context, authorization []string) (receive.Admission, error) {
	in, err := c.plane.Admit(ctx, authorization)
	return receive.Admission{Proxy: in.Proxy, Has: func(cluster string) bool { return c.group.View().Get(ads.Cluster, cluster) != nil }}, err
}

func (*plane) Streams(int)                         {}
func (*plane) Received(int)                        {}
func (*plane) Rejected(receive.Reason, int)        {}
func (*plane) Opened(identity.Proxy)               {}
func (*plane) Closed(identity.Proxy, error)        {}
func (*plane) Refused(codes.Code, serve.Bound)     {}
func (*plane) Sent(identity.Proxy, *ads.Send, int) {}

// Happened notes what the agent refuses.
func (p *plane) Happened(_ identity.Proxy, e ads.Effect) {
	if r, is := e.(ads.Rejected); is {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.said = append(p.said, r.Message)
	}
}

// publish a Service, of which the agent hears.
func (p *plane) publish(s ir.Service) {
	p.Helper()
	s.Namespace, s.Name, s.Addresses = "shop", "web", []netip.Addr{netip.MustParseAddr("10.96.0.7")}
	resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{s}}, nil)
	must(p, err)
	p.group.Publish(ads.NewView(resources...))
}

// route is how far the route is at the agent, by the replica that the agent is connected to.
func (p *plane) route() (serve.Connected, ads.State, error) {
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

// acknowledged waits until the agent has acknowledged the sequence of the route, and nothing is left.
func (p *plane) acknowledged(sequence uint64) {
	p.Helper()
	poll.Until(p, patience, fmt.Sprint("sequence ", sequence, " is acknowledged"), func() error {
		_, s, err := p.route()
		if err == nil && (s.Has.Sequence != sequence || s.Stage != ads.Acknowledged) {
			err = fmt.Errorf("the route is %s with sequence %d: %s", s.Stage, s.Has.Sequence, s.Why)
		}
		return err
	})
}

// edge is an agent with its HAProxy.
type edge struct {
	*plane
	folder, address string
	cmd             *exec.Cmd
	variables       []string
	ended           chan error
}

// newEdge starts an agent whose user sends all requests to port 80 of Service shop/web.
func newEdge(t testing.TB, p *plane, tags string, variables ...string) *edge {
	t.Helper()
	folder, err := os.MkdirTemp("", "edge") //nolint:usetesting // the path of a socket has at most 107 bytes
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	e := &edge{plane: p, folder: folder, address: freeport.Address(t), variables: variables}
	must(t, server.BuildWithTags(t.Context(), folder, tags, "agent"))
	e.write("user.cfg", e.user())
	e.write("token", "first")
	e.write("ca.crt", string(p.authority))
	e.start()
	t.Cleanup(e.kill)
	return e
}

func (e *edge) user() string {
	return fmt.Sprintf(`defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
frontend web
  bind %s
  use_backend plb_shop_web
`, e.address)
}

func (e *edge) file(name string) string { return filepath.Join(e.folder, name) }

func (e *edge) write(name, content string) {
	e.Helper()
	must(e, os.WriteFile(e.file(name), []byte(content), 0o600))
}

// start the agent, which starts the HAProxy.
func (e *edge) start() {
	e.Helper()
	_, instance, _ := strings.Cut(e.address, ":")
	e.cmd = child.Bind(exec.Command(e.file("agent"), "run", "--connector=haproxy", "--xds-servers="+e.replicas[0].address+","+e.replicas[1].address,
		"--token-file="+e.file("token"), "--ca-file="+e.file("ca.crt"), "--node=shop/edge-0", "--folder="+e.file("state"), "--instance="+instance,
		"--metrics-address="+freeport.Address(e), "--health-address="+freeport.Address(e), "--log-format=text", "--flush-interval=1s", "--drain-delay=10ms",
		"--", haproxy.Binary(e), "-f", e.file("user.cfg"))) //nolint:gosec,noctx // a test's own binary, which kill ends
	e.cmd.Env = append(os.Environ(), e.variables...)
	e.cmd.Stdout, e.cmd.Stderr = e.Output(), e.Output()
	must(e, e.cmd.Start())
	e.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(e.cmd, e.ended)
}

// wait until the agent has ended, and its HAProxy has gone.
func (e *edge) wait() {
	e.Helper()
	poll.Until(e, patience, "the agent has ended", func() error {
		select {
		case err := <-e.ended:
			e.ended <- err
			return nil
		default:
			return errors.New("it runs")
		}
	})
	poll.Until(e, patience, "the HAProxy has ended with the agent", func() error {
		l, err := net.Listen("tcp", e.address) //nolint:noctx // closed at once
		if err == nil {
			err = l.Close()
		}
		return err
	})
}

func (e *edge) kill() {
	if e.cmd.Process.Kill() == nil {
		e.wait()
	}
}

func (e *edge) master() runtimeapi.Client {
	return runtimeapi.Client{Socket: filepath.Join(e.folder, "state", "master.sock")}
}

// worker is the PID of the present one.
func (e *edge) worker() int {
	e.Helper()
	present, _, err := e.master().Workers(e.Context())
	must(e, err)
	if len(present) != 1 {
		e.Fatalf("there are workers %v", present)
	}
	return present[0]
}

// divides asks some visitors, each of whom has to be where the split says.
func (e *edge) divides(s ir.Service) {
	e.Helper()
	c := newClient(false)
	for i := range 40 {
		user := fmt.Sprint("user-", i)
		got, err := c.ask(e, http.MethodGet, e.address, "x-user", user)
		must(e, err)
		if want := arm(s.Routing, user); got.variation != want {
			e.Fatalf("%s is answered %d by %q, want %s", user, got.status, got.variation, want)
		}
	}
}

// signal the agent.
func (e *edge) signal(s syscall.Signal) {
	e.Helper()
	must(e, e.cmd.Process.Signal(s))
}

// refusal waits until the discovery server shows that the agent refuses the route, and why.
func (e *edge) refusal(want string) {
	e.Helper()
	poll.Until(e, 2*patience, "the route is refused for "+want, func() error {
		_, s, err := e.route()
		if err == nil && (s.Stage != ads.Refused || !strings.Contains(s.Why, want)) {
			err = fmt.Errorf("the route is %s: %s", s.Stage, s.Why)
		}
		return err
	})
}

// configuration is what the agent has written.
func (e *edge) configuration() string {
	e.Helper()
	return string(read(e, filepath.Join(e.folder, "state", connector.ConfigFile)))
}
