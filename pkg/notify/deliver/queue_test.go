// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

func TestQueue_DropsTheOldestThatAsksNobodyToAct(t *testing.T) {
	const (
		created, done = notify.PlanCreated, notify.PlanCompleted
		failed        = notify.PlanFailed
		escalated     = notify.PlanEscalated
	)
	cases := map[string]struct {
		waiting     []notify.EventType // ids 0, 1, 2
		next        notify.EventType   // id 3
		wantDropped string
		wantLeft    []string
	}{
		"the oldest goes":                              {[]notify.EventType{created, created, done}, done, "0", []string{"1", "2", "3"}},
		"an older urgent one stays":                    {[]notify.EventType{failed, created, done}, created, "1", []string{"0", "2", "3"}},
		"one that is not urgent makes room for urgent": {[]notify.EventType{failed, escalated, done}, failed, "2", []string{"0", "1", "3"}},
		"among urgent ones the oldest goes":            {[]notify.EventType{failed, escalated, failed}, escalated, "0", []string{"1", "2", "3"}},
		"urgent ones make no room for the others":      {[]notify.EventType{failed, escalated, failed}, created, "3", []string{"0", "1", "2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := newQueue(3)
			for i, kind := range tc.waiting {
				if isNew, dropped := q.push(&job{id: fmt.Sprint(i), event: notify.Event{Type: kind}}); !isNew || dropped != nil {
					t.Fatalf("there was no room for %d", i)
				}
			}
			isNew, dropped := q.push(&job{id: "3", event: notify.Event{Type: tc.next}})
			if !isNew || dropped == nil || dropped.id != tc.wantDropped {
				t.Fatalf("new %t, dropped %+v, want %s", isNew, dropped, tc.wantDropped)
			}
			if diff := cmp.Diff(tc.wantLeft, ids(q.waiting)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if isNew, _ := q.push(&job{id: tc.wantDropped, event: notify.Event{Type: created}}); !isNew {
				t.Error("what was dropped counts as told")
			}
		})
	}
}

func ids(jobs []*job) []string {
	out := []string{}
	for _, j := range jobs {
		out = append(out, j.id)
	}
	return out
}

// twin is the queue by its description, without its bookkeeping: lists that are
// searched.
type twin struct {
	waiting  []*job
	underWay []string
	told     []string
}

func (w *twin) knows(id string) bool {
	return slices.Contains(ids(w.waiting), id) || slices.Contains(w.underWay, id) || slices.Contains(w.told, id)
}

func (w *twin) push(j *job, depth int) (bool, string) {
	if w.knows(j.id) {
		return false, ""
	}
	all := append(slices.Clone(w.waiting), j)
	if len(all) <= depth {
		w.waiting = all
		return true, ""
	}
	victim := slices.IndexFunc(all, func(j *job) bool { return !j.event.Type.Urgent() })
	victim = max(victim, 0)
	dropped := all[victim].id
	w.waiting = slices.Delete(all, victim, victim+1)
	return true, dropped
}

func TestQueue_LikeItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 4).Draw(t, "depth")
		q, w := newQueue(depth), &twin{}
		var current *job
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"push", "push", "push", "pop", "settle"}).Draw(t, "step") {
			case "push":
				j := &job{
					id:    fmt.Sprint(rapid.IntRange(0, 7).Draw(t, "id")),
					event: notify.Event{Type: rapid.SampledFrom([]notify.EventType{notify.PlanCreated, notify.PlanFailed}).Draw(t, "type")},
				}
				isNew, dropped := q.push(j)
				got := ""
				if dropped != nil {
					got = dropped.id
				}
				if wantNew, want := w.push(j, depth); isNew != wantNew || got != want {
					t.Fatalf("push %s: new %t dropped %q, want %t %q", j.id, isNew, got, wantNew, want)
				}
			case "pop":
				if current != nil {
					continue
				}
				current = q.pop()
				if (current == nil) != (len(w.waiting) == 0) || current != nil && current != w.waiting[0] {
					t.Fatalf("pop: got %+v of %v", current, ids(w.waiting))
				}
				if current != nil {
					w.waiting, w.underWay = w.waiting[1:], []string{current.id}
				}
			case "settle":
				if current == nil {
					continue
				}
				told := rapid.Bool().Draw(t, "told")
				q.settle(current.id, told)
				if w.underWay = nil; told {
					w.told = append(w.told, current.id)
				}
				current = nil
			}
			if diff := cmp.Diff(ids(w.waiting), ids(q.waiting)); diff != "" {
				t.Fatalf("waiting (-want +got):\n%s", diff)
			}
		}
		left := ids(w.waiting)
		if diff := cmp.Diff(left, ids(q.clear())); diff != "" {
			t.Fatalf("cleared (-want +got):\n%s", diff)
		}
		for _, id := range left {
			if isNew, _ := q.push(&job{id: id}); !isNew {
				t.Fatalf("%s was cleared and counts as told", id)
			}
			q.clear()
		}
	})
}

func TestQueue_RemembersTheLastThousandThatWereTold(t *testing.T) {
	q := newQueue(1)
	for i := range 3 * memory {
		q.push(&job{id: fmt.Sprint(i)})
		q.settle(q.pop().id, true)
	}
	if len(q.known) != memory || len(q.told) != memory {
		t.Errorf("%d known, %d told, want %d", len(q.known), len(q.told), memory)
	}
	for id, want := range map[string]bool{fmt.Sprint(3*memory - 1): false, fmt.Sprint(2 * memory): false, fmt.Sprint(2*memory - 1): true} {
		if isNew, _ := q.push(&job{id: id}); isNew != want {
			t.Errorf("%s is new: %t, want %t", id, isNew, want)
		}
		q.clear()
	}
}
