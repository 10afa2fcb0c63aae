// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// small is a world in which nobody does anything.
func small(seed uint64, still int) (*World, *schedule.Scheduler) {
	s := schedule.New(seed)
	return newWorld(s, scenario{
		kind: &deployments, action: v1alpha1.ActionReconcile, batches: [][]int32{{0}}, still: still, deadline: time.Hour,
	}, Mutant{}), s
}

// touch writes a target.
func (w *World) touch(n int) {
	w.Server.Do(apiserver.Request{
		User: "mallory", Client: "mallory", Method: http.MethodPatch, Path: w.targets[0].at(), ContentType: mergePatch,
		Body: fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, n),
	})
}

// What a watch tells of an object may be old, and is never older than what it told
// before; in the end it is what is stored.
func TestWhatIsSeenOfAnObjectNeverGoesBack(t *testing.T) {
	Prepare()
	behindOnce, stoodStill := false, false
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w, s := small(seed, 5)
			var seen []int64
			var last atomic.Int64
			s.Spawn("watcher", func(l *schedule.Life) {
				in := w.informers(l, watched)
				for range 200 {
					for _, c := range in.changes() {
						if c.resource == deployments.resource {
							last.Store(revisionOf(t, c.now))
							seen = append(seen, last.Load())
						}
					}
					l.Await(in.told, 500*time.Millisecond)
				}
			})
			s.Spawn("writer", func(l *schedule.Life) {
				for n := range 30 {
					l.Sleep(time.Duration(l.Rand().Int64N(int64(300 * time.Millisecond))))
					w.touch(n)
					behindOnce = behindOnce || last.Load() > 0 && last.Load() < w.Server.Revision()-1
				}
			})
			s.Run(1, nil)
			s.Stop()
			stoodStill = stoodStill || w.stalls.Load() > 0
			for i := 1; i < len(seen); i++ {
				if seen[i] < seen[i-1] {
					t.Errorf("seed %d: version %d is seen after %d", seed, seen[i], seen[i-1])
				}
			}
			if stored := revisionOf(t, w.Server.Look("apps", "deployments", namespace, "web")); last.Load() != stored {
				t.Errorf("seed %d: it ends with %v, stored is %d", seed, seen, stored)
			}
		})
	}
	if !behindOnce || !stoodStill {
		t.Errorf("no watch was ever behind (%v), or stood still (%v)", behindOnce, stoodStill)
	}
}

func revisionOf(t *testing.T, o apiserver.Object) int64 {
	t.Helper()
	n, err := strconv.ParseInt(metadata(o)["resourceVersion"].(string), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The real controller's rules decide which change wakes which plan.
func TestPlansAreWokenByWhatTheControllerWatches(t *testing.T) {
	Prepare()
	tests := map[string]struct {
		write string // a merge patch
		path  func(*World) string
		wakes bool
	}{
		"a plan that is asked to pause":        {`{"spec":{"control":{"verb":"Pause","requestedBy":"alice"}}}`, func(*World) string { return plansPath + "/first" }, true},
		"a plan that gets a label":             {`{"metadata":{"labels":{"a":"b"}}}`, func(*World) string { return plansPath + "/first" }, false},
		"a policy that is halted":              {`{"spec":{"mode":"Halted"}}`, func(*World) string { return policyPath }, true},
		"a policy that gets a label":           {`{"metadata":{"labels":{"a":"b"}}}`, func(*World) string { return policyPath }, false},
		"a target that changes is not watched": {`{"metadata":{"labels":{"a":"b"}}}`, func(w *World) string { return w.targets[0].at() }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, s := small(1, 1_000_000)
				woken := -1
				s.Spawn("executor", func(l *schedule.Life) {
					p, err := w.newProcess(l, w.wrong(0, jump{}))
					if err != nil {
						panic(err)
					}
					l.Sleep(time.Second)
					p.listen()
					clear(p.due)
					answer := w.Server.Do(apiserver.Request{
						User: "alice", Client: "alice", Method: http.MethodPatch, Path: test.path(w), ContentType: mergePatch, Body: []byte(test.write),
					})
					if answer.Code != http.StatusOK {
						panic(string(answer.Body))
					}
					l.Sleep(time.Second)
					p.listen()
					woken = len(p.due)
				})
				s.Run(1, nil)
				s.Stop()
				if want := map[bool]int{true: 1, false: 0}[test.wakes]; woken != want {
					t.Errorf("%d plans are woken, want %d", woken, want)
				}
			})
		})
	}
}
