// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// A proxy confirms a cluster, which then goes and comes back while its removal is on the
// way. The window is full, so the cluster cannot be sent again yet.
func TestARouteWaitsForAClusterWhoseRemovalIsOnTheWay(t *testing.T) {
	inline := func(name, hash string) *ads.Resource {
		r := of(ads.Cluster, name, hash)
		r.Inline = true
		return r
	}
	stable, canary := inline("stable", "1"), inline("canary", "1")
	s := &script{t: t, now: time.Unix(1_800_000_000, 0), view: ads.NewView(stable, canary, of(ads.Route, "web", "1", "stable")), proofs: newProofs()}
	s.stream = ads.NewStream(ads.Config{Window: 4}, s.proofs, nothingThere, s.view)
	s.confirm(s.ask(ads.Cluster)...)
	s.confirm(s.ask(ads.Route, "web")...)

	removal := s.publish(stable, of(ads.Route, "web", "1", "stable"))
	s.want("the cluster goes", removal, "Cluster -canary")
	large := inline("big", "larger than the window")
	s.want("it comes back, and the route names it", s.publish(stable, large, canary, of(ads.Route, "web", "2", "canary", "stable")), "")
	if stage := s.stage(ads.Route, "web"); stage != ads.Held {
		t.Errorf("the route is %s", stage)
	}
	s.want("it is sent again once the proxy has removed it", s.receive(ads.Request{Type: ads.Cluster, Nonce: removal[0].Nonce}), "Cluster big=larger than the window canary=1; Route web=2")
}
