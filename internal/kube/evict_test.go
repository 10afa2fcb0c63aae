// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// naiveEvictions drops one part after the other from whatever namespace holds the most.
func naiveEvictions(claims []claim, budget int64) (chosen []string, held map[string]int64) {
	held = map[string]int64{}
	left := map[string][]part{}
	var total int64
	for _, c := range claims {
		held[c.namespace], left[c.namespace] = c.held, append([]part(nil), c.parts...)
		total += c.held
	}
	for begun := total > budget; begun && total > budget/10*9; {
		most := ""
		for _, c := range claims {
			name := c.namespace
			if held[name] > budget/int64(len(claims)) && len(left[name]) > 0 && (most == "" || held[name] > held[most]) {
				most = name
			}
		}
		if most == "" {
			break
		}
		largest := 0
		for i, p := range left[most] {
			if p.size > left[most][largest].size {
				largest = i
			}
		}
		p := left[most][largest]
		left[most] = append(left[most][:largest:largest], left[most][largest+1:]...)
		held[most] -= p.size
		total -= p.size
		chosen = append(chosen, p.place.name.namespace+"/"+p.place.name.name)
	}
	return chosen, held
}

// M4 of the guard's review: a tenant's objects must not displace those of other tenants.
func TestNoNamespaceGivesContentForALargerOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int64Range(1, 2000).Draw(t, "budget")
		var claims []claim
		var total int64
		for n := range rapid.IntRange(1, 5).Draw(t, "namespaces") {
			c := claim{namespace: fmt.Sprint("ns-", n), held: rapid.Int64Range(0, 200).Draw(t, "fixed")}
			for i := range rapid.IntRange(0, 6).Draw(t, "parts") {
				size := rapid.Int64Range(1, 500).Draw(t, "size")
				c.parts = append(c.parts, part{place{name: nsName{c.namespace, fmt.Sprint(i)}}, size})
				c.held += size
			}
			claims = append(claims, c)
			total += c.held
		}
		want, held := naiveEvictions(claims, budget)
		var got []string
		lost := map[string]bool{}
		for _, p := range chooseEvictions(claims, budget) {
			got = append(got, p.name.namespace+"/"+p.name.name)
			lost[p.name.namespace] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("dropped (-naive +got):\n%s", diff)
		}
		equal, after := budget/int64(len(claims)), int64(0)
		for _, c := range claims {
			after += held[c.namespace]
			if c.held <= equal && lost[c.namespace] {
				t.Fatalf("%s holds %d, its share is %d, and it lost content", c.namespace, c.held, equal)
			}
		}
		if total <= budget && len(got) > 0 {
			t.Fatalf("%d fit %d, and %v was dropped", total, budget, got)
		}
		if after <= budget {
			return
		}
		for _, c := range claims {
			droppable := 0
			for _, p := range c.parts {
				if !contains(got, p) {
					droppable++
				}
			}
			if held[c.namespace] > equal && droppable > 0 {
				t.Fatalf("%d bytes remain of %d, and %s could give more", after, budget, c.namespace)
			}
		}
	})
}

func contains(names []string, p part) bool {
	return slices.Contains(names, p.place.name.namespace+"/"+p.place.name.name)
}
