// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// enter has an Envoy be the gateway of these services, each under the host of its
// place: a.example.com, b.example.com. It is everywhere on this machine.
func enter(t *testing.T, g envoyxds.Gateway, services ...ir.Service) (port int) {
	t.Helper()
	port = freeport.For(t)
	g.Port = uint16(port)
	for i := range services {
		services[i].Namespace, services[i].Name = "shop", fmt.Sprint("web", i)
		services[i].Hosts = []ir.Host{{Name: string(rune('a'+i)) + ".example.com", Port: 80}}
	}
	mesh := ir.Mesh{Services: services}
	shared, err := envoyxds.Resources(mesh, nil)
	must(t, err)
	own, err := g.Resources(mesh, nil)
	must(t, err)
	p := ofResources(t, append(slices.DeleteFunc(shared, func(r *ads.Resource) bool { return r.Type == ads.Listener || r.Type == ads.Route }), own...))
	run(t, p, loopback(port))
	return port
}

// askFor gets the answer of a host.
func askFor(t *testing.T, client *http.Client, address, host string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
	must(t, err)
	req.Host = host
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

func to(t *testing.T, name string) ir.Service {
	t.Helper()
	return web(nil, slot("", endpoint(named(t, name), ir.Ready)))
}

func TestAGatewayKnowsServicesByTheirHosts(t *testing.T) {
	wildcard := to(t, "one")
	port := enter(t, envoyxds.Gateway{IPv6: true}, wildcard, to(t, "two"))
	tests := map[string]struct {
		address, host, want string
		status              int
	}{
		"the first":                  {loopback(port), "a.example.com", "one", 200},
		"the second":                 {loopback(port), "b.example.com", "two", 200},
		"with the port in it":        {loopback(port), fmt.Sprint("b.example.com:", port), "two", 200},
		"in other letters":           {loopback(port), "B.Example.COM", "two", 200},
		"one that nobody has":        {loopback(port), "c.example.com", "", 404},
		"one that is below":          {loopback(port), "x.a.example.com", "", 404},
		"its address, which is none": {loopback(port), loopback(port), "", 404},
		"over IPv6":                  {fmt.Sprintf("[::1]:%d", port), "b.example.com", "two", 200},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, http2 := range []bool{false, true} {
				got := askFor(t, client(t, http2), tc.address, tc.host)
				if got.status != tc.status || got.header.Get("Variation") != tc.want {
					t.Errorf("HTTP/2 %t: %d from %q, want %d from %q", http2, got.status, got.header.Get("Variation"), tc.status, tc.want)
				}
				if proto := got.header.Get("Saw-Proto"); tc.want != "" && (proto == "HTTP/2.0") != http2 {
					t.Errorf("the upstream is spoken to in %s", proto)
				}
			}
		})
	}
}

// Both shares of one release: a user gets the same from a sidecar and from a gateway.
func TestAGatewayDividesAsSidecarsDo(t *testing.T) {
	const n = 600
	s := split(t, byHeader, "s1", 3_000)
	inside := serve(t, s)[0]
	outside := loopback(enter(t, envoyxds.Gateway{}, s))
	c := client(t, false)
	canaries := 0
	for i := range n {
		user := fmt.Sprint("user", i)
		want := ask(t, c, inside, "X-User", user).header.Get("Variation")
		if got := askFor(t, c, outside, "a.example.com", "X-User", user).header.Get("Variation"); got != want {
			t.Fatalf("%s goes to %s inside and to %s from outside", user, want, got)
		}
		if want == "canary" {
			canaries++
		}
	}
	within(t, "users on the canary", canaries, n, 0.3)
}

