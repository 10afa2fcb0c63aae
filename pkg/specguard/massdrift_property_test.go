// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// naiveFreeze decides in the plainest way: from single objects, one scope after
// the other, each namespace left out in turn.
func naiveFreeze(before Freeze, p Population, now time.Time) Freeze {
	next := Freeze{Namespaces: map[string]time.Time{}, Causes: map[Cause]time.Time{}}
	frozen := func(since time.Time, much func(percent, objects int, from time.Time) bool) time.Time {
		if since.IsZero() {
			if much(30, 3, now.Add(-10*time.Minute)) {
				return now
			}
			return since
		}
		if much(15, 2, since.Add(-10*time.Minute)) {
			return since
		}
		return time.Time{}
	}
	for namespace, objects := range p.Objects {
		since := before.Namespaces[namespace]
		if since.IsZero() {
			since = before.Everything
		}
		if at := frozen(since, func(percent, atLeast int, from time.Time) bool {
			n := 0
			for _, d := range p.Drifting {
				if d.Namespace == namespace && !d.FirstSeen.Before(from) {
					n++
				}
			}
			return n >= atLeast && n*100 >= percent*objects
		}); !at.IsZero() {
			next.Namespaces[namespace] = at
		}
	}
	for _, cause := range causesIn(p) {
		since := before.Causes[cause]
		if since.IsZero() {
			since = before.Everything
		}
		if at := frozen(since, func(percent, atLeast int, from time.Time) bool {
			for without := range p.Objects {
				n, objects := 0, 0
				for namespace, k := range p.Objects {
					if namespace != without {
						objects += k
					}
				}
				for _, d := range p.Drifting {
					if seen, has := d.Causes[cause]; has && d.Namespace != without && !seen.Before(from) {
						n++
					}
				}
				if n < atLeast || n*100 < percent*objects {
					return false
				}
			}
			return true
		}); !at.IsZero() {
			next.Causes[cause] = at
		}
	}
	return next
}

func causesIn(p Population) []Cause {
	all := map[Cause]bool{}
	for _, d := range p.Drifting {
		for cause := range d.Causes {
			all[cause] = true
		}
	}
	return slices.Collect(maps.Keys(all))
}

func randomPopulation(t *rapid.T) (p Population) {
	ages := []time.Duration{0, 9 * time.Minute, 10 * time.Minute, 11 * time.Minute, 40 * time.Minute, 2 * time.Hour}
	p.Objects = map[string]int{}
	for i := range rapid.IntRange(1, 4).Draw(t, "namespaces") {
		namespace := fmt.Sprint("n", i)
		p.Objects[namespace] = rapid.IntRange(1, 12).Draw(t, "objects")
		for range rapid.IntRange(0, p.Objects[namespace]).Draw(t, "drifted") {
			age := func() time.Time { return testNow.Add(-rapid.SampledFrom(ages).Draw(t, "age")) }
			d := Drifting{Namespace: namespace, FirstSeen: age(), Causes: Causes{}}
			for range rapid.IntRange(0, 2).Draw(t, "causes") {
				path, user := rapid.SampledFrom([]string{"/a", "/b"}).Draw(t, "path"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "user")
				d.Causes[Cause{Path: path, User: user}] = age()
			}
			p.Drifting = append(p.Drifting, d)
		}
	}
	return p
}

func TestTheFreezeIsWhatItsNaiveTwinSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPopulation(t)
		before := Freeze{Namespaces: map[string]time.Time{}, Causes: map[Cause]time.Time{}}
		since := func() time.Time {
			return testNow.Add(-time.Duration(rapid.IntRange(0, 90).Draw(t, "since")) * time.Minute)
		}
		for namespace := range p.Objects {
			if rapid.Bool().Draw(t, "frozen") {
				before.Namespaces[namespace] = since()
			}
		}
		for _, cause := range causesIn(p) {
			if rapid.Bool().Draw(t, "common") {
				before.Causes[cause] = since()
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "everything") == 0 {
			before.Everything = since()
		}
		want, got := naiveFreeze(before, p, testNow), NextFreeze(before, p, testNow)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-naive +got):\n%s", diff)
		}
	})
}

// Whatever happens in one namespace, the rest is frozen or not as without it.
func TestNoNamespaceBeginsAFreezeForTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPopulation(t)
		attack := Causes{{Path: "/a", User: "x"}: testNow}
		quiet := Population{Objects: maps.Clone(p.Objects)}
		for _, d := range p.Drifting {
			if d.Namespace != "n0" {
				quiet.Drifting = append(quiet.Drifting, d)
			}
		}
		delete(quiet.Objects, "n0")
		loud := NextFreeze(Freeze{}, p, testNow)
		for namespace := range quiet.Objects {
			if loud.HoldsObject(namespace, attack) && !wouldFreeze(quiet, namespace, attack) {
				t.Fatalf("n0 freezes %s: %+v", namespace, loud)
			}
		}
	})
}

// wouldFreeze tells whether so much of a population drifts as one cause needs,
// no namespace left out, or of the namespace alone.
func wouldFreeze(p Population, namespace string, causes Causes) bool {
	objects, drifted := 0, 0
	for _, n := range p.Objects {
		objects += n
	}
	for _, d := range p.Drifting {
		for cause := range causes {
			if seen, has := d.Causes[cause]; has && testNow.Sub(seen) <= MassDriftWindow {
				drifted++
			}
		}
	}
	return beginShare.reached(objects, drifted) || NextFreeze(Freeze{}, p, testNow).HoldsObject(namespace, nil)
}
