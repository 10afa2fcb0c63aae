// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/connector/nginx/carry"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

// findWorker returns the PID of a worker that accepts connections.
func findWorker(master int) (int, error) {
	states, err := carry.Workers(master)
	if err != nil {
		return 0, err
	}
	for _, s := range states {
		if !s.Leaving {
			return s.PID, nil
		}
	}
	return 0, fmt.Errorf("no worker accepts: %v", states)
}

// worker is the PID of one that accepts connections.
func (st *stand) worker() int {
	st.Helper()
	master, err := st.master()
	must(st, err)
	pid, err := findWorker(master)
	must(st, err)
	return pid
}

func TestHeadersAndCookiesDecide(t *testing.T) {
	stableAt, canaryAt := edgetraffic.StartUpstream(t, "stable", 0), edgetraffic.StartUpstream(t, "canary", 0)
	s := portset.Divide(traffic.Key{Kind: traffic.ByVisitor, Name: "s.id", Domain: "example.com", Secure: true}, 5_000, 1, stableAt, canaryAt)
	s.Routing.Override = "x-variation"
	s.Routing.Match = traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary", `a 'b' "$HOME #c`: "canary", "staff": "stable"}}
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
		"the override names a variation":            {[]string{"x-variation", "canary", "cookie", "s.id=" + at["stable"]}, "canary"},
		"the override comes before a match":         {[]string{"x-variation", "stable", "x-group", "beta", "cookie", "s.id=1"}, "stable"},
		"an override of no variation is none":       {[]string{"x-variation", "other", "x-group", "beta", "cookie", "s.id=1"}, "canary"},
		"a match":                                   {[]string{"x-group", "staff", "cookie", "s.id=" + at["canary"]}, "stable"},
		"a match with characters of configurations": {[]string{"x-group", `a 'b' "$HOME #c`, "cookie", "s.id=" + at["stable"]}, "canary"},
		"a header that comes twice forces nothing":  {[]string{"x-group", "beta", "x-group", "beta", "cookie", "s.id=" + at["stable"]}, "stable"},
		"a value of another case forces nothing":    {[]string{"x-group", "Beta", "cookie", "s.id=" + at["stable"]}, "stable"},
		"a visitor with a cookie":                   {[]string{"cookie", "x=1;s.id=" + at["canary"] + "; y=2"}, "canary"},
		"another one":                               {[]string{"cookie", "xs.id=1; s.id=" + at["stable"] + "; s.id=" + at["canary"]}, "stable"},
		"a cookie behind 5 KiB of another one":      {[]string{"cookie", "x=" + strings.Repeat("v", 5_000) + "; s.id=" + at["canary"]}, "canary"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.Ask(t, http.MethodPost, st.address, tc.headers...)
			must(t, err)
			if got.Variation != tc.want || got.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s with cookie %q, want %s and none", got.Variation, got.Header.Get("Set-Cookie"), tc.want)
			}
		})
	}
	t.Run("a visitor without a cookie is given one, and stays", func(t *testing.T) {
		for range 20 {
			got, err := c.Ask(t, http.MethodPost, st.address)
			must(t, err)
			value, attributes, _ := strings.Cut(strings.TrimPrefix(got.Header.Get("Set-Cookie"), "s.id="), "; ")
			if want := "Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax; Domain=example.com; Secure"; attributes != want {
				t.Fatalf("the cookie has attributes %q, want %s", attributes, want)
			}
			again, err := c.Ask(t, http.MethodPost, st.address, "cookie", "s.id="+value)
			must(t, err)
			if want := arm(s.Routing, value); got.Variation != want || again.Variation != want {
				t.Errorf("%s was at %s and is at %s, want %s", value, got.Variation, again.Variation, want)
			}
		}
	})
}

// Of eight variations in uneven ranges, each of 2,000 visitors has that of its hash.
func TestEightVariations(t *testing.T) {
	shares := traffic.Shares{{Variation: "v0", Weight: traffic.Total}}
	s := portset.Divide(portset.ByHeader, 0, 1, "127.0.0.1:1", "127.0.0.1:1")
	s.Ports[0].Slots = nil
	for i, weight := range []traffic.Weight{0, 1, 10, 99, 500, 1_000, 1_117, 2_500} {
		name := fmt.Sprint("v", i)
		if i > 0 {
			shares[0].Weight -= weight
			shares = append(shares, traffic.Share{Variation: name, Weight: weight, Reserved: weight + traffic.Weight(i)*50})
		}
		at := netip.MustParseAddrPort(edgetraffic.StartUpstream(t, name, 0))
		s.Ports[0].Slots = append(s.Ports[0].Slots, ir.Slot{Variation: name, Endpoints: []ir.Endpoint{{Address: at}}})
	}
	s.Routing.Shares = shares
	st := newStand(t, s)
	c, seen := edgetraffic.NewClient(t), map[string]int{}
	for i := range 2_000 {
		user := fmt.Sprint("user-", i)
		got, err := c.Ask(t, http.MethodPost, st.address, "x-user", user)
		must(t, err)
		if want := arm(s.Routing, user); got.Variation != want {
			t.Fatalf("%s is at %s, want %s", user, got.Variation, want)
		}
		seen[got.Variation]++
	}
	if len(seen) < 6 { // v1 has one of 10,000
		t.Errorf("visitors are at %v", seen)
	}
}
