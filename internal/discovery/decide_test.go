// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestPace(t *testing.T) {
	type change struct {
		after time.Duration
		haste Haste
	}
	ms := time.Millisecond
	flock := []change{}
	for at := time.Duration(0); at <= 2*time.Second; at += 50 * ms {
		flock = append(flock, change{at, Later})
	}
	tests := map[string]struct {
		changes []change
		want    time.Duration
	}{
		"one change is looked at when it stays the only one": {[]change{{0, Later}}, 100 * ms},
		"a second one is waited for":                         {[]change{{0, Later}, {80 * ms, Later}}, 180 * ms},
		"a flock is looked at after a second":                {flock, time.Second},
		"what goes is looked at at once":                     {[]change{{0, Soon}}, 10 * ms},
		"and takes with it what came before":                 {[]change{{0, Later}, {50 * ms, Soon}}, 60 * ms},
		"what was decided waits for nothing":                 {[]change{{0, AtOnce}}, 0},
		"not even behind what goes":                          {[]change{{0, Soon}, {5 * ms, AtOnce}}, 5 * ms},
		"and does not wait for what comes after":             {[]change{{0, Soon}, {9 * ms, Soon}}, 10 * ms},
	}
	begin := time.Unix(1_800_000_000, 0)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var p Pace
			if !p.Due().IsZero() {
				t.Error("something is due before anything has changed")
			}
			for _, c := range tc.changes {
				p = p.Changed(begin.Add(c.after), c.haste)
			}
			if got := p.Due().Sub(begin); got != tc.want {
				t.Errorf("it is due after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestDoubt(t *testing.T) {
	type look struct {
		after     time.Duration
		resources int
		digest    uint64
	}
	const s = time.Second
	churn := []look{{0, 100, 1}}
	for i := range 11 {
		churn = append(churn, look{s + time.Duration(i)*s/2, 49, uint64(i + 2)})
	}
	tests := map[string]struct {
		looks []look
		want  string
	}{
		"what grows is believed":                       {[]look{{0, 0, 1}, {0, 100, 2}, {0, 200, 3}}, "yes yes yes"},
		"what loses less than half is believed":        {[]look{{0, 100, 1}, {0, 50, 2}}, "yes yes"},
		"what loses more is believed at a second look": {[]look{{0, 100, 1}, {0, 49, 2}, {s, 49, 2}}, "yes no yes"},
		"but not at one that something else hastened":  {[]look{{0, 100, 1}, {0, 49, 2}, {s / 100, 49, 2}, {s, 49, 2}}, "yes no no yes"},
		"a second look that differs is doubted again":  {[]look{{0, 100, 1}, {0, 49, 2}, {s, 48, 3}, {2 * s, 48, 3}}, "yes no no yes"},
		"what comes back meanwhile is believed":        {[]look{{0, 100, 1}, {0, 10, 2}, {s, 100, 1}, {2 * s, 10, 2}}, "yes no yes no"},
		"of a few half may go":                         {[]look{{0, 39, 1}, {0, 1, 2}}, "yes yes"},
		"nothing at all is doubted too":                {[]look{{0, 40, 1}, {0, 0, 0}, {s, 0, 0}}, "yes no yes"},
		// Or whoever changes something twice a second would keep all from everybody.
		"where no two looks are the same the loss is believed when it lasts": {churn, "yes no no no no no no no no no no yes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var d Doubt
			var got []string
			for _, l := range tc.looks {
				var believed bool
				d, believed = d.Believes(l.resources, l.digest, begin.Add(l.after))
				got = append(got, map[bool]string{true: "yes", false: "no"}[believed])
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("believed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScope(t *testing.T) {
	tests := map[string]struct {
		annotation   string
		needs, wrong string
	}{
		"without one there is the namespace":       {"", "shop/web", ""},
		"a service of another namespace":           {"bank/pay", "shop/web bank/pay", ""},
		"all of another namespace":                 {"bank/*", "shop/web bank/pay bank/card", ""},
		"spaces and doubles do not matter":         {" bank/pay , bank/pay,", "shop/web bank/pay", ""},
		"what is no name is left out":              {"pay,bank/,/pay,a/b/c,bank/pay", "shop/web bank/pay", "pay bank/ /pay a/b/c"},
		"a star is no namespace":                   {"*/pay", "shop/web", ""},
		"what the namespace has anyway is no more": {"shop/web", "shop/web", ""},
	}
	services := []types.NamespacedName{{Namespace: "shop", Name: "web"}, {Namespace: "bank", Name: "pay"}, {Namespace: "bank", Name: "card"}}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, wrong := ScopeOf("shop", tc.annotation)
			var needs []string
			for _, service := range services {
				if s.needs(service) {
					needs = append(needs, service.String())
				}
			}
			if diff := cmp.Diff([]string{tc.needs, tc.wrong}, []string{strings.Join(needs, " "), strings.Join(wrong, " ")}); diff != "" {
				t.Errorf("needed and wrong (-want +got):\n%s", diff)
			}
		})
	}
	one, _ := ScopeOf("shop", "bank/pay, bank/card,shop/web")
	other, _ := ScopeOf("shop", "bank/card,bank/pay")
	if one != other {
		t.Errorf("%v and %v are the same dependencies", one, other)
	}
	if _, wrong := ScopeOf("shop", strings.Repeat("bank/pay,", maxUpstreams+1)); len(wrong) != 1 {
		t.Errorf("%d of too many are left out, want 1", len(wrong))
	}
}

// What is wrong is logged each time that a stream begins, and streams begin as often
// as whoever wrote the annotation likes.
func TestOfALongAnnotationLittleIsTold(t *testing.T) {
	for name, annotation := range map[string]string{
		"many mistakes":    strings.Repeat("pay,", 50_000),
		"a long one":       strings.Repeat("x", 200_000),
		"many more names":  strings.Repeat("bank/pay,", 20_000),
		"long local ports": strings.Repeat("8001=x.y,", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, wrong := ScopeOf("shop", annotation)
			_, ports := ExplicitScope("shop", annotation)
			for _, told := range [][]string{wrong, ports} {
				if n := len(strings.Join(told, "")); n == 0 || n > 2_000 {
					t.Errorf("%d bytes are told", n)
				}
			}
		})
	}
}
