// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// written sends header lines byte for byte, and reads the lines of the answer.
func written(t *testing.T, address, lines string) []string {
	t.Helper()
	c := dial(t, address)
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: web\r\n"+lines+"\r\n\r\n")
	must(t, err)
	answer, err := head(bufio.NewReader(c))
	must(t, err)
	return answer
}

// of finds the values of a header.
func of(answer []string, header string) (values []string) {
	for _, line := range answer[1:] {
		if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, header) {
			values = append(values, value)
		}
	}
	return values
}

// The id by which a stranger is known the proxy makes alone: who sends one chooses
// neither his variation nor what stands in the cookie.
func TestWhoForgesAVisitorHeaderGainsNothing(t *testing.T) {
	const n = 300
	address := serve(t, split(t, byVisitor, "s1", 5_000))[0]
	wanted := regexp.MustCompile(`^visitor=[0-9a-f-]{36}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax$`)
	tests := map[string]string{
		"a value":                      "x-plb-visitor: me",
		"attributes of a cookie":       "X-Plb-Visitor: x; Domain=example.com; Max-Age=1",
		"two of them":                  "x-plb-visitor: me\r\nX-PLB-VISITOR: you",
		"one that is empty":            "x-plb-visitor:",
		"a format of the proxy's":      "x-plb-visitor: %REQ(host)%",
		"one that is to be taken away": "x-plb-visitor: me\r\nConnection: keep-alive, x-plb-visitor",
		"none, and it is to be":        "Connection: x-plb-visitor",
		"a name that looks like it":    "x_plb_visitor: me",
		"an id of a request":           "x-request-id: me",
		"somebody else's cookie":       "Cookie: visitors=me; visitor; =me; xvisitor=me",
	}
	for name, lines := range tests {
		t.Run(name, func(t *testing.T) {
			canaries, ids := 0, map[string]bool{}
			for range n {
				answer := written(t, address, lines)
				cookies := of(answer, "set-cookie")
				if len(cookies) != 2 || cookies[0] != "own=1" || !wanted.MatchString(cookies[1]) {
					t.Fatalf("the cookies are %q, want the upstream's and ours", cookies)
				}
				ids[cookies[1]] = true
				if slices.Equal(of(answer, "variation"), []string{"canary"}) {
					canaries++
				}
			}
			if len(ids) != n {
				t.Errorf("%d strangers have %d ids", n, len(ids))
			}
			within(t, "on the canary", canaries, n, 0.5)
		})
	}
}

// A cookie that a client made himself is one of many by which he is known: nothing of it
// comes back.
func TestWhoForgesACookieGainsNothing(t *testing.T) {
	address := serve(t, split(t, byVisitor, "s1", 5_000))[0]
	for name, cookie := range map[string]string{
		"attributes behind it": "visitor=x; Domain=example.com; Max-Age=99999999; Path=/admin",
		"attributes in quotes": `visitor="x; Domain=example.com; Max-Age=99999999"`,
		"a format":             "visitor=%REQ(host)%",
		"a substitution":       `visitor=\1\0$1`,
		"bytes of no text":     "visitor=\xff\xfe",
		"a very long one":      "visitor=" + strings.Repeat("x", 20_000),
		"two of them":          "visitor=x; visitor=y",
	} {
		t.Run(name, func(t *testing.T) {
			variations := map[string]bool{}
			for range 20 {
				answer := written(t, address, "Cookie: "+cookie)
				if cookies := of(answer, "set-cookie"); answer[0] != "HTTP/1.1 200 OK" || !slices.Equal(cookies, []string{"own=1"}) {
					t.Fatalf("the answer is %q", answer)
				}
				variations[of(answer, "variation")[0]] = true
			}
			if len(variations) != 1 {
				t.Errorf("he goes to %v", variations)
			}
		})
	}
}

