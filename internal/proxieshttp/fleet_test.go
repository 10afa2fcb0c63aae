// SPDX-License-Identifier: Apache-2.0

package proxieshttp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// began is when streams did, and ended is when their tokens have.
var (
	began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ended = began.Add(40 * time.Minute)
)

// member of a fleet has resources, whichever are asked for.
type member struct {
	serve.Connected
	resources []ads.State
}

// fleet of proxies that are there, sorted.
type fleet struct {
	members []member
	// most is how many were asked for details at once, and asked how often any were.
	most, asked atomic.Int64
}

// Page implements proxieshttp.Proxies.
func (f *fleet) Page(_ context.Context, q serve.Query) (page []serve.Connected, more bool) {
	f.asked.Add(1)
	for _, m := range f.members {
		at := serve.Place{Namespace: m.Namespace, Pod: m.Pod}
		switch {
		case q.After != serve.Place{} && at.Compare(q.After) <= 0, !q.Keep(m.Proxy):
			continue
		case q.Limit > 0 && len(page) >= q.Limit:
			return page, true
		}
		c := m.Connected
		c.Counts = map[ads.Stage]int{}
		for _, r := range m.resources {
			if q.Of(ads.Key{Type: r.Type, Name: r.Name}) {
				c.Counts[r.Stage]++
				if q.Details {
					c.Resources = append(c.Resources, r)
				}
			}
		}
		page = append(page, c)
	}
	if q.Details {
		f.most.Store(max(f.most.Load(), int64(len(page))))
	}
	return page, false
}

func proxy(namespace, pod string, resources ...ads.State) member {
	return member{serve.Connected{
		Proxy: identity.Proxy{Namespace: namespace, Pod: pod, PodUID: "uid-" + pod, ServiceAccount: "front", Expires: ended},
		Node:  namespace + "/" + pod, Version: [3]uint64{1, 40, 0}, Since: began,
	}, resources}
}

func state(kind ads.Type, name string, stage ads.Stage) ads.State {
	v := ads.Version{Sequence: 2, Hash: "h"}
	return ads.State{Type: kind, Name: name, Stage: stage, Has: v, Wants: v, Since: began}
}

// shop is one of each kind.
func shop() *fleet {
	refused := state(ads.Route, "shop/web|80", ads.Refused)
	refused.Why, refused.Has = "no <b>such</b> match", ads.Version{}
	blocked, waiting := proxy("shop", "slow-0"), proxy("shop", "starts-0")
	blocked.Blocked, waiting.Waiting = true, true
	waiting.Node, waiting.Version = "", [3]uint64{}
	return &fleet{members: []member{
		proxy("bank", "pay-0", state(ads.Cluster, "bank/pay|80|", ads.Acknowledged), state(ads.Listener, "10.0.0.1:80", ads.Acknowledged)),
		proxy("shop", "front-0", state(ads.Cluster, "shop/web|80|", ads.Acknowledged), refused, state(ads.Endpoints, "shop/cart|80|", ads.OnTheWay)),
		blocked, waiting,
	}}
}

// many proxies; of every thousandth a route is held.
func many(n int) *fleet {
	f := &fleet{}
	for i := range n {
		m := proxy("shop", fmt.Sprintf("web-%05d", i), state(ads.Cluster, "shop/web|80|", ads.Acknowledged))
		if i%1000 == 0 {
			m.resources = append(m.resources, state(ads.Route, "shop/web|80", ads.Held))
		}
		f.members = append(f.members, m)
	}
	return f
}

// served is a replica that shows a fleet.
func served(t *testing.T, f *fleet) *httptest.Server {
	t.Helper()
	h := proxieshttp.New("xds-0", func() time.Time { return began.Add(time.Hour) })
	if f != nil {
		h.Show(f)
	}
	server := httptest.NewServer(h.Routes())
	t.Cleanup(server.Close)
	return server
}

func get(t *testing.T, address string) (code int, body string, header http.Header) {
	t.Helper()
	return fetch(t.Context(), t, address)
}

func fetch(ctx context.Context, t *testing.T, address string) (code int, body string, header http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

// client whose requests all go to a replica.
func client(server *httptest.Server) proxieshttp.Client {
	return proxieshttp.Client{HTTP: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}}}}
}
