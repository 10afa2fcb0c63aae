// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// What a client and an upstream see of each other is what they would see without a
// proxy, but for the lines that are named here.
func TestARequestPassesAsItIs(t *testing.T) {
	saw := make(chan []string, 1)
	upstream := raw(t, func(c net.Conn) {
		lines, err := head(bufio.NewReader(c))
		if err == nil {
			saw <- lines
			_, _ = io.WriteString(c, "HTTP/1.1 418 A Teapot Indeed\r\nX-CamelCase: w\r\nServer: mine\r\nDate: then\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok") // seen below
		}
	})
	address := serve(t, web(nil, slot("", endpoint(upstream, ir.Ready))))[0]
	c := dial(t, address)
	sent := []string{
		"GET //a/../b%2Fc/./d?x=1&y=%20 HTTP/1.1", "Host: Shop.Example:80", "X-CamelCase: v", "x-request-id: mine", "X-Forwarded-For: 9.9.9.9", "X-Forwarded-Proto: https",
		"X-Forwarded-Client-Cert: By=a", "User-Agent: me", "X_Under: score", "X-Envoy-External-Address: 1.2.3.4",
	}
	for _, line := range sent {
		_, err := io.WriteString(c, line+"\r\n")
		must(t, err)
	}
	_, err := io.WriteString(c, "X-Envoy-Retry-On: 5xx\r\nX-Plb-Visitor: me\r\n\r\n")
	must(t, err)
	answer, err := head(bufio.NewReader(c))
	must(t, err)
	var got []string
	select {
	case got = <-saw:
	default:
		t.Fatalf("the upstream was not asked, and the answer is %q", answer)
	}
	slices.Sort(got[1:])
	slices.Sort(sent[1:])
	if d := cmp.Diff(sent, got); d != "" {
		t.Errorf("the request (-sent +seen):\n%s", d)
	}
	slices.Sort(answer[1:])
	if d := cmp.Diff([]string{"HTTP/1.1 418 A Teapot Indeed", "Content-Length: 2", "Date: then", "Server: mine", "Set-Cookie: a=1", "Set-Cookie: b=2", "X-CamelCase: w"}, answer); d != "" {
		t.Errorf("the answer (-sent +seen):\n%s", d)
	}
}

func TestAWebSocketPasses(t *testing.T) {
	upstream := raw(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		if _, err := head(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n") // read below
		_, _ = io.Copy(c, r)                                                                                              // until the client ends
	})
	address := serve(t, web(nil, slot("", endpoint(upstream, ir.Ready))))[0]
	c := dial(t, address)
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	must(t, err)
	r := bufio.NewReader(c)
	lines, err := head(r)
	must(t, err)
	if lines[0] != "HTTP/1.1 101 Switching Protocols" {
		t.Fatalf("the answer is %q", lines)
	}
	for _, word := range []string{"one", "two"} {
		_, err := io.WriteString(c, word)
		must(t, err)
		back := make([]byte, len(word))
		_, err = io.ReadFull(r, back)
		must(t, err)
		if string(back) != word {
			t.Errorf("sent %q and got %q", word, back)
		}
	}
}

func TestTheUpstreamIsSpokenToAsTheClientSpeaks(t *testing.T) {
	address := serve(t, web(nil, slot("", endpoint(named(t, "a"), ir.Ready))))[0]
	for http2, want := range map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"} {
		if got := ask(t, client(t, http2), address).header.Get("Saw-Proto"); got != want {
			t.Errorf("the upstream is spoken to in %s, want %s", got, want)
		}
	}
}

func TestARequestOfHTTP10HasTheServicesHost(t *testing.T) {
	address := serve(t, web(nil, slot("", endpoint(named(t, "a"), ir.Ready))))[0]
	c := dial(t, address)
	_, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	must(t, err)
	lines, err := head(bufio.NewReader(c))
	must(t, err)
	if !slices.Contains(lines, "Saw-Host: web0.shop") {
		t.Errorf("the answer is %q", lines)
	}
}

