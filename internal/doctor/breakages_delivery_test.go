// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"
)

// delivered breaks an installation that carries out the rollout of one release.
func delivered(change func(*Snapshot)) breakage {
	return meshed(func(s *Snapshot) {
		last := &s.Workloads.Value[len(s.Workloads.Value)-1]
		last.Args = []string{rolloutsFlag}
		s.Delivery = Delivery{
			Releases:   Got([]Release{{Namespace: "mesh", Name: "web", Strategy: "standard", Waiting: "MinimumTime", Deadline: testNow.Add(time.Minute)}}),
			Strategies: Got([]string{"standard", "careful"}),
		}
		change(s)
	})
}

func disableDelivery(s *Snapshot) { s.Workloads.Value[len(s.Workloads.Value)-1].Args = nil }

func deliveryBreakages() map[string]map[string]breakage {
	return map[string]map[string]breakage{
		"delivery.releases": {
			"a run waits for its time": delivered(func(*Snapshot) {}),
			"a run waits past a deadline": delivered(func(s *Snapshot) {
				r := &s.Delivery.Releases.Value[0]
				r.Waiting, r.Message, r.Deadline = "Capacity", "canary has 1 of 4 ready pods", testNow.Add(-time.Minute)
			}),
			"many runs do": delivered(func(s *Snapshot) {
				for i := range maxProblems + 3 {
					s.Delivery.Releases.Value = append(s.Delivery.Releases.Value, Release{Namespace: "mesh", Name: fmt.Sprint("web-", i), Waiting: "Capacity", Deadline: testNow.Add(-time.Minute)})
				}
			}),
			"a run waits without a deadline":                delivered(func(s *Snapshot) { s.Delivery.Releases.Value[0].Deadline = time.Time{} }),
			"a release has a rollout, and delivery is off":  delivered(disableDelivery),
			"strategies without releases, and delivery off": delivered(func(s *Snapshot) { disableDelivery(s); s.Delivery.Releases = Got([]Release{}) }),
			"neither strategies nor releases, delivery off": delivered(func(s *Snapshot) {
				disableDelivery(s)
				s.Delivery = Delivery{Releases: Gone[[]Release](), Strategies: Gone[[]string]()}
			}),
			"releases cannot be read":   delivered(func(s *Snapshot) { s.Delivery.Releases = forbidden[[]Release]("list abreleases.plumbline.dev") }),
			"strategies cannot be read": delivered(func(s *Snapshot) { s.Delivery.Strategies = forbidden[[]string]("list rolloutstrategies.plumbline.dev") }),
			"there is no mesh":          on(func(*Snapshot) {}),
		},
	}
}
