// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

// signingKey is that of each receiver of the tests.
var signingKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))

// local permits the receivers of the tests.
var local = deliver.Egress{PlainHTTP: true, Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func asker(egress deliver.Egress) *deliver.Asker {
	return deliver.NewAsker(func(context.Context, notify.SecretRef) (string, error) { return signingKey, nil }, egress, nil)
}

func at(t testing.TB, url string, release Release) *Router {
	return New(Config{
		Context: t.Context(), Name: "edge", Release: release, URL: url, Key: notify.SecretRef{Name: "edge", Key: "key"},
		Capabilities: connectors.Webhook.Capabilities, Sender: asker(local), Now: time.Now,
	})
}

// stand has a receiver whose program is a proxy in memory.
type stand struct {
	*routertest.Proxy
	t       testing.TB
	url     string
	routers map[types.NamespacedName]*Router
}

func (s stand) Router(release types.NamespacedName) traffic.Router {
	if s.routers[release] == nil {
		s.routers[release] = at(s.t, s.url, Release{release.Namespace, release.Name, types.UID("uid-" + release.Name)})
	}
	return s.routers[release]
}

// Settle waits until no request is under way.
func (s stand) Settle() {
	for _, r := range s.routers {
		for r.isUnderWay() {
			if err := r.wait(s.t.Context()); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

func (r *Router) isUnderWay() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.underWay != nil
}

// decodeSplit is what a receiver reads of a request.
func decodeSplit(r request) traffic.Split {
	split := traffic.Split{Namespace: r.Release.Namespace, Name: r.Release.Name, Service: r.Service, Sequence: r.Sequence}
	split.Salt, split.Override = r.Salt, r.Override
	for _, a := range r.Arms {
		split.Variations = append(split.Variations, traffic.Variation{Name: a.Variation, Selector: a.Selector, ServedBy: a.ServedBy})
		split.Shares = append(split.Shares, traffic.Share{Variation: a.Variation, Weight: a.BasisPoints, Reserved: a.Reserved})
	}
	if k := r.Key; k != nil {
		for kind := traffic.PerRequest; kind <= traffic.ByVisitor; kind++ {
			if kind.String() == k.Kind {
				split.Key = traffic.Key{Kind: kind, Name: k.Name, Domain: k.Domain, Secure: k.Secure}
			}
		}
	}
	if m := r.Match; m != nil {
		split.Match = traffic.Match{Header: m.Header, Values: m.Values}
	}
	return split
}

// receive has a proxy in memory carry out what comes, and answers as a receiver should.
func receive(t testing.TB, proxy *routertest.Proxy) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := types.NamespacedName{Namespace: r.URL.Query().Get("namespace"), Name: r.URL.Query().Get("name")}
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			var of request
			if err := json.Unmarshal(body, &of); err != nil {
				t.Error(err)
			}
			name = types.NamespacedName{Namespace: of.Release.Namespace, Name: of.Release.Name}
			program := proxy.Router(name)
			if of.Action == actionRemove {
				err = program.Remove(r.Context())
			} else {
				err = program.Apply(r.Context(), decodeSplit(of))
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		answer := Answer{Knowledge: traffic.Unknown}
		if seen, err := proxy.Router(name).Observe(r.Context()); err == nil {
			answer.Sequence = seen.Sequence
			if seen.Knowledge == traffic.Proven {
				answer.Knowledge = traffic.Proven
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}
}

func TestARouterOfAReceiverConforms(t *testing.T) {
	routertest.Conform(t, routertest.Maker{
		Capabilities: connectors.Webhook.Capabilities,
		Begin: func(t *testing.T) routertest.Stand {
			proxy := routertest.NewProxy(traffic.FullCapabilities(), false)
			server := httptest.NewServer(receive(t, proxy))
			t.Cleanup(server.Close)
			return stand{proxy, t, server.URL, map[types.NamespacedName]*Router{}}
		},
	})
}
