// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
)

// claim is the part of a budget that one namespace holds.
type claim struct {
	namespace string
	// held is the sum of all parts, and of the rest, which cannot be dropped.
	held  int64
	parts []part
}

// part is the content that one entry can give back.
type part struct {
	place place
	size  int64
}

// chooseEvictions chooses the parts to drop, so that the claims fit the budget with a
// tenth to spare. The namespace that holds the most gives its largest part first. A
// namespace that holds no more than its equal share gives nothing, so one namespace
// never costs a smaller one.
func chooseEvictions(claims []claim, budget int64) []place {
	var total int64
	for _, c := range claims {
		total += c.held
	}
	if total <= budget {
		return nil
	}
	goal, equal := budget/10*9, budget/int64(len(claims))
	givers := slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return c.held <= equal })
	for i := range givers {
		givers[i].parts = slices.Clone(givers[i].parts)
		slices.SortStableFunc(givers[i].parts, func(a, b part) int { return cmp.Compare(b.size, a.size) })
	}
	var chosen []place
	for total > goal {
		giver := findGiver(givers, equal)
		if giver == nil {
			break
		}
		largest := giver.parts[0]
		giver.parts = giver.parts[1:]
		giver.held -= largest.size
		total -= largest.size
		chosen = append(chosen, largest.place)
	}
	return chosen
}

// findGiver finds the namespace that holds the most, of those above their equal share
// with parts left; nil if there is none.
func findGiver(givers []claim, equal int64) *claim {
	var most *claim
	for i := range givers {
		g := &givers[i]
		if g.held > equal && len(g.parts) > 0 && (most == nil || g.held > most.held) {
			most = g
		}
	}
	return most
}
