// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

// pipelined asks for each visitor on one connection, a hundred at a time, and returns the variations.
func pipelined(t *testing.T, address, header string, visitors []string) []string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	must(t, err)
	defer func() { _ = conn.Close() }() // all was read
	must(t, conn.SetDeadline(time.Now().Add(3*patience)))
	reader, variations := bufio.NewReader(conn), make([]string, 0, len(visitors))
	for begin := 0; begin < len(visitors); begin += 100 {
		some := visitors[begin:min(begin+100, len(visitors))]
		var requests strings.Builder
		for _, v := range some {
			requests.WriteString("GET / HTTP/1.1\r\nHost: web\r\n" + fmt.Sprintf(header, v) + "\r\n\r\n")
		}
		_, err := io.WriteString(conn, requests.String())
		must(t, err)
		for range some {
			response, err := http.ReadResponse(reader, nil)
			must(t, err)
			_, err = io.Copy(io.Discard, response.Body)
			must(t, errors.Join(err, response.Body.Close()))
			variations = append(variations, response.Header.Get("Variation"))
		}
	}
	return variations
}

// A visitor has the same variation at an Envoy and at a HAProxy, by header and by cookie: of eight in
// uneven ranges, each of 10,000 visitors has that of its bucket.
func TestVisitorsHaveTheSameVariationAtEnvoyAndHAProxy(t *testing.T) {
	shares := traffic.Shares{{Variation: "v0", Weight: traffic.Total}}
	slots := []ir.Slot{slot("v0", edgetraffic.StartUpstream(t, "v0", 0))}
	for i, weight := range []traffic.Weight{1, 10, 99, 500, 1_000, 1_117, 2_500} {
		name := fmt.Sprint("v", i+1)
		shares[0].Weight -= weight
		shares = append(shares, traffic.Share{Variation: name, Weight: weight, Reserved: weight + traffic.Weight(i)*50})
		slots = append(slots, slot(name, edgetraffic.StartUpstream(t, name, 0)))
	}
	for name, tc := range map[string]struct {
		key     traffic.Key
		header  string
		visitor string
		ids     int
	}{
		"by header": {traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}, "X-User: %s", "user-%d", 10_000},
		"by cookie": {traffic.Key{Kind: traffic.ByCookie, Name: "s.id"}, "Cookie: a=1; s.id=%s; s.id=other; xs.id=2", "%d=ü/%%20", 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := web(&traffic.Routing{Shares: shares, Key: tc.key, Salt: "salt-1"}, slots...)
			st := newStand(t, s)
			var visitors []string
			for i := range tc.ids {
				visitors = append(visitors, fmt.Sprintf(tc.visitor, i))
			}
			seen := map[string]int{}
			atEnvoy := pipelined(t, startEnvoy(t, s), tc.header, visitors)
			for i, got := range pipelined(t, st.address, tc.header, visitors) {
				if want := arm(s.Routing, visitors[i]); got != want || atEnvoy[i] != want {
					t.Fatalf("%s is at %s by HAProxy and at %s by Envoy, want %s", visitors[i], got, atEnvoy[i], want)
				}
				seen[got]++
			}
			if len(seen) < 7 { // v1 has one bucket of 10,000
				t.Errorf("visitors are at %v", seen)
			}
		})
	}
}