// A client from outside chooses no variation, neither by the header for that nor by
// the id that proxies make, whatever way he writes them.
func TestWhatAClientFromOutsideCannotChoose(t *testing.T) {
	everybody := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	tests := map[string]struct {
		trusted []netip.Prefix
		headers []string
		want    string
	}{
		"a variation":                           {nil, []string{"X-Variation", "canary"}, "stable"},
		"a variation, with underscores":         {everybody, []string{"X_Variation", "canary"}, "stable"},
		"a variation by another's trust":        {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, []string{"X-Variation", "canary"}, "stable"},
		"a variation by what he says he is":     {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, []string{"X-Variation", "canary", "X-Forwarded-For", "10.0.0.1"}, "stable"},
		"but he may if he is trusted":           {everybody, []string{"X-Variation", "canary"}, "canary"},
		"what the application offers, anybody":  {nil, []string{"X-Group", "beta"}, "canary"},
		"also with a header that is of no use":  {nil, []string{"X-Group", "beta", "X-Variation", "stable"}, "canary"},
		"what the application offers, trusted:": {everybody, []string{"X-Group", "beta"}, "canary"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			port := enter(t, envoyxds.Gateway{Trusted: tc.trusted, IPv6: true}, split(t, byVisitor, "s1", 0))
			for _, address := range []string{loopback(port), fmt.Sprintf("[::1]:%d", port)} {
				if got := askFor(t, client(t, false), address, "a.example.com", tc.headers...).header.Get("Variation"); got != tc.want {
					t.Errorf("at %s he gets %s, want %s", address, got, tc.want)
				}
			}
		})
	}
}

// What an upstream sees of a request from outside.
func TestWhatAGatewayLeavesOfARequest(t *testing.T) {
	// Of a client on loopback Envoy says that it is this machine.
	me := own(t)
	tests := map[string]struct {
		gateway envoyxds.Gateway
		target  string
		sent    []string
		want    []string
	}{
		"what is the application's as it is, what is ours not at all": {envoyxds.Gateway{}, "GET //a/%2Fc?x=1&y=%20 HTTP/1.1", []string{
			"Host: a.example.com", "X-CamelCase: v", "X-Plb-Visitor: me", "x-plb-anything: me", "X-Variation: canary", "X_Under: v", "User-Agent: me",
			"X-Envoy-Retry-On: 5xx", "X-Envoy-External-Address: 1.2.3.4", "X-Forwarded-Client-Cert: By=a", "X-Forwarded-Proto: https", "X-Request-Id: mine",
		}, []string{
			"GET //a/%2Fc?x=1&y=%20 HTTP/1.1", "Host: a.example.com", "User-Agent: me", "X-CamelCase: v",
			"X-Envoy-External-Address: <me>", "X-Forwarded-Proto: http", "X-Request-Id: <made>", "x-forwarded-for: <me>",
		}},
		"the way up resolved": {envoyxds.Gateway{}, "GET /a/../../%2e%2e/b HTTP/1.1", []string{"Host: a.example.com"}, []string{
			"GET /b HTTP/1.1", "Host: a.example.com", "x-envoy-external-address: <me>", "x-forwarded-for: <me>", "x-forwarded-proto: http", "x-request-id: <made>",
		}},
		"what a proxy before it says": {envoyxds.Gateway{Hops: 1}, "GET / HTTP/1.1", []string{"Host: a.example.com", "X-Forwarded-For: 9.9.9.9", "X-Forwarded-Proto: https"}, []string{
			"GET / HTTP/1.1", "Host: a.example.com", "X-Forwarded-For: 9.9.9.9,<me>", "X-Forwarded-Proto: https", "x-envoy-external-address: 9.9.9.9", "x-request-id: <made>",
		}},
		"the override of one who is trusted": {envoyxds.Gateway{Trusted: []netip.Prefix{netip.PrefixFrom(me, me.BitLen())}}, "GET / HTTP/1.1", []string{"Host: a.example.com", "X-Variation: stable", "X-Plb-Visitor: me"}, []string{
			"GET / HTTP/1.1", "Host: a.example.com", "X-Variation: stable", "x-envoy-external-address: <me>", "x-forwarded-for: <me>", "x-forwarded-proto: http", "x-request-id: <made>",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			saw := make(chan []string, 1)
			upstream := raw(t, func(c net.Conn) {
				if lines, err := head(bufio.NewReader(c)); err == nil {
					saw <- lines
					_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n") // seen below
				}
			})
			s := split(t, traffic.Key{}, "s1", 0)
			s.Ports[0].Slots[0].Endpoints = []ir.Endpoint{endpoint(upstream, ir.Ready)}
			c := dial(t, netip.AddrPortFrom(me, uint16(enter(t, tc.gateway, s))).String())
			_, err := io.WriteString(c, tc.target+"\r\n"+strings.Join(tc.sent, "\r\n")+"\r\n\r\n")
			must(t, err)
			answer, err := head(bufio.NewReader(c))
			must(t, err)
			var got []string
			select {
			case got = <-saw:
			default:
				t.Fatalf("the upstream was not asked, and the answer is %q", answer)
			}
			for i, line := range got {
				line = strings.ReplaceAll(line, me.String(), "<me>")
				got[i] = line
				if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, "x-request-id") && value != "mine" {
					got[i] = name + ": <made>"
				}
			}
			slices.Sort(got[1:])
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("the request (-want +seen):\n%s", d)
			}
		})
	}
}

