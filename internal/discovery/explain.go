// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

const (
	// explainEvery so often it is asked why proxies are behind, of so many.
	explainEvery = time.Second
	explained    = 100
)

// explainer finds out why proxies of this replica have not acknowledged what is newest.
type explainer struct {
	index   *acknowledged.Index
	catalog *Catalog
	server  *serve.Server
}

// run until ctx ends.
func (e explainer) run(ctx context.Context, c clock.WithTicker) {
	ticker := c.NewTicker(explainEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			e.explain(ctx)
		}
	}
}

// explain asks the sessions of those that are behind.
func (e explainer) explain(ctx context.Context) {
	newest := e.catalog.Newest()
	behind := e.index.Behind(newest, explained)
	if len(behind) == 0 {
		return
	}
	proxies, _ := e.server.Page(ctx, serve.Query{
		Keep:    func(p identity.Proxy) bool { return behind[p.PodUID] != nil },
		Of:      func(k ads.Key) bool { return k.Type == ads.Route && newest[k.Name].Sequence > 0 },
		Details: true,
	})
	for _, p := range proxies {
		uid := p.PodUID
		for _, name := range behind[uid] {
			switch {
			case p.Blocked:
				e.index.Explain(uid, name, newest[name], "does not read its stream")
			case p.Waiting:
				e.index.Explain(uid, name, newest[name], "waits for its turn to start")
			}
		}
		for _, s := range p.Resources {
			if why := whyNot(s); why != "" && slices.Contains(behind[uid], s.Name) {
				e.index.Explain(uid, s.Name, s.Wants, why)
			}
		}
	}
}

// whyNot says what keeps a route from being sent; empty if nothing does, or if it is
// told otherwise.
func whyNot(s ads.State) string {
	switch s.Stage {
	case ads.Held:
		return "is not sent " + s.Wants.String() + " yet: " + s.Why
	case ads.Queued:
		return "is not sent " + s.Wants.String() + " yet: " + s.Why
	case ads.Refused, ads.OnTheWay, ads.Going, ads.Acknowledged:
	}
	return ""
}
