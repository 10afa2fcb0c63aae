// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// fightMemory is all that the fight detector remembers, in a form that compares.
type fightMemory struct {
	Reversals  []Reversal
	Contested  []ReversalPlace
	Contention *v1alpha1.Contention
}

func memoryOf(st State) fightMemory {
	m := fightMemory{Reversals: st.Reversals, Contested: st.contested, Contention: st.Contention.DeepCopy()}
	if m.Contention != nil {
		m.Contention.Places = nil // contested has them
	}
	for i := range m.Contested { // whose they are is with the reversals
		m.Contested[i].By, m.Contested[i].Class = "", ""
	}
	return m
}

// Whatever the detector knows of a fight stands in the Baseline, down to the
// second: a restart changes nothing about what it finds next.
func TestWhatIsKnownOfAFightStandsInTheBaseline(t *testing.T) {
	fights := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := propertyWorld(rt, t)
		for range rapid.IntRange(3, 24).Draw(rt, "writes") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 200).Draw(rt, "seconds")) * time.Second)
			w.update(fightingUser(rt, w))
			w.observe(false, false)
		}
		if w.state.Contention != nil {
			fights++
		}
		for _, f := range w.state.Reversals {
			for i, place := range f.Places {
				if slices.ContainsFunc(f.Places[:i], place.samePlace) {
					rt.Fatalf("a reversal names %q twice: %v", place.Path, f.Places)
				}
			}
		}
		want := memoryOf(w.state.clone())
		w.restart()
		opts := cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b ReversalPlace) bool {
			return a.samePlace(b) && a.By == b.By && a.Class == b.Class
		})}
		if d := cmp.Diff(want, memoryOf(w.state.clone()), opts); d != "" {
			rt.Fatalf("after a restart (-want +got):\n%s", d)
		}
	})
	if fights == 0 {
		t.Error("no sequence of writes was a fight: this test shows nothing")
	}
}

func TestAStatusOfAnotherHandIsReadAsFarAsItMakesSense(t *testing.T) {
	at := metav1.NewTime(testNow)
	b := &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{
		Reversals: []v1alpha1.Reversal{{ObservedTime: at, Places: []v1alpha1.ReversalPlace{
			{Path: "no pointer", Aspect: v1alpha1.AspectValue, By: "bob"},
			{Path: "/spec/list", Aspect: v1alpha1.AspectOrder, By: "alice", Class: v1alpha1.ActorUntrusted},
			{Aspect: v1alpha1.AspectValue},
		}}},
		Contention: &v1alpha1.Contention{StartTime: at, Places: []v1alpha1.Place{{Path: "]"}, {Path: "/spec/paused", Aspect: v1alpha1.AspectValue}}},
	}}
	st := FromBaseline(b, nil)
	var got []string
	for _, p := range st.Reversals[0].Places {
		got = append(got, fmt.Sprintf("%q order=%t by=%s", p.Path, p.Order, p.By))
	}
	want := []string{`"/spec/list" order=true by=alice`, `"" order=false by=`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("places of the reversal (-want +got):\n%s", d)
	}
	if len(st.contested) != 1 || st.contested[0].Path.String() != "/spec/paused" {
		t.Errorf("contested places: %v", st.contested)
	}
}

// The widest Baseline that the detector can make stays far from the API server's
// limit of a request, 1.5 MiB of etcd.
func TestReversalsAreBounded(t *testing.T) {
	var st State
	path, err := canon.ParsePath("/spec/" + strings.Repeat("x", 1000))
	if err != nil {
		t.Fatal(err)
	}
	place := ReversalPlace{Path: path, By: strings.Repeat("u", maxIdentityBytes), Class: v1alpha1.ActorUntrusted}
	f := Reversal{At: testNow}
	for range 100 {
		f.Places = append(f.Places, place)
	}
	for range 100 {
		st.Reversals, st.contested = append(st.Reversals, f), append(st.contested, place)
	}
	st.Contention = &v1alpha1.Contention{}
	var status v1alpha1.BaselineStatus
	st.WriteStatus(&status)
	if len(status.Reversals) != 16 || len(status.Reversals[0].Places) != 16 || len(status.Contention.Places) != 16 {
		t.Errorf("%d reversals of %d places, %d places of the fight", len(status.Reversals), len(status.Reversals[0].Places), len(status.Contention.Places))
	}
	raw, err := json.Marshal(status)
	if err != nil || len(raw) > 600<<10 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}
