// SPDX-License-Identifier: Apache-2.0

// One goroutine: the race detector has nothing to say, and takes six times as long.
//go:build !race

package abrelease

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// TestARunGoesOnWhereverItsLeaderDies ends the process at each write of a good run and of a bad one.
func TestARunGoesOnWhereverItsLeaderDies(t *testing.T) {
	diesAtEachWrite(t, 8, 1, crashesAt)
}

// TestARunWithACloneGoesOnWhereverItsLeaderDies ends the process at each write of a good run with a clone and of
// a bad one.
func TestARunWithACloneGoesOnWhereverItsLeaderDies(t *testing.T) {
	diesAtEachWrite(t, 12, 3, cloneCrashesAt)
}

// TestARunOfGroupsGoesOnWhereverItsLeaderDies ends the process at each write of a good run of groups and of a bad
// one.
func TestARunOfGroupsGoesOnWhereverItsLeaderDies(t *testing.T) {
	diesAtEachWrite(t, 12, 3, groupsCrashAt)
}

// TestARunOfBothGoesOnWhereverItsLeaderDies ends the process at each write of a good run of requests and groups and
// of a bad one.
func TestARunOfBothGoesOnWhereverItsLeaderDies(t *testing.T) {
	diesAtEachWrite(t, 12, 4, pairsCrashAt)
}

// groupsCrashAt tells one run, and whether the process ended in it.
func groupsCrashAt(t *testing.T, failed uint64, c *crash) bool {
	t.Helper()
	w, e := dividing(t)
	c.install(t, w)
	e.live(t, 12)
	state, did := v1alpha1.RunState("Completed"), goodGroups
	if failed > 0 {
		e.restarted, state, did = 1, "RolledBack", badGroups
	}
	r := e.live(t, 80)
	if run := r.Status.Rollout.Run; run == nil || run.State != state || run.Number != 1 || run.Division.SettlementTime == nil {
		t.Errorf("the run is %+v, which waits for %+v", run, r.Status.Rollout.Waiting)
	}
	if got := strings.Join(e.did, ", "); got != did {
		t.Errorf("the executor did %q", got)
	}
	times := map[string]int{}
	for _, line := range r.Status.Rollout.History {
		if times[line.Event+" "+line.Message]++; times[line.Event+" "+line.Message] > 1 {
			t.Errorf("the history has %q twice", line.Message)
		}
	}
	return c.crashed
}

// cloneCrashesAt tells one run, and whether the process ended in it.
func cloneCrashesAt(t *testing.T, failed uint64, c *crash) bool {
	t.Helper()
	w, e := cloning(t)
	c.install(t, w)
	r := e.run(t, failed)
	state, image, did := v1alpha1.RunState("Completed"), "shop:2", "CreateClone 1, Scale 5, UpdateBaseline, Scale 0"
	if failed > 0 {
		state, image, did = "RolledBack", "shop:1", "CreateClone 1, Scale 0"
	}
	if run := r.Status.Rollout.Run; run == nil || run.State != state || run.Number != 1 || r.Status.Split != "stable 100 / canary 0" {
		t.Errorf("in force is %q in %+v, which waits for %+v", r.Status.Split, r.Status.Rollout.Run, r.Status.Rollout.Waiting)
	}
	if got := strings.Join(e.did, ", "); got != did || e.image != image || e.size != 0 {
		t.Errorf("the executor did %q, and the baseline has %s", got, e.image)
	}
	for i, work := range e.works(t) {
		if work.Spec.Number != int64(i+1) || work.Name != fmt.Sprintf("web-1-%d", i+1) {
			t.Errorf("work %d is %s with number %d", i+1, work.Name, work.Spec.Number)
		}
	}
	times := map[string]int{}
	for _, line := range r.Status.Rollout.History {
		if times[line.Event+" "+line.Message]++; times[line.Event+" "+line.Message] > 1 {
			t.Errorf("the history has %q twice", line.Message)
		}
	}
	w.neverBackBut(t)
	return c.crashed
}

// neverBackBut demands that the weight of the clone rises until it is 0, and stays so.
func (w *world) neverBackBut(t *testing.T) {
	t.Helper()
	w.neverBack(t, false)
	weight, isOver := traffic.Weight(0), false
	for _, split := range w.router.Applied() {
		for _, share := range split.Shares {
			switch {
			case share.Variation != "canary":
			case isOver && share.Weight > 0, share.Weight < weight && share.Weight > 0:
				t.Errorf("the weight of the clone is %d after %d", share.Weight, weight)
			default:
				isOver = isOver || share.Weight < weight
				weight = share.Weight
			}
		}
	}
}
