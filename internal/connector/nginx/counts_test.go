// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
)

func TestARequestCountsOnce(t *testing.T) {
	var got Counts
	for _, status := range []int{200, 101, 404, 499, 500, 504} {
		got = got.Add(status, status == 200 || status == 499)
	}
	if want := (Counts{Answered: 5, Failed: 2, ClientErrors: 1, GivenUp: 1, FailedOver: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if since := got.Add(500, true).Add(499, false).Add(400, false).Since(got); since != (Counts{Answered: 2, Failed: 1, ClientErrors: 1, GivenUp: 1, FailedOver: 1}) {
		t.Errorf("counted since %+v", since)
	}
}

func TestBackupsAreTheEndpointsOfTheStableVariation(t *testing.T) {
	p := portset.Divided(portset.ByHeader, 500, portset.Force)
	shared := p.Arms[0].Failover[0]
	p.Arms[0].Own = append(p.Arms[0].Own, shared)
	backups := FindBackups([]envoyxds.Port{p})
	canary := envoyname.Slot{Namespace: "shop", Service: "web", Port: 80, Variation: "canary"}
	forced := canary
	forced.Forced = true
	stable := canary
	stable.Variation = "stable"
	if got := backups[canary]; len(got) != 1 || !got[p.Arms[0].Failover[1]] {
		t.Errorf("those of the canary are %v, want %v without %v", got, p.Arms[0].Failover, shared)
	}
	if len(backups[forced]) > 0 || len(backups[stable]) > 0 || len(backups) != 4 {
		t.Errorf("the backups are %v", backups)
	}
}
