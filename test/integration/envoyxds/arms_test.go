// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// arms is a split in which all but the stable variation have these weights, in the
// ranges that the split before it had.
func arms(t *testing.T, before traffic.Shares, weights ...traffic.Weight) traffic.Shares {
	t.Helper()
	wishes := []traffic.Wish{{Variation: "stable", Weight: traffic.Total}}
	for i, w := range weights {
		wishes[0].Weight -= w
		wishes = append(wishes, traffic.Wish{Variation: fmt.Sprint("v", i+1), Weight: w})
	}
	next, moved := traffic.Reserve(wishes, before)
	must(t, next.Validate())
	if moved {
		t.Fatalf("%v does not fit the ranges of %v", weights, before)
	}
	return next
}

// divided is a service with a split, by the header, with an upstream of its own for each variation.
func divided(t *testing.T, shares traffic.Shares) ir.Service {
	t.Helper()
	var slots []ir.Slot
	for _, share := range shares {
		slots = append(slots, slot(share.Variation, endpoint(named(t, share.Variation), ir.Ready)))
	}
	return web(&traffic.Routing{Shares: shares, Key: byHeader, Salt: "s1", Override: "x-variation"}, slots...)
}

// variations asks for each user, and says which variation answers whom.
func variations(t *testing.T, address string, n int) map[string]string {
	t.Helper()
	c, got := client(t, false), map[string]string{}
	for i := range n {
		user := fmt.Sprint("user", i)
		got[user] = ask(t, c, address, "X-User", user).header.Get("Variation")
	}
	return got
}

// Each step is of a release whose ranges stay: who moves leaves a variation that
// shrinks or comes to one that grows, and the other side of it is the stable one.
func TestASplitOfManyMovesOnlyWhomItHasTo(t *testing.T) {
	rotation.Share(t, 3)
	type weights = []traffic.Weight
	tests := map[string][]weights{
		"four":  {{0, 0, 0}, {100, 500, 2_000}, {1_000, 500, 3_000}, {3_000, 500, 0}, {3_333, 3_333, 3_333}},
		"eight": {{0, 0, 0, 0, 0, 0, 0}, {100, 200, 300, 400, 500, 600, 700}, {1_000, 200, 300, 1_400, 500, 600, 700}, {1_000, 0, 1_000, 700, 500, 1_400, 0}, {1_428, 1_428, 1_428, 1_428, 1_428, 1_428, 1_428}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			const n = 2000
			var splits []traffic.Shares
			var services []ir.Service
			var before traffic.Shares
			for _, step := range steps {
				before = arms(t, before, step...)
				splits, services = append(splits, before), append(services, divided(t, before))
			}
			addresses := serve(t, services...)
			var was map[string]string
			for i, address := range addresses {
				is := variations(t, address, n)
				shares(t, splits[i], is)
				if i > 0 {
					movedOnlyBetween(t, splits[i-1], splits[i], was, is)
				}
				was = is
			}
			if d := cmp.Diff(was, variations(t, addresses[len(addresses)-1], n)); d != "" {
				t.Errorf("not everybody gets the same twice (-first +second):\n%s", d)
			}
			forcedToEach(t, addresses[0], splits[0])
		})
	}
}

// shares fails unless each variation has its share of those who asked.
func shares(t *testing.T, split traffic.Shares, of map[string]string) {
	t.Helper()
	counts := map[string]int{}
	for _, variation := range of {
		counts[variation]++
	}
	for _, share := range split {
		within(t, fmt.Sprint(share.Variation, " of ", split), counts[share.Variation], len(of), float64(share.Weight)/float64(traffic.Total))
		if share.Weight == 0 && counts[share.Variation] > 0 {
			t.Errorf("%s has no share, and %d users", share.Variation, counts[share.Variation])
		}
		delete(counts, share.Variation)
	}
	if len(counts) > 0 {
		t.Errorf("%v answered besides", counts)
	}
}

// movedOnlyBetween fails if somebody is elsewhere than before without a cause.
func movedOnlyBetween(t *testing.T, before, after traffic.Shares, was, is map[string]string) {
	t.Helper()
	grows := map[string]traffic.Weight{}
	for i := range after {
		grows[after[i].Variation] = after[i].Weight - before[i].Weight
	}
	moves := 0
	for user, from := range was {
		to := is[user]
		if from == to {
			continue
		}
		moves++
		leaves := to == after.Stable() && grows[from] < 0
		comes := from == after.Stable() && grows[to] > 0
		if !leaves && !comes {
			t.Errorf("%s goes from %s, which grows by %d, to %s, which grows by %d", user, from, grows[from], to, grows[to])
		}
	}
	if moves == 0 {
		t.Errorf("nobody moves from %v to %v", before, after)
	}
}

// forcedToEach reaches each variation of a split, whatever its share.
func forcedToEach(t *testing.T, address string, split traffic.Shares) {
	t.Helper()
	for _, share := range split {
		if got := ask(t, client(t, false), address, "X-Variation", share.Variation).header.Get("Variation"); got != share.Variation {
			t.Errorf("a request that is forced to %s goes to %s", share.Variation, got)
		}
	}
}
