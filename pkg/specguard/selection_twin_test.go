// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// twin is a naive view of the selection: all label sets that the object ever had.
type twin struct {
	trusted map[string]string   // what trusted writers made of the first labels
	ever    []map[string]string // likewise of all
	// since says of a guard's uid that nothing that may release happened since it
	// selected the object: no edit of it, no trusted change of labels.
	since map[string]bool
}

func (n *twin) write(before, after map[string]string, byTrusted bool) {
	if byTrusted && !maps.Equal(before, after) {
		n.trusted = moveNaively(n.trusted, before, after)
		for i := range n.ever {
			n.ever[i] = moveNaively(n.ever[i], before, after)
		}
		clear(n.since)
	}
	n.ever = append(n.ever, after)
}

func moveNaively(set, before, after map[string]string) map[string]string {
	moved := map[string]string{}
	for _, key := range []string{"tier", "app"} {
		from := set
		if before[key] != after[key] {
			from = after
		}
		if value, ok := from[key]; ok {
			moved[key] = value
		}
	}
	return moved
}

// check compares: a guard selects at least what it must, and at most what it may.
func (n *twin) check(t *rapid.T, w *labeled, before []string) {
	selected := w.rules.ListSelectingGuards()
	for _, g := range w.guards {
		live := g.matchesLabels(w.live.Labels)
		was := slices.Contains(before, g.uid)
		must := live || was && (g.matchesLabels(n.trusted) || n.since[g.uid])
		may := live || was && slices.ContainsFunc(n.ever, g.matchesLabels)
		if got := slices.Contains(selected, g.ref.String()); got && !may || !got && must {
			t.Fatalf("%s (%s, selector %v) selects %t, must %t, may %t: live %v, trusted %v, remembered %+v",
				g.ref, g.uid, g.selector, got, must, may, w.live.Labels, n.trusted, w.status.Selection)
		}
	}
}

func TestSelectionAgreesWithANaiveTwin(t *testing.T) {
	sets := []string{"", "tier=a", "tier=b", "app=x", "tier=a app=x", "tier=b app=y", "tier=c"}
	selectors := []string{"", "tier=a", "tier=b", "tier in (a,b)", "tier,app=x", "!tier", "app notin (x)", "tier=a,app=x"}
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(what string, from []string) string { return rapid.SampledFrom(from).Draw(rt, what) }
		uids := 0
		newGuard := func(name string) *Guard {
			uids++
			return selecting(t, name, fmt.Sprint("uid-", uids), pick("selector", selectors))
		}
		w := newLabeled(t, pick("first", sets), newGuard("g"), newGuard("h"))
		n := &twin{trusted: w.live.Labels, ever: []map[string]string{w.live.Labels}, since: map[string]bool{}}
		selectedUIDs := func() (uids []string) {
			for _, g := range w.guards {
				if slices.Contains(w.status.Guards, g.ref.String()) {
					uids = append(uids, g.uid)
				}
			}
			return uids
		}
		for range rapid.IntRange(1, 14).Draw(rt, "steps") {
			before := selectedUIDs()
			for _, uid := range before {
				n.since[uid] = true
			}
			name := pick("guard", []string{"g", "h"})
			old := w.guards[slices.IndexFunc(w.guards, func(g *Guard) bool { return g.ref.Name == name })]
			switch pick("act", []string{"label", "label", "label", "edit", "edit", "anew", "restart", "suspend"}) {
			case "label":
				by, withImage := pick("by", []string{"ci", "alice"}), rapid.Bool().Draw(rt, "image")
				from := w.live.Labels
				w.label(by, pick("set", sets), withImage)
				n.write(from, w.live.Labels, by == "ci" && withImage)
			case "edit":
				w.edit(selecting(t, name, old.uid, pick("selector", selectors)))
				delete(n.since, old.uid)
			case "anew":
				w.edit(newGuard(name))
			case "restart":
				w.reload()
			case "suspend":
				g := *old
				g.suspendedUntil = w.now.Add(time.Minute)
				w.edit(&g)
			}
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 50).Draw(rt, "seconds")) * time.Second)
			w.look()
			n.check(rt, w, before)
			w.look() // nothing happened: nothing changes
			n.check(rt, w, before)
		}
	})
}
