// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// observe returns what all parts together know.
func observe(answers []answer[traffic.Observation]) (traffic.Observation, error) {
	silent, err := unheard(answers)
	if err != nil {
		return traffic.Observation{}, err
	}
	all := traffic.Observation{Knowledge: traffic.Proven, Unheard: silent}
	if len(silent) > 0 {
		all.Knowledge = traffic.Unknown
	}
	first := len(silent) == 0 // of a part that is not heard no sequence is known
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		seen := a.said
		if first || seen.Sequence < all.Sequence {
			all.Sequence, first = seen.Sequence, false
		}
		all.Knowledge = all.Knowledge.Weaker(seen.Knowledge)
		all.SettledAt = later(all.SettledAt, seen.SettledAt)
		all.Wanted, all.Acknowledged = all.Wanted+seen.Wanted, all.Acknowledged+seen.Acknowledged
		all.OutOfSync, all.Gone = append(all.OutOfSync, seen.OutOfSync...), append(all.Gone, seen.Gone...)
		all.Around = widest(all.Around, seen.Around)
		all.Ahead = max(all.Ahead, seen.Ahead)
		all.Arms = addArms(all.Arms, seen.Arms)
		all.NotYetRedirected = append(all.NotYetRedirected, seen.NotYetRedirected...)
		all.RedirectedAt = later(all.RedirectedAt, seen.RedirectedAt)
		for _, s := range seen.Starved {
			s.Part = a.part + "/" + s.Part
			all.Starved = append(all.Starved, s)
		}
		for _, part := range seen.Unheard {
			all.Unheard = append(all.Unheard, a.part+"/"+part)
		}
	}
	slices.SortStableFunc(all.OutOfSync, byAge)
	slices.SortStableFunc(all.Gone, byAge)
	slices.Sort(all.NotYetRedirected)
	all.NotYetRedirected = slices.Compact(all.NotYetRedirected)
	slices.Sort(all.Unheard)
	return all, nil
}

func byAge(a, b traffic.OutOfSync) int { return a.Since.Compare(b.Since) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// widest takes the larger of each count: parts count the pods of one namespace.
func widest(a, b traffic.Population) traffic.Population {
	return traffic.Population{Pods: max(a.Pods, b.Pods), Proxied: max(a.Proxied, b.Proxied), Routing: max(a.Routing, b.Routing)}
}

// addArms adds the outcomes of each variation, in the order in which parts name the variations. An arm has outcomes if
// one part knows some.
func addArms(all, more []traffic.Arm) []traffic.Arm {
	for _, arm := range more {
		at := slices.IndexFunc(all, func(a traffic.Arm) bool { return a.Variation == arm.Variation })
		switch {
		case at < 0:
			all = append(all, traffic.Arm{Variation: arm.Variation, Outcomes: added(nil, arm.Outcomes)})
		default:
			all[at].Outcomes = added(all[at].Outcomes, arm.Outcomes)
		}
	}
	return all
}

// added are the outcomes of two parts; the window is the longer one.
func added(a, b *traffic.Outcomes) *traffic.Outcomes {
	switch {
	case b == nil:
		return a
	case a == nil:
		a = &traffic.Outcomes{}
	}
	return &traffic.Outcomes{
		Window:    max(a.Window, b.Window),
		Completed: a.Completed + b.Completed,
		Failed:    a.Failed + b.Failed,
		InFlight:  a.InFlight + b.InFlight,
		Uncounted: a.Uncounted + b.Uncounted,
	}
}
