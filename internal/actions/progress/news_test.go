// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Of each history that only grows and forgets, every line that a look could see is told once, and the rest
// is counted.
func TestNews_TellEachLineOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		looks := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 20).Draw(t, "new lines before each look")
		const kept = 8
		var all, told []int64
		var seen Seen
		var gone int64
		for look, fresh := range looks {
			for range fresh {
				all = append(all, int64(len(all)+1))
			}
			in := &v1alpha1.RolloutStatus{}
			for _, n := range all[max(0, len(all)-kept):] {
				in.History = append(in.History, v1alpha1.RolloutEvent{Number: n})
			}
			if look == 0 && len(all) > kept { // lines that were gone before the first look are not missed
				told = append(told, all[:len(all)-kept]...)
			}
			var news []News
			if news, seen = seen.Since(in); len(news) > kept+1 {
				t.Fatalf("%d news of %d lines", len(news), kept)
			}
			for _, n := range news {
				if n.Event == nil {
					gone += n.Gone
					for range n.Gone {
						told = append(told, int64(len(told)+1))
					}
					continue
				}
				told = append(told, n.Event.Number)
			}
		}
		if !slices.Equal(all, told) {
			t.Fatalf("lines %v, told %v (%d gone)", all, told, gone)
		}
	})
}

func TestNews_AreAboutTheWaitAndTheRun(t *testing.T) {
	wait := func(reason, message string, since, deadline time.Duration) *v1alpha1.RolloutWait {
		return &v1alpha1.RolloutWait{Reason: reason, StartTime: *before(since), DeadlineTime: before(deadline), Message: message}
	}
	first := wait("MoreData", "3 requests", time.Minute, 0)
	for name, tc := range map[string]struct {
		now  *v1alpha1.RolloutWait
		want []News
	}{
		"another count is no other wait": {wait("MoreData", "4 requests", time.Minute, 0), nil},
		"the end of a wait is no line":   {nil, nil},
		"another reason is told":         {wait("Approval", "x", time.Minute, 0), []News{{Wait: wait("Approval", "x", time.Minute, 0)}}},
		"another deadline is told":       {wait("MoreData", "x", time.Minute, -time.Hour), []News{{Wait: wait("MoreData", "x", time.Minute, -time.Hour)}}},
		"the same reason again is told":  {wait("MoreData", "x", 0, 0), []News{{Wait: wait("MoreData", "x", 0, 0)}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, seen := Seen{}.Since(&v1alpha1.RolloutStatus{Waiting: first})
			got, _ := seen.Since(&v1alpha1.RolloutStatus{Waiting: tc.now})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	old := &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: 2}, History: []v1alpha1.RolloutEvent{{Number: 1, Run: 1}, {Number: 2, Run: 2}}}
	if got, _ := (Seen{}).Since(old); len(got) != 1 || got[0].Event.Number != 2 {
		t.Errorf("the first look tells %+v", got)
	}
	if got, seen := (Seen{}).Since(nil); got != nil || seen != (Seen{}) {
		t.Errorf("no status tells %+v", got)
	}
}