func TestHeadersAndCookiesDecide(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	s := forced(portset.Divide(traffic.Key{Kind: traffic.ByVisitor, Name: "a%$#b", Domain: "example.com", Secure: true}, 5_000, 1, stableAt, canaryAt))
	st := newStand(t, s)
	at := map[string]string{} // a visitor of each
	for i := 0; len(at) < 2; i++ {
		at[arm(s.Routing, fmt.Sprint(i))] = fmt.Sprint(i)
	}
	c := edgetraffic.NewClient(t)
	for name, tc := range map[string]struct {
		headers []string
		want    string
	}{
		"the override names a variation":            {[]string{"x-variation", "canary"}, "canary"},
		"the override comes before a match":         {[]string{"x-variation", "stable", "x-group", "beta"}, "stable"},
		"an override of no variation is none":       {[]string{"x-variation", "other", "x-group", "beta"}, "canary"},
		"an empty override is none":                 {[]string{"x-variation", "", "x-group", "beta"}, "canary"},
		"a match":                                   {[]string{"x-group", "staff"}, "stable"},
		"a match with characters of configurations": {[]string{"x-group", "a 'b' $HOME #c"}, "canary"},
		"a match comes before a cookie":             {[]string{"x-group", "beta", "cookie", "a%$#b=" + at["stable"]}, "canary"},
		"a header that comes twice forces nothing":  {[]string{"x-group", "beta", "x-group", "beta", "cookie", "a%$#b=" + at["stable"]}, "stable"},
		"a value of another case forces nothing":    {[]string{"x-group", "Beta", "cookie", "a%$#b=" + at["stable"]}, "stable"},
		"a visitor with a cookie":                   {[]string{"cookie", "x=1;a%$#b=" + at["canary"] + "; y=2"}, "canary"},
		"another one":                               {[]string{"cookie", "x=1;a%$#b=" + at["stable"] + "; y=2"}, "stable"},
		"a cookie behind 7 KiB of another one":      {[]string{"cookie", "x=" + strings.Repeat("v", 7_000) + "; a%$#b=" + at["canary"]}, "canary"},
		"a cookie behind 500 others":                {[]string{"cookie", strings.Repeat("k=value; ", 500) + "a%$#b=" + at["canary"]}, "canary"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.Ask(t, http.MethodPost, st.address, tc.headers...)
			must(t, err)
			if got.Status != http.StatusOK || got.Variation != tc.want || got.Header.Get("Set-Cookie") != "" {
				t.Errorf("%d from %s with cookie %q, want %s and none", got.Status, got.Variation, got.Header.Get("Set-Cookie"), tc.want)
			}
		})
	}
	t.Run("a visitor without a cookie is given one, and stays", func(t *testing.T) {
		for range 20 {
			got, err := c.Ask(t, http.MethodGet, st.address, ir.VisitorHeader, "forged")
			must(t, err)
			cookie := got.Header.Get("Set-Cookie")
			value, attributes, _ := strings.Cut(strings.TrimPrefix(cookie, "a%$#b="), "; ")
			if want := "Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax; Domain=example.com; Secure"; attributes != want || value == cookie {
				t.Fatalf("the cookie is %q, want attributes %s", cookie, want)
			}
			if got.Variation != arm(s.Routing, value) || got.Header.Get("Saw-Visitor") != "" {
				t.Errorf("%s is at %s, and the upstream saw %q", value, got.Variation, got.Header.Get("Saw-Visitor"))
			}
			again, err := c.Ask(t, http.MethodGet, st.address, "cookie", "a%$#b="+value)
			must(t, err)
			if again.Variation != got.Variation || again.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s was at %s and is at %s", value, got.Variation, again.Variation)
			}
		}
	})
}

// A port of HTTP/2 speaks it on the whole way, trailers included, on which gRPC depends.
func TestAPortOfHTTP2(t *testing.T) {
	s := portset.Divide(traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}, 5_000, 1, edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0))
	s.Ports[0].Protocol = ir.HTTP2
	st := newStand(t, s)
	c := edgetraffic.NewHTTP2Client(t)
	for i := range 50 {
		user := fmt.Sprint("user-", i)
		got, err := c.Ask(t, http.MethodPost, st.address, "x-user", user)
		must(t, err)
		if want := arm(s.Routing, user); got.Variation != want || got.Header.Get("Saw-Proto") != "HTTP/2.0" || got.Trailer.Get("Grpc-Status") != "0" {
			t.Fatalf("%s is at %s by %s with trailers %v, want %s", user, got.Variation, got.Header.Get("Saw-Proto"), got.Trailer, want)
		}
	}
}
