// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/drift"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// object is a Deployment in a state, with a drift that began so many seconds after noon.
func object(name string, state v1alpha1.DriftState, level v1alpha1.SeverityLevel, seconds int) drift.Object {
	o := drift.Object{UID: "uid-" + name, State: state, Severity: level, Target: notify.Target{Kind: "Deployment", Namespace: "shop", Name: name}}
	if level != "" {
		o.Since = noon.Add(time.Duration(seconds) * time.Second)
	}
	return o
}

func knownOf(objects ...drift.Object) drift.Known {
	known := drift.Known{}
	for _, o := range objects {
		known[o.UID] = o
	}
	return known
}

func TestCompare(t *testing.T) {
	high := object("web", v1alpha1.StateDrifted, v1alpha1.SeverityHigh, 0)
	inSync := object("web", v1alpha1.StateInSync, "", 0)
	cases := map[string]struct {
		known   drift.Known
		objects []drift.Object
		news    drift.News
		next    drift.Known
	}{
		"an object in sync is no news":             {objects: []drift.Object{inSync}, next: drift.Known{}},
		"a drift is told":                          {objects: []drift.Object{high}, news: drift.News{Detected: []drift.Object{high}}, next: knownOf(high)},
		"a missing object is a drift":              {objects: []drift.Object{object("web", v1alpha1.StateMissing, v1alpha1.SeverityLow, 0)}, news: drift.News{Detected: []drift.Object{object("web", v1alpha1.StateMissing, v1alpha1.SeverityLow, 0)}}, next: knownOf(object("web", v1alpha1.StateMissing, v1alpha1.SeverityLow, 0))},
		"a drift that people know is no news":      {known: knownOf(high), objects: []drift.Object{high}, next: knownOf(high)},
		"a drift that began anew is told":          {known: knownOf(high), objects: []drift.Object{object("web", v1alpha1.StateDrifted, v1alpha1.SeverityHigh, 60)}, news: drift.News{Detected: []drift.Object{object("web", v1alpha1.StateDrifted, v1alpha1.SeverityHigh, 60)}}, next: knownOf(object("web", v1alpha1.StateDrifted, v1alpha1.SeverityHigh, 60))},
		"a higher severity is told":                {known: knownOf(object("web", v1alpha1.StateDrifted, v1alpha1.SeverityLow, 0)), objects: []drift.Object{high}, news: drift.News{Detected: []drift.Object{high}}, next: knownOf(high)},
		"a lower severity is not, and is not kept": {known: knownOf(high), objects: []drift.Object{object("web", v1alpha1.StateDrifted, v1alpha1.SeverityLow, 0)}, next: knownOf(high)},
		"the end of a known drift is told":         {known: knownOf(high), objects: []drift.Object{inSync}, news: drift.News{Resolved: []drift.Object{high}}, next: drift.Known{}},
		"a trusted deletion ends a drift":          {known: knownOf(high), objects: []drift.Object{object("web", v1alpha1.StateRetired, "", 0)}, news: drift.News{Resolved: []drift.Object{high}}, next: drift.Known{}},
		"an unknown state changes nothing":         {known: knownOf(high), objects: []drift.Object{object("web", v1alpha1.StateUnknown, v1alpha1.SeverityHigh, 0)}, next: knownOf(high)},
		"a state of tomorrow changes nothing":      {known: knownOf(high), objects: []drift.Object{object("web", "Elsewhere", "", 0)}, next: knownOf(high)},
		"an unknown state alone is no news":        {objects: []drift.Object{object("web", v1alpha1.StateUnknown, v1alpha1.SeverityHigh, 0)}, next: drift.Known{}},
		"no guard selects the object any more":     {known: knownOf(high), objects: []drift.Object{object("web", v1alpha1.StateNotGuarded, "", 0)}, next: drift.Known{}},
		"the Baseline is gone":                     {known: knownOf(high), next: drift.Known{}},
		"the worst comes first": {
			objects: []drift.Object{object("cart", v1alpha1.StateDrifted, v1alpha1.SeverityLow, 0), object("api", v1alpha1.StateDrifted, v1alpha1.SeverityHigh, 0), high},
			news:    drift.News{Detected: []drift.Object{object("api", v1alpha1.StateDrifted, v1alpha1.SeverityHigh, 0), high, object("cart", v1alpha1.StateDrifted, v1alpha1.SeverityLow, 0)}},
			next:    knownOf(object("cart", v1alpha1.StateDrifted, v1alpha1.SeverityLow, 0), object("api", v1alpha1.StateDrifted, v1alpha1.SeverityHigh, 0), high),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			news, next := drift.Compare(tc.known, tc.objects)
			if diff := cmp.Diff(tc.news, news); diff != "" {
				t.Errorf("the news (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.next, next); diff != "" {
				t.Errorf("what people know (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever happens, people hear of the end of each drift that they heard of, of no end of another
// drift, and of nothing twice.
func TestEachDriftIsToldOnceAndHasOneEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known, open := drift.Known{}, map[string]bool{}
		states := []v1alpha1.DriftState{v1alpha1.StateInSync, v1alpha1.StateDrifted, v1alpha1.StateMissing, v1alpha1.StateUnknown, v1alpha1.StateRetired}
		for step := range rapid.IntRange(1, 20).Draw(t, "steps") {
			var objects []drift.Object
			for i := range 3 {
				state := rapid.SampledFrom(states).Draw(t, "state")
				level := v1alpha1.SeverityLevel("")
				if state == v1alpha1.StateDrifted || state == v1alpha1.StateMissing {
					level = rapid.SampledFrom([]v1alpha1.SeverityLevel{v1alpha1.SeverityLow, v1alpha1.SeverityCritical}).Draw(t, "level")
				}
				objects = append(objects, object(fmt.Sprint(i), state, level, 0))
			}
			var news drift.News
			news, known = drift.Compare(known, objects)
			if again, _ := drift.Compare(known, objects); len(again.Detected)+len(again.Resolved) > 0 {
				t.Fatalf("step %d is told twice: %+v", step, again)
			}
			for _, o := range news.Resolved {
				if !open[o.UID] {
					t.Fatalf("step %d: the end of a drift that was not told: %+v", step, o)
				}
				delete(open, o.UID)
			}
			for _, o := range news.Detected {
				open[o.UID] = true
			}
			for _, o := range objects {
				isOpen := open[o.UID]
				switch o.State {
				case v1alpha1.StateDrifted, v1alpha1.StateMissing:
					if !isOpen {
						t.Fatalf("step %d: %+v is not told", step, o)
					}
				case v1alpha1.StateInSync, v1alpha1.StateRetired:
					if isOpen {
						t.Fatalf("step %d: the end of %+v is not told", step, o)
					}
				case v1alpha1.StateUnknown, v1alpha1.StateNotGuarded:
				}
			}
		}
	})
}

func TestKnownAtStart(t *testing.T) {
	old, fresh := object("old", v1alpha1.StateDrifted, v1alpha1.SeverityLow, -600), object("fresh", v1alpha1.StateMissing, v1alpha1.SeverityLow, 0)
	got := drift.KnownAtStart([]drift.Object{old, fresh, object("web", v1alpha1.StateInSync, "", 0)}, noon)
	if diff := cmp.Diff(knownOf(old), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBuildEvent(t *testing.T) {
	guard := notify.GuardRef{Kind: "SpecGuard", Namespace: "shop", Name: "workloads", UID: "g", ObjectNamespace: "shop"}
	var objects []drift.Object
	for i := range 12 {
		objects = append(objects, object(fmt.Sprintf("web-%02d", i), v1alpha1.StateDrifted, v1alpha1.SeverityLow, i))
	}
	objects[3].Severity = v1alpha1.SeverityHigh
	e := drift.BuildEvent(notify.DriftDetected, guard, objects, noon)
	if e.Severity != v1alpha1.SeverityHigh || e.Counts.Total != 12 || len(e.Targets) != notify.MaxTargets || e.Targets[0].Name != "web-00" {
		t.Errorf("the event is %+v", e)
	}
	reversed := append([]drift.Object{}, objects...)
	reversed[0], reversed[11] = reversed[11], reversed[0]
	if drift.BuildEvent(notify.DriftDetected, guard, reversed, noon.Add(time.Hour)).ID() != e.ID() {
		t.Error("the same news has another id")
	}
	for name, other := range map[string]notify.Event{
		"fewer objects":     drift.BuildEvent(notify.DriftDetected, guard, objects[1:], noon),
		"their end":         drift.BuildEvent(notify.DriftResolved, guard, objects, noon),
		"another namespace": drift.BuildEvent(notify.DriftDetected, notify.GuardRef{UID: "g", ObjectNamespace: "pay"}, objects, noon),
		"another guard":     drift.BuildEvent(notify.DriftDetected, notify.GuardRef{UID: "h", ObjectNamespace: "shop"}, objects, noon),
	} {
		if other.ID() == e.ID() {
			t.Errorf("%s has the same id", name)
		}
	}
}

func TestSilences(t *testing.T) {
	silence := func(minutes int, namespaces ...string) v1alpha1.NotificationSilence {
		return v1alpha1.NotificationSilence{Namespaces: namespaces, Reason: "work", EndTime: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))}
	}
	cases := map[string]struct {
		silences []v1alpha1.NotificationSilence
		minutes  int // until the end of the silence; 0 without one
	}{
		"none":                               {},
		"of all namespaces":                  {[]v1alpha1.NotificationSilence{silence(5)}, 5},
		"of this namespace":                  {[]v1alpha1.NotificationSilence{silence(5, "pay", "shop")}, 5},
		"of another namespace":               {[]v1alpha1.NotificationSilence{silence(5, "pay")}, 0},
		"one that is over":                   {[]v1alpha1.NotificationSilence{silence(-5)}, 0},
		"one that ends now":                  {[]v1alpha1.NotificationSilence{silence(0)}, 0},
		"the longest of several":             {[]v1alpha1.NotificationSilence{silence(5), silence(9, "shop"), silence(7)}, 9},
		"a longer one for another namespace": {[]v1alpha1.NotificationSilence{silence(5), silence(9, "pay")}, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := time.Time{}
			if tc.minutes > 0 {
				want = noon.Add(time.Duration(tc.minutes) * time.Minute)
			}
			if got := drift.SilentUntil(tc.silences, "shop", noon); !got.Equal(want) {
				t.Errorf("silent until %s, want %s", got, want)
			}
		})
	}
	ended := []v1alpha1.NotificationSilence{silence(-5)}
	if !drift.HasSilence(ended, "shop", noon.Add(-10*time.Minute)) || drift.HasSilence(ended, "shop", noon) {
		t.Error("a silence that has ended is not seen where it was in force")
	}
}
