// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	epoch       = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	webKey      = kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: "web"}
)

// watched is a watch of one object, as a test has it.
type watched struct{ view kube.View }

func (w *watched) View(kube.Key) kube.View {
	view := w.view
	view.Pending = slices.Clone(view.Pending)
	return view
}

func (w *watched) RestoreContent(kube.Key, *kube.Object) {}

func (w *watched) Settle(_ kube.Key, seen []kube.Transition) {
	w.view.Pending = w.view.Pending[min(len(seen), len(w.view.Pending)):]
}

func (w *watched) Health(schema.GroupVersionKind) kube.Health { return kube.Health{Synced: true} }

// version is an object of which nothing counts but its version.
func version(rv int) *kube.Object {
	return &kube.Object{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", ResourceVersion: strconv.Itoa(rv)},
		FullHash:   canon.Hash(fmt.Sprint("hash-", rv)),
	}
}

func read(rv int) Reading { return Reading{Object: version(rv), Version: strconv.Itoa(rv), At: epoch} }

func readNone(rv int) Reading { return Reading{Version: strconv.Itoa(rv), At: epoch} }

func to(prev, next *kube.Object) kube.Transition {
	return kube.Transition{Prev: prev, Next: next, Contiguous: true, SeenAt: epoch.Add(-time.Minute)}
}

// rv is the version of an object, - for none.
func rv(o *kube.Object) string {
	if o == nil {
		return "-"
	}
	return o.ResourceVersion
}

// toldOf writes a view as text: what is there now, and the steps to it; those that
// are not contiguous with a question mark.
func toldOf(view kube.View) string {
	text := []string{rv(view.Current) + ":"}
	for _, t := range view.Pending {
		step := rv(t.Prev) + ">" + rv(t.Next)
		if !t.Contiguous {
			step += "?"
		}
		text = append(text, step)
	}
	return strings.Join(text, " ")
}

func TestWhatACheckReadIsAheadOfTheWatch(t *testing.T) {
	tests := map[string]struct {
		watch   kube.View
		reading Reading
		// settled: a reconciliation has dealt with the reading, and then the watch
		// has gone on.
		settled bool
		later   kube.View
		want    string
	}{
		"a newer version":               {watch: kube.View{Current: version(3)}, reading: read(5), want: "5: 3>5?"},
		"an object that is gone":        {watch: kube.View{Current: version(3)}, reading: readNone(9), want: "-: 3>-?"},
		"an object that the watch lost": {reading: read(5), want: "5: ->5?"},
		"after what the watch has too": {
			watch: kube.View{Current: version(4), Pending: []kube.Transition{to(version(3), version(4))}}, reading: read(5), want: "5: 3>4 4>5?",
		},
		"the watch has it": {watch: kube.View{Current: version(5), Pending: []kube.Transition{to(version(3), version(5))}}, reading: read(5), want: "5: 3>5"},
		"the watch has more": {
			watch: kube.View{Current: version(7), Pending: []kube.Transition{to(version(3), version(7))}}, reading: read(5), want: "7: 3>7",
		},
		"both have nothing": {reading: readNone(9), want: "-:"},
		"the watch saw it deleted later": {
			watch: kube.View{Pending: []kube.Transition{to(version(6), nil)}}, reading: read(5), want: "-: 6>-",
		},
		"the watch saw it deleted before it was made again": {
			watch: kube.View{Pending: []kube.Transition{to(version(4), nil)}}, reading: read(5), want: "5: 4>- ->5?",
		},
		"it was made again since": {watch: kube.View{Current: version(11)}, reading: readNone(9), want: "11:"},
		"nothing can be said":     {watch: kube.View{Unknown: fmt.Errorf("forbidden")}, reading: read(5), want: "-:"},

		"once it was judged": {
			watch: kube.View{Current: version(3)}, reading: read(5), settled: true, later: kube.View{Current: version(3)}, want: "5:",
		},
		"what comes late is not judged again": {
			watch: kube.View{Current: version(3)}, reading: read(5), settled: true,
			later: kube.View{Current: version(4), Pending: []kube.Transition{to(version(3), version(4))}}, want: "5:",
		},
		"how it was before its end is not judged again": {
			watch: kube.View{Current: version(3)}, reading: readNone(9), settled: true,
			later: kube.View{Current: version(4), Pending: []kube.Transition{to(version(3), version(4))}}, want: "-:",
		},
		"its end is, for that says what was the last version": {
			watch: kube.View{Current: version(3)}, reading: readNone(9), settled: true,
			later: kube.View{Pending: []kube.Transition{to(version(3), version(4)), to(version(5), nil)}}, want: "-: 5>-",
		},
		"made again after its end, with all that comes late": {
			watch: kube.View{Current: version(3)}, reading: readNone(9), settled: true,
			later: kube.View{Current: version(11), Pending: []kube.Transition{to(version(3), version(4)), to(version(5), nil), to(nil, version(11))}},
			want:  "11: 5>- ->11",
		},
		"what comes after it is judged": {
			watch: kube.View{Current: version(3)}, reading: read(5), settled: true,
			later: kube.View{Current: version(6), Pending: []kube.Transition{to(version(3), version(6))}}, want: "6: 3>6",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			watch := &watched{tc.watch}
			a := NewAhead(watch)
			a.Hold(webKey, tc.reading, tc.watch.Current)
			if tc.settled {
				a.Settle(webKey, a.View(webKey).Pending)
				watch.view = tc.later
			}
			if diff := cmp.Diff(tc.want, toldOf(a.View(webKey))); diff != "" {
				t.Errorf("the view (-want +got):\n%s", diff)
			}
		})
	}
}