// own is an address of this machine that is not loopback.
func own(t *testing.T) netip.Addr {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return netip.MustParseAddr(n.IP.String())
		}
	}
	t.Fatal("this machine has no IPv4 address but loopback")
	return netip.Addr{}
}

// A visitor who names himself is given another name, and stays where that one goes.
func TestAVisitorFromOutsideStays(t *testing.T) {
	const n = 300
	address := loopback(enter(t, envoyxds.Gateway{}, split(t, byVisitor, "s1", 3_000)))
	c := client(t, false)
	canaries := 0
	for i := range n {
		first := askFor(t, c, address, "a.example.com", "X-Plb-Visitor", "me")
		id := first.header.Get("Saw-Visitor")
		cookies := first.header.Values("Set-Cookie")
		if id == "me" || id == "" || len(cookies) != 2 || !strings.HasPrefix(cookies[1], "visitor="+id+";") {
			t.Fatalf("visitor %d is %q and gets %q", i, id, cookies)
		}
		second := askFor(t, c, address, "a.example.com", "Cookie", "visitor="+id)
		if a, b := first.header.Get("Variation"), second.header.Get("Variation"); a != b {
			t.Fatalf("visitor %d goes to %s first and to %s then", i, a, b)
		}
		if first.header.Get("Variation") == "canary" {
			canaries++
		}
	}
	within(t, "visitors on the canary", canaries, n, 0.3)
}

func TestAWebSocketPassesAGateway(t *testing.T) {
	upstream := raw(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		if _, err := head(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n") // read below
		_, _ = io.Copy(c, r)                                                                                              // until the client ends
	})
	c := dial(t, loopback(enter(t, envoyxds.Gateway{}, web(nil, slot("", endpoint(upstream, ir.Ready))))))
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	must(t, err)
	r := bufio.NewReader(c)
	lines, err := head(r)
	must(t, err)
	if lines[0] != "HTTP/1.1 101 Switching Protocols" {
		t.Fatalf("the answer is %q", lines)
	}
	_, err = io.WriteString(c, "one")
	must(t, err)
	back := make([]byte, 3)
	_, err = io.ReadFull(r, back)
	must(t, err)
	if string(back) != "one" {
		t.Errorf("sent one and got %q", back)
	}
}

// A request that names no host can be for nobody.
func TestARequestOfHTTP10HasNoHost(t *testing.T) {
	c := dial(t, loopback(enter(t, envoyxds.Gateway{}, to(t, "one"))))
	_, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	must(t, err)
	lines, err := head(bufio.NewReader(c))
	must(t, err)
	if lines[0] != "HTTP/1.1 426 Upgrade Required" {
		t.Errorf("the answer is %q", lines)
	}
}

// Two local ports of a proxy lead to two services; clients name what they like.
func TestLocalPortsLeadToTheirServices(t *testing.T) {
	addresses := serve(t, to(t, "one"), split(t, byHeader, "s1", traffic.Total))
	for i, want := range []string{"one", "canary"} {
		for _, host := range []string{addresses[i], "shop.example.com"} {
			if got := askFor(t, client(t, false), addresses[i], host, "X-User", "a").header.Get("Variation"); got != want {
				t.Errorf("port %d is %s's, want %s's", i, got, want)
			}
		}
	}
}
