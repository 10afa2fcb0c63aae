// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// wire passes bytes on between proxies and the server, until it is cut: then so many more
// of the server's come through, of which the last ones are seldom the end of anything.
type wire struct {
	to       string
	armed    atomic.Bool
	left     atomic.Int64
	fallen   func() // called when they have come through
	accepted atomic.Int64
}

func newWire(t testing.TB, to string, fallen func()) (w *wire, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed below
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // ends the loop
	w = &wire{to: to, fallen: fallen}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.accepted.Add(1)
			go w.pass(c)
		}
	}()
	return w, l.Addr().String()
}

func (w *wire) cutAfter(bytes int64) {
	w.left.Store(bytes)
	w.armed.Store(true)
}

// pass a connection on in both directions, as long as there is a server.
func (w *wire) pass(proxy net.Conn) {
	defer func() { _ = proxy.Close() }() // so that the other half ends too
	server, err := net.Dial("tcp", w.to) //nolint:noctx // on this machine
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }() // as above
	go func() {
		_, _ = proxy.(*net.TCPConn).WriteTo(server) // until one of them ends
		_ = server.Close()
	}()
	buffer := make([]byte, 16<<10)
	for {
		n, err := server.Read(buffer)
		if w.armed.Load() {
			if left := w.left.Add(int64(-n)); left < 0 {
				n = max(0, n+int(left))
				_, _ = proxy.Write(buffer[:n]) // the rest of it never comes
				if w.armed.CompareAndSwap(true, false) {
					w.fallen()
				}
				return
			}
		}
		if _, writing := proxy.Write(buffer[:n]); err != nil || writing != nil {
			return
		}
	}
}

// kills is how often the server is, and how often in a long run.
func kills() int {
	if long() {
		return 100
	}
	return 12
}

// The server is a process of its own, which gets SIGKILL while a part of a response is on
// its way, again and again; each time a new one knows nothing of what was acknowledged.
func TestAServerThatIsKilledInTheMiddleOfAResponseCostsNoRequest(t *testing.T) {
	s := &state{Front: freeport.Address(t), A: backend(t, "a"), B: backend(t, "b"), Address: freeport.Address(t)}
	serving, authority := envoy.NewServing(t)
	s.keep(t, serving)
	var server *offspring
	killed := make(chan struct{}, 1)
	cut, address := newWire(t, s.Address, func() { server.kill(); killed <- struct{}{} })
	server = s.start(t)
	s.steps(0)
	server.publish(*s)
	e := envoy.Start(t, envoy.Options{Address: address, Authority: authority, Node: "web-0", Token: "web-0"})
	answersBy(t, s.Front, "a")
	server.acked(t, s.route())
	l := startLoad(t, s.Front)

	random := seed.Random(t)
	for n := range kills() {
		cut.cutAfter(1 + random.Int64N(2_500))
		for alive := true; alive; {
			s.steps(uint32(n%2) * 5_000) //nolint:gosec // 0 or 5,000
			server.publish(*s)
			select {
			case <-killed:
				alive = false
			case <-server.told(s.route()):
			}
			n++
		}
		server = s.start(t)
		server.publish(*s)
		server.acked(t, s.route())
	}
	l.ended(t)
	t.Logf("%d kills, %d connections", kills(), cut.accepted.Load())
	eventually(t, "the proxy has what there is", func() error {
		if diff := cmp.Diff(s.versions(), dumped(t, e)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// dumped is what a proxy says that it has, as "type name hash"; of endpoints the
// addresses stand for the hash.
func dumped(t testing.TB, e *envoy.Envoy) (all []string) {
	t.Helper()
	text, err := e.Get(t.Context(), "/config_dump?include_eds")
	if err != nil {
		t.Fatal(err)
	}
	var dump struct {
		Configs []struct {
			Clusters []struct {
				Version string                `json:"version_info"`
				Cluster struct{ Name string } `json:"cluster"`
			} `json:"dynamic_active_clusters"`
			Warming []any `json:"dynamic_warming_clusters"`
			Routes  []struct {
				Version string                `json:"version_info"`
				Route   struct{ Name string } `json:"route_config"`
			} `json:"dynamic_route_configs"`
			Listeners []struct {
				Name   string
				Active struct {
					Version string `json:"version_info"`
				} `json:"active_state"`
			} `json:"dynamic_listeners"`
			Endpoints []struct {
				Assignment json.RawMessage `json:"endpoint_config"`
			} `json:"dynamic_endpoint_configs"`
		}
	}
	if err := json.Unmarshal([]byte(text), &dump); err != nil {
		t.Fatal(err)
	}
	hash := func(version string) string { return version[strings.Index(version, ".")+1:] }
	for _, c := range dump.Configs {
		for _, r := range c.Clusters {
			all = append(all, fmt.Sprint(ads.Cluster, " ", r.Cluster.Name, " ", hash(r.Version)))
		}
		for _, r := range c.Warming {
			all = append(all, fmt.Sprint("warming: ", r))
		}
		for _, r := range c.Routes {
			all = append(all, fmt.Sprint(ads.Route, " ", r.Route.Name, " ", hash(r.Version)))
		}
		for _, r := range c.Listeners {
			all = append(all, fmt.Sprint(ads.Listener, " ", r.Name, " ", hash(r.Active.Version)))
		}
		for _, r := range c.Endpoints {
			all = append(all, addressesOf(t, r.Assignment))
		}
	}
	slices.Sort(all)
	return all
}

func addressesOf(t testing.TB, assignment json.RawMessage) string {
	t.Helper()
	var a struct {
		Name      string `json:"cluster_name"`
		Endpoints []struct {
			Endpoints []struct {
				Endpoint struct {
					Address struct {
						Socket struct {
							Address string
							Port    int `json:"port_value"`
						} `json:"socket_address"`
					}
				}
			} `json:"lb_endpoints"`
		}
	}
	if err := json.Unmarshal(assignment, &a); err != nil {
		t.Fatal(err)
	}
	words := []string{ads.Endpoints.String(), a.Name}
	for _, l := range a.Endpoints {
		for _, e := range l.Endpoints {
			at := e.Endpoint.Address.Socket
			words = append(words, fmt.Sprint(at.Address, ":", at.Port))
		}
	}
	return strings.Join(words, " ")
}