// A transition that the watch delivers while another is judged stays to be judged.
func TestSettlingAReadingSettlesNothingElse(t *testing.T) {
	watch := &watched{kube.View{Current: version(3)}}
	a := NewAhead(watch)
	a.Hold(webKey, read(5), version(3))
	seen := a.View(webKey).Pending
	watch.view = kube.View{Current: version(6), Pending: []kube.Transition{to(version(3), version(6))}}
	a.Settle(webKey, seen)
	if got := toldOf(a.View(webKey)); got != "6: 3>6" {
		t.Errorf("the view is %q", got)
	}
}

func TestWhetherItIsOfUseToWaitForTheWatch(t *testing.T) {
	tests := map[string]struct {
		watch   kube.View
		reading Reading
		reached bool
		passed  bool
	}{
		"it is on its way":                        {watch: kube.View{Current: version(3), Progress: "4"}, reading: read(5)},
		"it has come":                             {watch: kube.View{Current: version(5), Progress: "5"}, reading: read(5), reached: true},
		"an event was lost":                       {watch: kube.View{Current: version(3), Progress: "8"}, reading: read(5), passed: true},
		"a deletion was lost":                     {watch: kube.View{Current: version(3), Progress: "10"}, reading: readNone(9), passed: true},
		"a deletion is on its way":                {watch: kube.View{Current: version(3), Progress: "8"}, reading: readNone(9)},
		"how far the watch is is not known":       {watch: kube.View{Current: version(3)}, reading: read(5)},
		"only the status was written":             {watch: kube.View{Current: sameAs(3, 5), Progress: "3"}, reading: read(5), reached: true},
		"it waits for its finalizers":             {watch: kube.View{Current: sameAs(3, 5), Progress: "3"}, reading: deleting(5)},
		"it was made again with the same content": {watch: kube.View{Current: made("v", sameAs(3, 5)), Progress: "3"}, reading: read(5)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reached(tc.watch, tc.reading); got != tc.reached {
				t.Errorf("reached is %t", got)
			}
			if got := passed(tc.watch, tc.reading); got != tc.passed {
				t.Errorf("passed is %t", got)
			}
		})
	}
}

// sameAs is a version with the content of another.
func sameAs(rv, content int) *kube.Object {
	o := version(rv)
	o.FullHash = version(content).FullHash
	return o
}

func made(uid string, o *kube.Object) *kube.Object {
	o.UID = types.UID(uid)
	return o
}

func deleting(rv int) Reading {
	r := read(rv)
	r.Object.DeletionTimestamp = &metav1.Time{Time: epoch}
	return r
}

func TestAWatchThatIsBehindIsNotWaitedForTwice(t *testing.T) {
	a := NewAhead(&watched{})
	if a.behind(deployments, "3") {
		t.Error("a watch of which nothing is known is behind")
	}
	a.Hold(webKey, read(5), version(3))
	for progress, want := range map[string]bool{"3": true, "4": true, "5": false, "9": false, "": false} {
		if got := a.behind(deployments, progress); got != want {
			t.Errorf("at %q it is behind: %t", progress, got)
		}
	}
	if a.behind(schema.GroupVersionKind{Kind: "Other"}, "3") {
		t.Error("another kind is behind")
	}
}

// TestNothingOlderIsJudgedOnTopOfWhatIsNewer plays any order of writes, of what the
// watch delivers, of checks and of reconciliations. What is shown is always the
// newest that anybody has, and no judgment goes back.
func TestNothingOlderIsJudgedOnTopOfWhatIsNewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := []*kube.Object{version(1)} // nil while it is gone; its version is its place + 1
		delivered, checked, judged := 0, 0, 0
		watch := &watched{kube.View{Current: history[0]}}
		a := NewAhead(watch)
		place := func(o *kube.Object) int {
			n, err := strconv.Atoi(o.ResourceVersion)
			if err != nil {
				t.Fatal(err)
			}
			return n - 1
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				n := len(history)
				if history[n-1] != nil && rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
					history = append(history, nil)
				} else {
					history = append(history, version(n+1))
				}
			},
			"deliver": func(t *rapid.T) {
				for range rapid.IntRange(1, 3).Draw(t, "events") {
					if delivered == len(history)-1 {
						return
					}
					prev, next := history[delivered], history[delivered+1]
					delivered++
					if next == nil { // the event carries the deletion's own version
						prev = version(delivered + 1)
					}
					watch.view.Current, watch.view.Progress = next, strconv.Itoa(delivered+1)
					watch.view.Pending = append(watch.view.Pending, to(prev, next))
				}
			},
			"check": func(t *rapid.T) {
				now := len(history) - 1
				reading := Reading{Object: history[now], Version: strconv.Itoa(now + 1), At: epoch}
				if view := a.View(webKey); !reached(view, reading) {
					a.Hold(webKey, reading, view.Current)
					checked = now
				}
			},
			"reconcile": func(t *rapid.T) {
				view := a.View(webKey)
				newest := max(delivered, checked)
				if rv(view.Current) != rv(history[newest]) {
					t.Fatalf("shown is %s, the newest that is known is %s", toldOf(view), rv(history[newest]))
				}
				for _, step := range view.Pending {
					// The reconciler itself skips versions before one that it judged, but not
					// before an end: it does not know the end's version.
					if step.Next != nil && place(step.Next) < judged && history[judged] == nil {
						t.Fatalf("judged is the end at %d, and then: %s", judged+1, toldOf(view))
					}
				}
				a.Settle(webKey, view.Pending)
				if left := a.View(webKey).Pending; len(left) > 0 {
					t.Fatalf("settled, and yet pending: %s", toldOf(a.View(webKey)))
				}
				judged = newest
			},
		})
	})
}
