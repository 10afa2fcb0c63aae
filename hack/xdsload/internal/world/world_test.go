// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

func TestEachGroupSeesWhatItsProxiesExpect(t *testing.T) {
	for _, scopes := range []int{0, 50} {
		eachGroup(t, world.Shape{Proxies: 1000, Services: 200, Dependencies: 10, Endpoints: 2, Scopes: scopes})
	}
}

func eachGroup(t *testing.T, shape world.Shape) {
	t.Helper()
	w, err := world.New(shape)
	if err != nil {
		t.Fatal(err)
	}
	routes := w.RouteOf()
	for g := range w.Groups() {
		view := ads.NewView(w.Visible(g)...)
		var got [4]int
		for kind := range got {
			got[kind] = len(view.Names(ads.Type(kind)))
		}
		if got != w.Expects(g) {
			t.Errorf("group %d sees %v, expects %v", g, got, w.Expects(g))
		}
		for _, l := range view.Names(ads.Listener) {
			if view.Get(ads.Route, routes[l]) == nil {
				t.Fatalf("group %d sees listener %s without its route %q", g, l, routes[l])
			}
		}
		for _, target := range []world.Target{world.One, world.Hundred, world.All} {
			if got := view.Get(ads.Route, w.Route(target)) != nil; got != w.Sees(g, target) {
				t.Errorf("group %d sees %s: %v", g, target, got)
			}
		}
	}
}

func TestTargetsHaveSoManySubscribers(t *testing.T) {
	all := func(int) bool { return true }
	for _, proxies := range []int{2, 100, 1000, 10_000} {
		s := world.Shape{Proxies: proxies, Services: 5000, Dependencies: 50, Endpoints: 2}
		if n := s.Subscribers(world.One, all); n != 1 {
			t.Errorf("%d of %d see the first", n, proxies)
		}
		if n, want := s.Subscribers(world.Hundred, all), min(100, proxies-1); n < want || n > want+proxies/99+1 {
			t.Errorf("%d of %d see the second, want about %d", n, proxies, want)
		}
		if n := s.Subscribers(world.All, all); n != proxies {
			t.Errorf("%d of %d see the third", n, proxies)
		}
	}
}

func TestAStepChangesOneResourceAndNoOther(t *testing.T) {
	w, err := world.New(world.Shape{Proxies: 10, Services: 20, Dependencies: 5, Endpoints: 2})
	if err != nil {
		t.Fatal(err)
	}
	for step, kind := range map[world.Step]ads.Type{world.Weight: ads.Route, world.Endpoint: ads.Endpoints} {
		for range 3 {
			before := ads.NewView(w.Visible(1)...)
			changed, err := w.Change(world.All, step)
			if err != nil {
				t.Fatal(err)
			}
			diff := ads.Diff(before, ads.NewView(w.Visible(1)...))
			if len(diff) != 1 || diff[0] != (ads.Key{Type: kind, Name: changed.Name}) {
				t.Errorf("%s changed %v", step, diff)
			}
		}
	}
}

func TestAShapeIsRefused(t *testing.T) {
	for name, s := range map[string]world.Shape{
		"without proxies":        {Proxies: 0, Services: 100, Dependencies: 10, Endpoints: 1},
		"with too few services":  {Proxies: 10, Services: 10, Dependencies: 10, Endpoints: 1},
		"with too many services": {Proxies: 10, Services: 70_000, Dependencies: 10, Endpoints: 1},
		"without endpoints":      {Proxies: 10, Services: 100, Dependencies: 10},
	} {
		if s.Validate() == nil {
			t.Errorf("one %s is taken", name)
		}
	}
}