// Only force brings anybody to the canary here, and only what is exactly said counts.
func TestHeadersThatAreInjectedForceNothing(t *testing.T) {
	address := serve(t, split(t, byVisitor, "s1", 0))[0]
	const refused = "HTTP/1.1 400 Bad Request"
	tests := map[string]struct{ lines, want string }{
		"a name":                           {"X-Variation: canary", "canary"},
		"space around it":                  {"X-Variation:  \tcanary \t", "canary"},
		"a line that ends without return":  {"X-Evil: 1\nX-Variation: canary", "canary"}, // it is one
		"a return that ends no line":       {"X-Evil: 1\rX-Variation: canary", "stable"},
		"a zero byte behind it":            {"X-Variation: canary\x00", refused},
		"a zero byte in the name":          {"X-Vari\x00ation: canary", refused},
		"a space before the colon":         {"X-Variation : canary", refused},
		"a line that goes on":              {"X-Evil: 1\r\n X-Variation: canary", "stable"},
		"two in one line":                  {"X-Variation: canary, canary", "stable"},
		"one that is written in percent":   {"X-Variation: c%61nary", "stable"},
		"a pattern":                        {"X-Variation: .*", "stable"},
		"a pattern for a value":            {"X-Group: bet.", "stable"},
		"a value and what follows it":      {"X-Group: beta;staff", "stable"},
		"a name that looks like it":        {"X_Variation: canary", "stable"},
		"one in the path of another":       {"X-Envoy-Original-Path: /\r\nX-Forwarded-Variation: canary", "stable"},
		"a header that names the upstream": {"X-Envoy-Upstream-Alt-Stat-Name: x\r\nX-Envoy-Decorator-Operation: canary", "stable"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			answer := written(t, address, tc.lines)
			got := append(of(answer, "variation"), answer[0])[0]
			if got != tc.want {
				t.Errorf("it goes to %s, want %s; the answer is %q", got, tc.want, answer)
			}
			for _, line := range answer {
				if strings.Contains(strings.ToLower(line), "evil") {
					t.Errorf("the answer has %q", line)
				}
			}
		})
	}
}

// Characters that a name may have, and that mean something in a pattern or a format.
func TestNamesOfStrangeCharactersAreOnlyNames(t *testing.T) {
	const odd = "!#$%&'*+-.^_`|~"
	long := strings.Repeat("n", ir.MaxName)
	var services []ir.Service
	names := []string{"a" + odd, "%DURATION%", "%%", `.*`, `^$`, "a|b", "a+", long}
	for _, name := range names {
		s := split(t, traffic.Key{Kind: traffic.ByVisitor, Name: name}, "s1", 5_000)
		s.Routing.Override, s.Routing.Match = "x"+strings.ToLower(name), traffic.Match{Header: "y" + strings.ToLower(name), Values: map[string]string{
			`%REQ(host)%`: "canary", `\1 .*`: "stable", `"a"; b=,c`: "canary", strings.Repeat("v", ir.MaxValue): "stable",
		}}
		services = append(services, s)
	}
	// The names of headers are made one longer by the letter, which these may not be.
	services[len(services)-1].Routing.Override, services[len(services)-1].Routing.Match.Header = long[1:]+"x", long[1:]+"y"
	addresses := serve(t, services...)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			routing := services[i].Routing
			for range 20 {
				first := written(t, addresses[i], "X-Nothing: 1")
				cookies := of(first, "set-cookie")
				if len(cookies) != 2 || !strings.HasPrefix(cookies[1], name+"=") || len(cookies[1]) < len(name)+36 {
					t.Fatalf("the cookies are %q", cookies)
				}
				pair, _, _ := strings.Cut(cookies[1], ";")
				second := written(t, addresses[i], "Cookie: other=1; "+pair)
				if a, b := of(first, "variation"), of(second, "variation"); !slices.Equal(a, b) || len(of(second, "set-cookie")) != 1 {
					t.Fatalf("one who goes to %v first gets %q then", a, second)
				}
			}
			for value, want := range routing.Match.Values {
				for range 5 {
					if got := of(written(t, addresses[i], routing.Match.Header+": "+value), "variation"); !slices.Equal(got, []string{want}) {
						t.Errorf("%s: %q goes to %v, want %s", routing.Match.Header, value, got, want)
					}
				}
			}
			if got := of(written(t, addresses[i], routing.Override+": canary"), "variation"); !slices.Equal(got, []string{"canary"}) {
				t.Errorf("%s: canary goes to %v", routing.Override, got)
			}
		})
	}
}

// Weights of nothing and of all, and back: exactly those get the canary who should.
func TestAShareOfNothingIsNobodyAndOneOfAllIsEverybody(t *testing.T) {
	const n = 2_000
	for name, key := range map[string]traffic.Key{"each request by itself": {}, "users": byHeader, "visitors": byVisitor} {
		t.Run(name, func(t *testing.T) {
			addresses := serve(t, split(t, key, "s1", 0), split(t, key, "s1", traffic.Total))
			for i, want := range []string{"stable", "canary"} {
				c := client(t, false)
				for u := range n {
					if got := ask(t, c, addresses[i], "X-User", fmt.Sprint("user", u)); got.status != http.StatusOK || got.header.Get("Variation") != want {
						t.Fatalf("user %d gets %d from %s, want %s", u, got.status, got.header.Get("Variation"), want)
					}
				}
			}
		})
	}
}
