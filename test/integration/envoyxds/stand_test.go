// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// serve has an Envoy serve each service on an address of its own, which is its result.
func serve(t testing.TB, services ...ir.Service) []string {
	t.Helper()
	p, addresses := arranged(t, services...)
	run(t, p, addresses...)
	return addresses
}

// arranged is what an Envoy needs that serves each service on an address of its own.
func arranged(t testing.TB, services ...ir.Service) (p parts, addresses []string) {
	t.Helper()
	var listeners []*listenerv3.Listener
	for i := range services {
		services[i].Namespace, services[i].Name = "shop", fmt.Sprint("web", i)
		port := freeport.For(t)
		addresses = append(addresses, loopback(port))
		listeners = append(listeners, envoyxds.Local(services[i], services[i].Ports[0], netip.MustParseAddrPort(loopback(port))))
	}
	resources, err := envoyxds.Resources(ir.Mesh{Services: services}, nil)
	must(t, err)
	p = ofResources(t, resources)
	p.listeners = listeners
	return p, addresses
}

// web has one port and these slots.
func web(routing *traffic.Routing, slots ...ir.Slot) ir.Service {
	return ir.Service{Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP, Slots: slots}}, Routing: routing}
}

func slot(variation string, endpoints ...ir.Endpoint) ir.Slot {
	return ir.Slot{Variation: variation, Endpoints: endpoints}
}

func endpoint(address string, state ir.State) ir.Endpoint {
	return ir.Endpoint{Address: netip.MustParseAddrPort(address), State: state}
}

// split between a stable and a canary upstream, which answer with their names.
func split(t *testing.T, key traffic.Key, salt string, canary traffic.Weight) ir.Service {
	t.Helper()
	r := &traffic.Routing{
		Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}},
		Key:    key, Salt: salt, Override: "x-variation",
		Match: traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary", "staff": "stable"}},
	}
	return web(r, slot("stable", endpoint(named(t, "stable"), ir.Ready)), slot("canary", endpoint(named(t, "canary"), ir.Ready)))
}

// named is an upstream that answers with its name, and with the host, the protocol
// and the visitor that it was asked with.
func named(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "own=1")
		w.Header().Set("Variation", name)
		w.Header().Set("Saw-Host", r.Host)
		w.Header().Set("Saw-Proto", r.Proto)
		w.Header().Set("Saw-Visitor", r.Header.Get("X-Plb-Visitor"))
	}))
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// raw is an upstream that hands each connection to somebody.
func raw(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed below
	must(t, err)
	t.Cleanup(func() { _ = l.Close() }) // ends the loop
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				handle(c)
				_ = c.Close() // the other side sees it
			}()
		}
	}()
	return l.Addr().String()
}

// head reads the lines up to an empty one.
func head(r *bufio.Reader) ([]string, error) {
	var lines []string
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			return lines, err
		}
		lines = append(lines, line[:len(line)-2])
	}
}

// dial connects for at most the patience of the tests.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, patience)
	must(t, err)
	must(t, c.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = c.Close() }) // only read until here
	return c
}

// answer to a request, without its body.
type answer struct {
	status int
	header http.Header
}

// ask gets an answer.
func ask(t *testing.T, client *http.Client, address string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
	must(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	must(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	return answer{resp.StatusCode, resp.Header}
}

// client keeps connections, and knows HTTP/1.1 or only HTTP/2.
func client(t testing.TB, http2 bool) *http.Client {
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}