// What Envoy answers itself, and what it adds.
func TestWhatDoesNotPassAsItIs(t *testing.T) {
	saw := make(chan []string, 1)
	upstream := raw(t, func(c net.Conn) {
		if lines, err := head(bufio.NewReader(c)); err == nil {
			saw <- lines
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n") // seen below
		}
	})
	address := serve(t, web(nil, slot("", endpoint(upstream, ir.Ready))))[0]
	for request, want := range map[string]string{
		"OPTIONS * HTTP/1.1": "HTTP/1.1 404 Not Found", "PAINT / HTTP/1.1": "HTTP/1.1 400 Bad Request",
		"GET /a#b HTTP/1.1": "HTTP/1.1 400 Bad Request", "PURGE / HTTP/1.1": "HTTP/1.1 204 No Content",
	} {
		c := dial(t, address)
		_, err := io.WriteString(c, request+"\r\nHost: a\r\n\r\n")
		must(t, err)
		answer, err := head(bufio.NewReader(c))
		must(t, err)
		if answer[0] != want {
			t.Errorf("%s is answered %s, want %s", request, answer[0], want)
		}
		if upstream := want == "HTTP/1.1 204 No Content"; upstream && !strings.HasPrefix(strings.Join(answer[1:], "\n"), "date: ") {
			t.Errorf("the answer is %q, want a date in it", answer)
		}
	}
	select {
	case got := <-saw:
		slices.Sort(got[1:])
		if d := cmp.Diff([]string{"PURGE / HTTP/1.1", "Host: a", "content-length: 0", "x-forwarded-proto: http"}, got); d != "" {
			t.Errorf("the request (-want +seen):\n%s", d)
		}
	default:
		t.Error("the upstream was not asked")
	}
}

// Which endpoints get requests, among an upstream for each state.
func TestRequestsGoTo(t *testing.T) {
	tests := map[string]struct {
		states []ir.State
		want   map[string]bool
	}{
		"the ready":                         {[]ir.State{ir.Ready, ir.Draining, ir.Draining, ir.Draining, ir.Quarantined}, map[string]bool{"Ready": true}},
		"the draining if none is ready":     {[]ir.State{ir.Draining, ir.Quarantined, ir.Quarantined, ir.Quarantined}, map[string]bool{"Draining": true}},
		"nobody if all are quarantined":     {[]ir.State{ir.Quarantined}, map[string]bool{"": true}},
		"nobody if there is nobody, at all": {nil, map[string]bool{"": true}},
	}
	var names []string
	var services []ir.Service
	for name, tc := range tests {
		var endpoints []ir.Endpoint
		for _, s := range tc.states {
			endpoints = append(endpoints, endpoint(named(t, s.String()), s))
		}
		names = append(names, name)
		services = append(services, web(nil, slot("", endpoints...)))
	}
	addresses := serve(t, services...)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			got := map[string]bool{}
			for range 30 {
				got[ask(t, client(t, false), addresses[i]).header.Get("Variation")] = true
			}
			if d := cmp.Diff(tests[name].want, got); d != "" {
				t.Errorf("those that answer (-want +got):\n%s", d)
			}
		})
	}
}

// Who connects to the port of the proxy itself is not passed on to where he was
// going, which is here, for ever. For the test there is somebody nowhere.
func TestTheOutboundListenerDoesNotConnectToItself(t *testing.T) {
	port := freeport.For(t)
	p := newParts()
	p.add(t, envoyxds.Outbound(netip.MustParseAddrPort(loopback(port))))
	for _, c := range envoyxds.OutboundClusters() {
		if c.Name == "nowhere" {
			if c.LoadAssignment != nil {
				t.Fatal("there is somebody nowhere already")
			}
			upstream := raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "nobody") }) // read below
			resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{web(nil, slot("", endpoint(upstream, ir.Ready)))}}, nil)
			must(t, err)
			for _, c.LoadAssignment = range ofResources(t, resources).endpoints {
				c.LoadAssignment.ClusterName = c.Name
			}
		}
		p.add(t, c)
	}
	run(t, p, loopback(port))
	if got, err := io.ReadAll(dial(t, loopback(port))); string(got) != "nobody" || err != nil {
		t.Errorf("the connection goes elsewhere: %q, %v", got, err)
	}
}
