// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// obedient is the stream of a proxy that acknowledges whatever it is sent.
type obedient struct {
	grpc.ServerStream
	ctx      context.Context
	requests chan request
}

func (o *obedient) Context() context.Context { return o.ctx }

func (o *obedient) RecvMsg(m any) error {
	select {
	case r := <-o.requests:
		*m.(*request) = r
		return nil
	case <-o.ctx.Done():
		return io.EOF
	}
}

func (o *obedient) SendMsg(m any) error {
	send := m.(*ads.Send)
	o.requests <- request{url: send.Type.URL(), Request: ads.Request{Nonce: send.Nonce}}
	return nil
}

// crowd admits everybody, each as another pod, and hears nothing.
type crowd struct {
	group *Group
	mu    sync.Mutex
	n     int
}

func (c *crowd) Admit(context.Context, []string) (Admission, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	name := fmt.Sprintf("web-%05d", c.n)
	return Admission{Proxy: identity.Proxy{Namespace: "shop", Pod: name, PodUID: name}, Group: c.group}, nil
}

func (*crowd) Opened(identity.Proxy)               {}
func (*crowd) Closed(identity.Proxy, error)        {}
func (*crowd) Refused(codes.Code, Bound)           {}
func (*crowd) Happened(identity.Proxy, ads.Effect) {}
func (*crowd) Sent(identity.Proxy, *ads.Send, int) {}

// nobody stands for what is not there.
func nobody(ads.Key) *ads.Resource { return nil }

// BenchmarkPages lists ten thousand proxies with fifty services each, page by page as
// the plugin asks for them.
func BenchmarkPages(b *testing.B) {
	const proxies, services, limit = 10_000, 50, 500
	var resources []*ads.Resource
	var names, routes []string
	for i := range services {
		cluster, route := fmt.Sprint("shop/web-", i, "|80|"), fmt.Sprint("shop/web-", i, "|80")
		names, routes = append(names, cluster), append(routes, route)
		v := ads.Version{Hash: "0123456789abcdef"}
		resources = append(resources, &ads.Resource{Type: ads.Cluster, Name: cluster, Version: v}, &ads.Resource{Type: ads.Endpoints, Name: cluster, Version: v},
			&ads.Resource{Type: ads.Listener, Name: fmt.Sprint("10.0.0.", i, ":80"), Version: v}, &ads.Resource{Type: ads.Route, Name: route, Version: v, Clusters: []string{cluster}})
	}
	ctx, stop := context.WithCancel(b.Context())
	c := &crowd{group: NewGroup(ads.NewView(resources...))}
	s := New(Config{Starting: proxies}, c, NewProofs(), nobody, c)
	var ended sync.WaitGroup
	for range proxies {
		o := &obedient{ctx: ctx, requests: make(chan request, 4*services+8)}
		o.requests <- request{url: ads.Cluster.URL(), node: node{id: "x", version: [3]uint64{1, 40, 0}}}
		o.requests <- request{url: ads.Endpoints.URL(), Request: ads.Request{Subscribe: names}}
		o.requests <- request{url: ads.Listener.URL()}
		o.requests <- request{url: ads.Route.URL(), Request: ads.Request{Subscribe: routes}}
		ended.Go(func() { _ = s.delta(nil, o) })
	}
	b.Cleanup(func() { stop(); ended.Wait() })
	all := func() (n, acknowledged int) {
		q := Query{Limit: limit}
		for more := true; more; {
			var page []Connected
			page, more = s.Page(b.Context(), q)
			for i := range page {
				acknowledged += page[i].Counts[ads.Acknowledged]
			}
			n += len(page)
			q.After = place(page[len(page)-1].Proxy)
		}
		return n, acknowledged
	}
	for {
		if n, acknowledged := all(); n == proxies && acknowledged == proxies*services*4 {
			break
		}
	}
	for b.Loop() {
		all()
	}
}
