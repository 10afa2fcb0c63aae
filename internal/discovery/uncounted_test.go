// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// M1 of the review of the mesh: a slot for which there is no room is told with its variation, by the
// replica that has the proxy and by the one that leads, and no longer when it is over.
func TestTheProxiesForWhoseCountsThereIsNoRoomAreObserved(t *testing.T) {
	c := newCounted(t, signals.Config{SlotsOfProxy: 1})
	_, here := grounded(t)
	here.clock, here.began, here.catalog, here.counts = c.clock, begin, c.catalog, c.server
	_, leader := grounded(t)
	leader.clock = c.clock
	mirror := peers.NewMirror()
	mirror.Begin()
	leader.others.others["here"] = &other{mirror: mirror}
	service := divided("shop", "web", 1)
	number := uint64(0)
	uncounted := func() (of [2]map[string]uint64) {
		number++
		u := peers.Update{Number: number, Now: c.clock.Now(), Epoch: here.began, Complete: true, Counts: here.counted()}
		here.note()
		var told peers.Update
		if err := errors.Join(told.Decode(u.Encode()), mirror.Take(&told, c.clock.Now())); err != nil {
			t.Fatal(err)
		}
		for i, on := range []*ground{here, leader} {
			of[i] = map[string]uint64{}
			for _, arm := range on.arms(service, service.Routing.Shares, begin) {
				if arm.Outcomes != nil {
					of[i][arm.Variation] = arm.Outcomes.Uncounted
				}
			}
		}
		return of
	}
	c.tell("canary", 5)
	c.has(5, 1)
	c.tell("stable", 7)
	poll.True(t, time.Minute, "there is no room for the stable variation", func() bool { return len(here.counted()) == 2 })
	one := map[string]uint64{"stable": 1, "canary": 0}
	if d := cmp.Diff([2]map[string]uint64{one, one}, uncounted()); d != "" {
		t.Errorf("uncounted proxies here, and at the leader (-want +got):\n%s", d)
	}
	none := map[string]uint64{"stable": 0, "canary": 0}
	for range 10 {
		c.clock.Step(uncountedFor / 5)
		uncounted()
	}
	if d := cmp.Diff([2]map[string]uint64{none, none}, uncounted()); d != "" {
		t.Errorf("when the proxy tells no more (-want +got):\n%s", d)
	}
}
