// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// reversalsAt makes reversals, oldest first, each of "path by" at one or more places
// parted by commas; "order:" marks the order of a list.
func reversalsAt(t *testing.T, texts ...string) []Reversal {
	t.Helper()
	var reversals []Reversal
	for i, text := range texts {
		f := Reversal{At: testNow.Add(time.Duration(i) * time.Minute)}
		for part := range strings.SplitSeq(text, ",") {
			where, by, _ := strings.Cut(part, " ")
			bare, order := strings.CutPrefix(where, "order:")
			path, err := canon.ParsePath(bare)
			if err != nil {
				t.Fatal(err)
			}
			f.Places = append(f.Places, ReversalPlace{Path: path, Order: order, By: by})
		}
		reversals = append(reversals, f)
	}
	return reversals
}

func TestOnlyReversalsAtACommonPlaceAreAFight(t *testing.T) {
	tests := map[string]struct {
		reversals []string
		want      []string // contested places
	}{
		"three times the same path": {
			reversals: []string{"/spec/paused bob", "/spec/paused ci", "/spec/paused bob"},
			want:      []string{"/spec/paused"},
		},
		"three different paths": {
			reversals: []string{"/spec/paused bob", "/spec/replicas ci", "/spec/template bob"},
		},
		"twice one path and once another": {
			reversals: []string{"/spec/paused bob", "/spec/paused ci", "/spec/replicas bob"},
		},
		"a part of what was changed as a whole": {
			reversals: []string{"/spec/template bob", "/spec/template ci", "/spec/template/spec/hostNetwork bob"},
			want:      []string{"/spec/template/spec/hostNetwork"},
		},
		"two parts that only the whole connects": {
			reversals: []string{"/spec/template/metadata bob", "/spec/template ci", "/spec/template/spec bob"},
		},
		"one of several places at once": {
			reversals: []string{"/spec/paused bob,/spec/replicas bob", "/spec/paused ci", "/spec/paused bob,/spec/template bob"},
			want:      []string{"/spec/paused"},
		},
		"the same place named twice in one reversal": {
			reversals: []string{"/spec/paused bob,/spec/paused ci", "/spec/paused bob"},
		},
		"the object as a whole holds none of its fields": {
			reversals: []string{" alice", " ci", "/spec/paused bob"},
		},
		"the object that is deleted again and again": {
			reversals: []string{" alice", " ci", " alice"},
			want:      []string{""},
		},
		"the order of a list is not its elements": {
			reversals: []string{"order:/spec/list bob", "order:/spec/list ci", "/spec/list/0 bob"},
		},
		"the order of a list is a place": {
			reversals: []string{"order:/spec/list bob", "order:/spec/list ci", "order:/spec/list bob"},
			want:      []string{"/spec/list"},
		},
		"nothing": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, place := range foughtOver(reversalsAt(t, tt.reversals...)) {
				got = append(got, place.Path.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("contested places (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReversalsWhosePlacesAreForgottenBeginNoFight(t *testing.T) {
	reversals := []Reversal{{At: testNow}, {At: testNow}, {At: testNow}, {At: testNow}}
	if got := foughtOver(reversals); len(got) > 0 {
		t.Errorf("contested: %v", got)
	}
}

// fightingWrite is what the naive twin remembers of a write.
type fightingWrite struct {
	user string
	path canon.Path
}

// fightingUser writes to one of a few places; the autoscaler keeps to its own.
func fightingUser(rt *rapid.T, w *world) write {
	by := rapid.SampledFrom([]string{"ci", "alice", "bob", "hpa"}).Draw(rt, "user")
	wr := write{user: user(by), manager: "pipeline", applies: true}
	edit := rapid.SampledFrom([]string{
		"/spec/paused = true", "/spec/paused = false", "/spec/replicas = 1", "/spec/replicas = 3",
		`/spec/template/metadata/labels/app = "web"`, `/spec/template/metadata/labels/app = "shop"`,
	}).Draw(rt, "edit")
	if by == "hpa" {
		wr.sub = "scale"
		edit = fmt.Sprintf("/spec/replicas = %d", rapid.IntRange(1, 4).Draw(rt, "replicas"))
	}
	wr.changes = parseChanges(w.t, w.live.Body, w.gvk, edit)
	return wr
}

// Whoever is named changed a place that was changed at least three times; an
// autoscaler that keeps to its own field never is.
func TestContentionNamesOnlyWhoChangedWhatIsFoughtOver(t *testing.T) {
	fights := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := propertyWorld(rt, t)
		var writes []fightingWrite
		for range rapid.IntRange(3, 20).Draw(rt, "writes") {
			wr, before := fightingUser(rt, w), w.rv
			if w.update(wr); w.rv == before {
				continue // it changed nothing
			}
			writes = append(writes, fightingWrite{user: wr.user, path: wr.changes[0].Path})
			w.observe(false, false)
			if w.state.Contention == nil {
				continue
			}
			fights++
			for _, name := range w.state.Contention.With {
				if name == user("hpa") || !fought(writes, name) {
					rt.Fatalf("%s is named, after %v", name, writes)
				}
			}
		}
	})
	if fights == 0 {
		t.Error("no sequence of writes was a fight: this test shows nothing")
	}
}

// fought tells whether somebody changed a place that was changed three times.
func fought(writes []fightingWrite, name string) bool {
	return slices.ContainsFunc(writes, func(own fightingWrite) bool {
		count := 0
		for _, other := range writes {
			if other.path.Overlaps(own.path) {
				count++
			}
		}
		return own.user == name && count >= fightReversals
	})
}
