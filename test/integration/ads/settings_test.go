// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
)

// M2: the time-outs of connections are part of clusters, which Envoy warms anew when one changes.
func TestASettingThatChangesFailsNoRequest(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		m := newMesh(t)
		shop := service("web", &traffic.Routing{
			Shares: traffic.Shares{{Variation: "stable", Weight: 5_000}, {Variation: "canary", Weight: 5_000, Reserved: traffic.Total}},
		}, slotOf("stable", backend(t, "s1"), backend(t, "s2")), slotOf("canary", backend(t, "c1")))
		shop.Sequence = 1
		m.serves(shop)
		e, fronts := m.sidecar("web-0", shop)
		completed := func() int {
			return stat(t, e, `cluster\.shop/web\|80\|stable\.upstream_rq_completed`) + stat(t, e, `cluster\.shop/web\|80\|canary\.upstream_rq_completed`)
		}
		answering(t, fronts[0], "s1", "s2", "c1")
		before := completed()
		l := startLoad(t, fronts[0])
		begin := time.Now()
		const changes = 20
		for i := range changes {
			seen := l.seen("c1")
			shop.Settings = ir.Settings{
				IdleTimeout: time.Duration(i%2+1) * 500 * time.Millisecond, ConnectTimeout: time.Duration(i%3+1) * time.Second,
				RequestTimeout: time.Duration(i%4) * time.Minute, RetriesOff: i%5 == 4,
			}
			m.serves(shop)
			for _, variation := range []string{"stable", "canary"} {
				m.has("web-0", ads.Cluster, "shop/web|80|"+variation)
			}
			m.has("web-0", ads.Route, routeOfService("web"))
			eventually(t, "requests are answered with the changed setting", func() error {
				if n := l.seen("c1"); n < seen+10 {
					return fmt.Errorf("the canary has answered %d since", n-seen)
				}
				return nil
			})
		}
		t.Logf("%d changes took %s", changes, time.Since(begin))
		l.ended(t)
		if n := completed() - before; n != l.requests {
			t.Errorf("the proxy has counted %d requests, and clients %d", n, l.requests)
		}
	})
}
