// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/proxy"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/wire"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

func start() *proxy.Proxy {
	return proxy.New(wire.Node{ID: "web-0"}, func(listener string) string { return "route-" + listener }, "route-l")
}

// says shows requests as "Type +asked -left has=n ACK 1 NACK 2".
func says(requests []wire.Request) []string {
	var lines []string
	for _, r := range requests {
		kind, _ := ads.TypeOf(r.URL)
		words := []string{kind.String()}
		for _, name := range r.Subscribe {
			words = append(words, "+"+name)
		}
		for _, name := range r.Unsubscribe {
			words = append(words, "-"+name)
		}
		if r.Node != nil {
			words = append(words, "node")
		}
		if len(r.Initial) > 0 {
			words = append(words, fmt.Sprint("has ", len(r.Initial)))
		}
		switch {
		case r.Refused != "":
			words = append(words, "NACK "+r.Nonce)
		case r.Nonce != "":
			words = append(words, "ACK "+r.Nonce)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// response is "Type nonce name… -removed…".
func response(text string) wire.Response {
	words := strings.Fields(text)
	i := slices.IndexFunc([]ads.Type{ads.Cluster, ads.Endpoints, ads.Listener, ads.Route}, func(t ads.Type) bool { return t.String() == words[0] })
	r := wire.Response{URL: ads.Type(i).URL(), Nonce: words[1]}
	for _, w := range words[2:] {
		if name, removed := strings.CutPrefix(w, "-"); removed {
			r.Removed = append(r.Removed, name)
		} else {
			r.Resources = append(r.Resources, wire.Resource{Name: w, Version: "v" + words[1]})
		}
	}
	return r
}

type exchange struct {
	response string
	want     []string
}

func converse(t *testing.T, p *proxy.Proxy, exchanges ...exchange) {
	t.Helper()
	for _, e := range exchanges {
		if diff := cmp.Diff(e.want, says(p.Receive(response(e.response)))); diff != "" {
			t.Fatalf("to %q (-want +got):\n%s", e.response, diff)
		}
	}
}

// begun is one that has two clusters, a listener and its route.
func begun(t *testing.T) *proxy.Proxy {
	p := start()
	if diff := cmp.Diff([]string{"Cluster node"}, says(p.Start())); diff != "" {
		t.Fatal(diff)
	}
	converse(t, p,
		exchange{"Cluster 1 a b", []string{"Endpoints +a +b"}},
		exchange{"Endpoints 2 a", []string{"Endpoints ACK 2"}},
		exchange{"Endpoints 3 b", []string{"Cluster ACK 1", "Endpoints ACK 3", "Listener"}},
		exchange{"Listener 4 l", []string{"Route +route-l", "Listener ACK 4"}},
		exchange{"Route 5 route-l", []string{"Route ACK 5"}})
	if p.Held() != [4]int{2, 2, 1, 1} {
		t.Fatalf("it has %v", p.Held())
	}
	return p
}

func TestAClusterIsAcknowledgedWhenItHasEndpoints(t *testing.T) {
	converse(t, begun(t),
		exchange{"Cluster 6 c", []string{"Endpoints +c"}},
		exchange{"Cluster 7 -a", []string{"Endpoints -a"}},
		exchange{"Endpoints 8 c", []string{"Cluster ACK 6", "Cluster ACK 7", "Endpoints ACK 8"}},
		exchange{"Cluster 9 b", nil}, // it changes: asked for it has been before
		exchange{"Endpoints 10 b", []string{"Cluster ACK 9", "Endpoints ACK 10"}},
		exchange{"Listener 11 -l", []string{"Route -route-l", "Listener ACK 11"}})
}

func TestOneThatComesBackSaysWhatItHas(t *testing.T) {
	p := begun(t)
	want := []string{"Cluster node has 2", "Endpoints +a +b has 2", "Listener has 1", "Route +route-l has 1"}
	if diff := cmp.Diff(want, says(p.Start())); diff != "" {
		t.Error(diff)
	}
	p.Forget()
	if diff := cmp.Diff([]string{"Cluster node"}, says(p.Start())); diff != "" {
		t.Error(diff)
	}
}

func TestModes(t *testing.T) {
	p := begun(t)
	p.Behave(proxy.Silent)
	converse(t, p, exchange{"Route 6 route-l", nil}, exchange{"Cluster 7 c", []string{"Endpoints +c"}})
	p = begun(t)
	p.Behave(proxy.Refusing)
	converse(t, p, exchange{"Route 6 route-l", []string{"Route NACK 6"}}, exchange{"Route 7 other", []string{"Route ACK 7"}})
	if got := p.Start()[3].Initial["route-l"]; got != "v5" {
		t.Errorf("it has %s of what it refuses", got)
	}
}
