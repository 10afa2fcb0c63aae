// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
)

var (
	byHeader  = traffic.Key{Kind: traffic.ByHeader, Name: "x-user"}
	byCookie  = traffic.Key{Kind: traffic.ByCookie, Name: "session"}
	byVisitor = traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"}
)

// within six standard deviations of a binomial share, which one run in a billion is not.
func within(t *testing.T, what string, got, of int, share float64) {
	t.Helper()
	if deviation := math.Sqrt(float64(of) * share * (1 - share)); math.Abs(float64(got)-float64(of)*share) > 6*deviation+1 {
		t.Errorf("%s: %d of %d, want %.0f", what, got, of, float64(of)*share)
	}
}

// users asks for each, and says who got the canary.
func users(t *testing.T, address string, n int) map[string]bool {
	t.Helper()
	c := client(t, false)
	got := map[string]bool{}
	for i := range n {
		user := fmt.Sprint("user", i)
		if ask(t, c, address, "X-User", user).header.Get("Variation") == "canary" {
			got[user] = true
		}
	}
	return got
}

func both(a, b map[string]bool) int {
	n := 0
	for user := range a {
		if b[user] {
			n++
		}
	}
	return n
}

// The same upstreams with shares of one release at three moments, and those of another.
func TestAShareThatGrowsOnlyAddsUsers(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		const n = 1000
		at := func(salt string, w traffic.Weight) ir.Service { return split(t, byHeader, salt, w) }
		addresses := serve(t, at("s1", 0), at("s1", 1_000), at("s1", 3_000), at("s2", 3_000), at("s1", traffic.Total))
		none, tenth, third, other, all := users(t, addresses[0], n), users(t, addresses[1], n), users(t, addresses[2], n), users(t, addresses[3], n), users(t, addresses[4], n)
		if len(none) != 0 || len(all) != n {
			t.Errorf("without a share %d got the canary, with all of it %d of %d", len(none), len(all), n)
		}
		within(t, "with a tenth", len(tenth), n, 0.1)
		within(t, "with three tenths", len(third), n, 0.3)
		if stayed := both(tenth, third); stayed != len(tenth) {
			t.Errorf("%d of %d users are moved back while the share grows", len(tenth)-stayed, len(tenth))
		}
		within(t, "of those who get the canary, in another release", both(third, other), len(third), 0.3)
		for range 3 {
			if again := users(t, addresses[1], 100); both(again, tenth) != len(again) {
				t.Error("a user does not get the same twice")
			}
		}
	})
}

// Nobody who comes for the first time is known, and each stays where that request went.
func TestAVisitorStaysAfterTheFirstRequest(t *testing.T) {
	const n = 500
	address := serve(t, split(t, byVisitor, "s1", 3_000))[0]
	c := client(t, false)
	wanted := regexp.MustCompile(`^visitor=([0-9a-f-]{36}); Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax$`)
	canaries := 0
	seen := map[string]bool{}
	for i := range n {
		first := ask(t, c, address, "X-Plb-Visitor", "me; Domain=example.com", "X-Request-Id", "me")
		cookies := first.header.Values("Set-Cookie")
		if len(cookies) != 2 || cookies[0] != "own=1" || !wanted.MatchString(cookies[1]) {
			t.Fatalf("the cookies are %q, want the upstream's and ours", cookies)
		}
		id := wanted.FindStringSubmatch(cookies[1])[1]
		if seen[id] || first.header.Get("Saw-Visitor") != id {
			t.Fatalf("visitor %s is not new, or the upstream saw %s", id, first.header.Get("Saw-Visitor"))
		}
		seen[id] = true
		second := ask(t, c, address, "Cookie", fmt.Sprintf("x=%d; visitor=%s; y=\xff", i, id))
		if a, b := first.header.Get("Variation"), second.header.Get("Variation"); a != b {
			t.Fatalf("visitor %d goes to %s first and to %s then", i, a, b)
		}
		if got := second.header.Values("Set-Cookie"); len(got) != 1 || second.header.Get("Saw-Visitor") != "" {
			t.Fatalf("one who is known gets %q, and the upstream saw %q", got, second.header.Get("Saw-Visitor"))
		}
		if first.header.Get("Variation") == "canary" {
			canaries++
		}
	}
	within(t, "visitors on the canary", canaries, n, 0.3)
}

