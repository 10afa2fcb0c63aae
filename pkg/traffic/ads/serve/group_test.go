// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

func version(name string, sequence uint64, hash string) *ads.Resource {
	return &ads.Resource{Type: ads.Route, Name: name, Version: ads.Version{Sequence: sequence, Hash: hash}}
}

// Whoever looks at any time, and then again at any later time, is told all that
// differs, however much lies between.
func TestAGroupTellsAllThatHasChangedSince(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewGroup(nil)
		begun := []*revision{g.now()}
		content := map[string]int{}
		for range rapid.IntRange(1, 3*remembered).Draw(t, "publications") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
			content[name] = rapid.IntRange(0, 2).Draw(t, "content")
			var resources []*ads.Resource
			for name, n := range content {
				if n > 0 {
					resources = append(resources, version(name, 0, fmt.Sprint(n)))
				}
			}
			switch n := content[name]; {
			case g.View() == nil || rapid.Bool().Draw(t, "whole"):
				g.Publish(ads.NewView(resources...))
			case n == 0:
				g.PublishChanges([]ads.Key{{Type: ads.Route, Name: name}}, nil)
			default:
				g.PublishChanges(nil, []*ads.Resource{version(name, 0, fmt.Sprint(n))})
			}
			if d := ads.Diff(ads.NewView(resources...), g.View()); len(d) > 0 {
				t.Fatalf("%v differ from what was published", d)
			}
			begun = append(begun, g.now())
		}
		before := rapid.SampledFrom(begun).Draw(t, "since")
		now, changed := g.since(before)
		if now != g.now() {
			t.Fatal("it is not the newest")
		}
		for _, k := range ads.Diff(before.view, now.view) {
			if !slices.Contains(changed, k) {
				t.Fatalf("%v has changed since revision %d, and is not told at %d", k, before.number, now.number)
			}
		}
	})
}

func TestWhoWaitsForANextRevisionIsWokenByOneThatDiffers(t *testing.T) {
	g, waits := NewGroup(nil), &counter{}
	if at := g.join(waits); at.view != nil {
		t.Fatal("there is a view before the first")
	}
	g.Publish(ads.NewView())
	if waits.woken != 1 {
		t.Fatalf("the first view wakes it %d times", waits.woken)
	}
	g.Publish(ads.NewView())
	if waits.woken != 1 {
		t.Error("a view that is the same wakes everybody")
	}
	g.PublishChanges(nil, []*ads.Resource{version("a", 0, "1")})
	if waits.woken != 2 {
		t.Errorf("it was woken %d times", waits.woken)
	}
	g.leave(waits)
	g.PublishChanges(nil, []*ads.Resource{version("a", 0, "2")})
	if waits.woken != 2 || len(g.members) != 0 {
		t.Error("a member that has left is woken")
	}
}

// counter counts how often it is woken.
type counter struct{ woken int }

func (c *counter) wake() { c.woken++ }

func TestProofs(t *testing.T) {
	k := ads.Key{Type: ads.Route, Name: "web"}
	tests := map[string]struct {
		acknowledged []*ads.Resource
		last         string
		proven       []string
	}{
		"nothing is proven at first":                  {},
		"the latest acknowledgment is the last":       {[]*ads.Resource{version("web", 0, "a"), version("web", 0, "b")}, "0.b", []string{"0.a", "0.b"}},
		"a version that comes back is the last again": {[]*ads.Resource{version("web", 0, "a"), version("web", 0, "b"), version("web", 0, "a")}, "0.a", []string{"0.a", "0.b"}},
		"who is behind acknowledges nothing newer":    {[]*ads.Resource{version("web", 2, "b"), version("web", 1, "a")}, "2.b", []string{"1.a", "2.b"}},
		"only the last few are remembered":            {[]*ads.Resource{version("web", 1, "a"), version("web", 2, "b"), version("web", 3, "c"), version("web", 4, "d")}, "4.d", []string{"2.b", "3.c", "4.d"}},
		"another name is another matter":              {[]*ads.Resource{version("cart", 1, "a")}, "", nil},
	}
	all := []*ads.Resource{version("web", 0, "a"), version("web", 0, "b"), version("web", 1, "a"), version("web", 2, "b"), version("web", 3, "c"), version("web", 4, "d")}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewProofs()
			for _, r := range tc.acknowledged {
				p.Prove(r)
			}
			var last string
			if r := p.Last(k); r != nil {
				last = r.Version.String()
			}
			var proven []string
			for _, r := range all {
				if p.Proven(r) {
					proven = append(proven, r.Version.String())
				}
			}
			if last != tc.last || !slices.Equal(proven, tc.proven) {
				t.Errorf("last is %q and proven %v, want %q and %v", last, proven, tc.last, tc.proven)
			}
			p.Forget([]ads.Key{k})
			if p.Last(k) != nil {
				t.Error("what is forgotten is still known")
			}
		})
	}
}
