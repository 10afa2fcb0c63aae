// SPDX-License-Identifier: Apache-2.0

//go:build integration

package signals

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience is generous, the machine is shared.
const patience = time.Minute

// plane is the control plane of one proxy: routes and what goes with them, and beside
// that the receiver of what is counted.
// It implements serve.Directory and serve.Observer, and receive.Observer.
type plane struct {
	t         *testing.T
	authority []byte
	serving   tls.Certificate
	port      int
	group     *serve.Group
	counts    *receive.Server
	interval  time.Duration
	// gateway says that proxies are gateways.
	gateway  bool
	messages atomic.Int64
	last     atomic.Int64 // message, in nanoseconds
	rejected atomic.Int64

	mu      sync.Mutex
	told    map[signals.Slot]int // flushes that told of it
	running *grpc.Server
	served  chan error
}

// newPlane has proxies tell every so often what they count.
func newPlane(t *testing.T, interval time.Duration) *plane {
	p := &plane{t: t, group: serve.NewGroup(nil), port: freeport.For(t), interval: interval, told: map[signals.Slot]int{}}
	p.serving, p.authority = envoy.NewServing(t)
	p.counts = receive.New(receive.Config{Signals: signals.Config{Interval: interval}, Acknowledged: p.tell}, counting{p}, p, time.Now)
	p.start()
	t.Cleanup(p.stop)
	return p
}

func (p *plane) start() {
	p.t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))) //nolint:noctx // as a server would
	must(p.t, err)
	running := grpc.NewServer(append(serve.Options(), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{p.serving}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
	})))...)
	serve.New(serve.Config{}, p, serve.NewProofs(), envoyxds.Missing, p).Register(running)
	p.counts.Register(running)
	served := make(chan error, 1)
	go func() { served <- running.Serve(l) }()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.served = running, served
}

func (p *plane) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return
	}
	p.running.Stop()
	if err := <-p.served; err != nil {
		p.t.Errorf("the server ended: %v", err)
	}
	p.running = nil
}

// Admit implements serve.Directory: a token is the name of a pod.
func (p *plane) Admit(_ context.Context, authorization []string) (serve.Admission, error) {
	token, err := identity.Bearer(authorization)
	return serve.Admission{Proxy: identity.Proxy{Namespace: "shop", Pod: token, PodUID: token}, Group: p.group}, err
}

// counting implements receive.Directory.
type counting struct{ *plane }

// Admit is as that of the plane.
func (c counting) Admit(ctx context.Context, authorization []string) (receive.Admission, error) {
	in, err := c.plane.Admit(ctx, authorization)
	return receive.Admission{
		Proxy: in.Proxy, Gateway: c.gateway, Has: func(cluster string) bool { return c.group.View().Get(ads.Cluster, cluster) != nil },
	}, err
}

// Streams, Received and Rejected implement receive.Observer.
func (*plane) Streams(int) {}
func (p *plane) Received(int) {
	p.messages.Add(1)
	p.last.Store(time.Now().UnixNano())
}
func (p *plane) Rejected(_ receive.Reason, times int) { p.rejected.Add(int64(times)) }

// tell counts the flushes that told of a slot, and knows no stratum.
func (p *plane) tell(_ string, of signals.Slot) signals.Stratum {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[of]++
	return signals.Stratum{}
}

// flushesOfAll counts the flushes that told of the slot with the fewest. Between two calls
// it grows by at least the number of flushes, since each flush tells of every slot.
func (p *plane) flushesOfAll() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Min(append(slices.Collect(maps.Values(p.told)), math.MaxInt))
}

// flushes waits until proxies have told so many times more.
func (p *plane) flushes(n int64) {
	p.t.Helper()
	until := p.messages.Load() + n
	poll.Until(p.t, patience, "proxies tell what they count", func() error {
		if now := p.messages.Load(); now < until {
			return fmt.Errorf("they have %d times, want %d", now, until)
		}
		return nil
	})
}

// Opened, Closed, Refused, Sent and Happened implement serve.Observer.
func (*plane) Opened(identity.Proxy)               {}
func (*plane) Closed(identity.Proxy, error)        {}
func (*plane) Refused(codes.Code, serve.Bound)     {}
func (*plane) Sent(identity.Proxy, *ads.Send, int) {}
func (p *plane) Happened(_ identity.Proxy, e ads.Effect) {
	if r, is := e.(ads.Rejected); is {
		p.t.Errorf("the proxy refuses %s: %s", r.Resource.Name, r.Message)
	}
}