// L4 of the review of the mesh: the release may say a domain of the cookie, and that it is secure.
func TestACookieHasTheDomainAndSecureOfItsRelease(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		key := byVisitor
		key.Domain, key.Secure = "shop.example.com", true
		wanted := regexp.MustCompile(`^visitor=[0-9a-f-]{36}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax; Domain=shop\.example\.com; Secure$`)
		cookies := ask(t, client(t, false), serve(t, split(t, key, "s1", 3_000))[0]).header.Values("Set-Cookie")
		if len(cookies) != 2 || !wanted.MatchString(cookies[1]) {
			t.Errorf("the cookies are %q", cookies)
		}
	})
}

// A cookie of the application is never set, and its value decides.
func TestACookieOfTheApplication(t *testing.T) {
	address := serve(t, split(t, byCookie, "s1", 5_000))[0]
	c := client(t, false)
	got := map[string]int{}
	for i := range 200 {
		resp := ask(t, c, address, "Cookie", fmt.Sprintf("n=%d; session=same", i))
		got[resp.header.Get("Variation")]++
		if cookies := resp.header.Values("Set-Cookie"); len(cookies) != 1 {
			t.Fatalf("the cookies are %q, want the upstream's alone", cookies)
		}
	}
	if len(got) != 1 {
		t.Errorf("one session goes to %v", got)
	}
	canaries := 0
	for range 400 {
		if ask(t, c, address).header.Get("Variation") == "canary" {
			canaries++
		}
	}
	within(t, "requests without a cookie on the canary", canaries, 400, 0.5)
}

// An empty key is none: all who send one would go the same way.
func TestAnEmptyKeyIsNone(t *testing.T) {
	addresses := serve(t, split(t, byHeader, "s1", 5_000), split(t, byCookie, "s1", 5_000))
	for i, header := range [][]string{{"X-User", ""}, {"Cookie", "session="}} {
		c := client(t, false)
		canaries := 0
		for range 400 {
			if ask(t, c, addresses[i], header...).header.Get("Variation") == "canary" {
				canaries++
			}
		}
		within(t, fmt.Sprintf("requests with an empty %s on the canary", header[0]), canaries, 400, 0.5)
	}
}

func TestForcedRequests(t *testing.T) {
	// All go to the stable one, so that only force brings somebody to the canary.
	address := serve(t, split(t, byVisitor, "s1", 0))[0]
	tests := map[string]struct {
		headers []string
		want    string
		forced  bool
	}{
		"a header that names a variation":             {[]string{"X-Variation", "canary"}, "canary", true},
		"a value that is mapped":                      {[]string{"X-Group", "beta"}, "canary", true},
		"both, of which the first one counts":         {[]string{"X-Variation", "canary", "X-Group", "staff"}, "canary", true},
		"two names, of which the stable one's counts": {[]string{"X-Variation", "canary", "X-Variation", "stable"}, "stable", true},
		"a name that is none":                         {[]string{"X-Variation", "canary2"}, "stable", false},
		"a value that is not mapped":                  {[]string{"X-Group", "betas"}, "stable", false},
		"a value in other letters":                    {[]string{"X-Group", "BETA"}, "stable", false},
		"an empty value":                              {[]string{"X-Variation", ""}, "stable", false},
	}
	if envoy.Minor(t) < 39 { // it looks at both values as one, "canary,stable"
		const twice = "two names, of which the stable one's counts"
		tc := tests[twice]
		tc.forced = false
		tests[twice] = tc
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			resp := ask(t, client(t, false), address, tc.headers...)
			if got := resp.header.Get("Variation"); got != tc.want {
				t.Errorf("it goes to %s, want %s", got, tc.want)
			}
			visitor := len(resp.header.Values("Set-Cookie")) == 2
			if visitor == tc.forced {
				t.Errorf("the cookies are %q; one who is forced is no visitor, and all others are", resp.header.Values("Set-Cookie"))
			}
		})
	}
}

// The stable variation serves the share of one without endpoints, by the proxy itself. A request
// that is forced to it finds no endpoint, and gets no cookie.
func TestAVariationWithoutEndpointsIsServedByTheStableOne(t *testing.T) {
	s := split(t, byHeader, "s1", traffic.Total)
	s.Ports[0].Slots[1].Endpoints = nil
	address := serve(t, s)[0]
	if got := ask(t, client(t, false), address, "X-User", "a"); got.status != http.StatusOK || got.header.Get("Variation") != "stable" {
		t.Errorf("the status is %d, of %q", got.status, got.header.Get("Variation"))
	}
	got := ask(t, client(t, false), address, "X-User", "a", "X-Variation", "canary")
	if got.status != http.StatusServiceUnavailable || len(got.header.Values("Set-Cookie")) > 0 {
		t.Errorf("of a request that is forced the status is %d, with the cookies %q", got.status, got.header.Values("Set-Cookie"))
	}
}
