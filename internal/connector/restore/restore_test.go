// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var began = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestTheFourthRestoreWithinTheWindowIsHeld(t *testing.T) {
	var restored []time.Time
	var err error
	for i := range Max {
		if restored, err = CountRestore(restored, "route", "", began.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatalf("restore %d: %v", i+1, err)
		}
	}
	var held *HeldError
	if _, err = CountRestore(restored, "route", "", began.Add(time.Minute)); !errors.As(err, &held) || !held.Until.Equal(began.Add(Window)) {
		t.Fatalf("got %v, want the weights held until %s", err, began.Add(Window))
	}
	if restored, err = CountRestore(restored, "route", "", held.Until); err != nil {
		t.Errorf("at the end of the hold: %v", err)
	}
	want := []time.Time{began.Add(time.Second), began.Add(2 * time.Second), began.Add(Window)}
	if d := cmp.Diff(want, restored); d != "" {
		t.Errorf("the restores that count (-want +got):\n%s", d)
	}
}

func TestNoWindowHasMoreRestoresThanTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var restored, done []time.Time
		now := began
		for range rapid.IntRange(1, 40).Draw(t, "attempts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "pause")) * time.Second)
			var err error
			if restored, err = CountRestore(restored, "route", "", now); err == nil {
				done = append(done, now)
			}
			inWindow := 0
			for _, at := range done {
				if now.Sub(at) < Window {
					inWindow++
				}
			}
			if inWindow > Max || err != nil && inWindow < Max {
				t.Fatalf("%d restores are in the window, and the next one gets %v", inWindow, err)
			}
		}
	})
}

func TestAHoldNamesTheWriterWhereTheAPITellsIt(t *testing.T) {
	until := began.Add(time.Minute)
	for name, tc := range map[string]struct {
		held HeldError
		want string
	}{
		"a field manager": {
			HeldError{"HTTPRoute shop/web", "argocd-controller", until},
			`RouteChangedByAnother: field manager "argocd-controller" changed the weights of HTTPRoute shop/web 4 times in 10m0s; they are left alone until 2030-01-01T12:01:00Z. Have that writer ignore the weights`,
		},
		"an API without names": {
			HeldError{"rule app/web/1/2/3", "", until},
			"RouteChangedByAnother: another writer changed the weights of rule app/web/1/2/3 4 times in 10m0s; they are left alone until 2030-01-01T12:01:00Z. Have that writer ignore the weights",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, tc.held.Error()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