// publish services, each of which gets an address of its own, which is the result.
// Requests to those that are timed run into the limit of their route.
func (p *plane) publish(services ...ir.Service) ([]string, []*listenerv3.Listener) {
	p.t.Helper()
	var addresses []string
	var listeners []*listenerv3.Listener
	for _, s := range services {
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(freeport.For(p.t))) //nolint:gosec // a port
		addresses = append(addresses, at.String())
		listeners = append(listeners, envoyxds.Local(s, s.Ports[0], at))
	}
	resources, err := envoyxds.Resources(ir.Mesh{Services: services}, nil)
	must(p.t, err)
	for i, r := range resources {
		if r.Type == ads.Route && strings.Contains(r.Name, timed) {
			resources[i] = limited(p.t, r)
		}
		if r.Type == ads.Cluster && strings.Contains(r.Name, slow) {
			resources[i] = connectsSlowly(p.t, r)
		}
	}
	p.group.Publish(ads.NewView(resources...))
	return addresses, listeners
}

// proxy starts an Envoy with the bootstrap of a sidecar, and listeners; kill ends the Envoy hard.
func (p *plane) proxy(token string, listeners ...*listenerv3.Listener) (kill func()) {
	p.t.Helper()
	directory := p.t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(directory, name)
		must(p.t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	files, err := inject.SecretFiles(directory)
	must(p.t, err)
	for name, content := range files {
		write(name, content)
	}
	write("token", token)
	write("ca.crt", string(p.authority))
	raw, err := inject.Bootstrap(inject.BootstrapConfig{
		XDSHost: "127.0.0.1", XDSPort: uint32(p.port), Directory: directory, //nolint:gosec // ports
		AdminPort: uint32(freeport.For(p.t)), StatusPort: uint32(freeport.For(p.t)), //nolint:gosec // ports
	})
	must(p.t, err)
	return run(p.t, write("bootstrap.json", string(with(p.t, raw, p.interval, listeners))))
}

// timed is in the name of services whose routes have a limit. No route of ours has one.
const timed = "timed"

// slow is in the name of services that a proxy waits for longer than a client does.
const slow = "slow"

// connectsSlowly is a cluster whose connections may take a minute.
func connectsSlowly(t *testing.T, r *ads.Resource) *ads.Resource {
	t.Helper()
	return changed(t, r, &clusterv3.Cluster{}, func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(time.Minute) })
}

// changed is a resource after a change.
func changed[M proto.Message](t *testing.T, r *ads.Resource, of M, change func(M)) *ads.Resource {
	t.Helper()
	packed := &anypb.Any{}
	must(t, proto.Unmarshal(r.Body, packed))
	must(t, packed.UnmarshalTo(of))
	change(of)
	packed, err := anypb.New(of)
	must(t, err)
	out := *r
	out.Body, err = proto.Marshal(packed)
	must(t, err)
	return &out
}

// limited is a route with a limit.
func limited(t *testing.T, r *ads.Resource) *ads.Resource {
	t.Helper()
	return changed(t, r, &routev3.RouteConfiguration{}, func(routes *routev3.RouteConfiguration) {
		for _, host := range routes.GetVirtualHosts() {
			for _, route := range host.GetRoutes() {
				if action := route.GetRoute(); action != nil {
					action.Timeout = durationpb.New(time.Second)
				}
			}
		}
	})
}

// with has a bootstrap send every so often what is counted, and serve listeners.
func with(t *testing.T, bootstrap []byte, interval time.Duration, listeners []*listenerv3.Listener) []byte {
	t.Helper()
	var b map[string]any
	must(t, json.Unmarshal(bootstrap, &b))
	if b["stats_flush_interval"] == nil {
		t.Fatal("the bootstrap does not say how often it sends what it counts")
	}
	b["stats_flush_interval"] = fmt.Sprintf("%.3fs", interval.Seconds())
	static := b["static_resources"].(map[string]any)
	for _, l := range listeners {
		text, err := protojson.Marshal(l)
		must(t, err)
		static["listeners"] = append(static["listeners"].([]any), json.RawMessage(text))
	}
	out, err := json.Marshal(b)
	must(t, err)
	return out
}

func run(t *testing.T, config string) (kill func()) {
	t.Helper()
	var output bytes.Buffer
	process := child.Bind(exec.Command(envoy.Binary(t), "--config-path", config, "--concurrency", "2", "--disable-hot-restart",
		"--log-level", "warning", "--service-node", "n", "--service-cluster", "c")) //nolint:gosec,noctx // a test's own binary, which the cleanup ends
	process.Stdout, process.Stderr = &output, &output
	must(t, process.Start())
	kill = sync.OnceFunc(func() {
		if err := process.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = process.Wait() // that it was killed
	})
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("the Envoy said:\n%s", output.String())
		}
	})
	return kill
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
