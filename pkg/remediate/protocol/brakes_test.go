// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The brakes of a plan are read before its step gets a place in the ledgers, which
// may take a while. Brakes that are put on meanwhile hold the write back.
func TestBrakesAreReadAgainBetweenAPlaceInTheLedgersAndTheWrite(t *testing.T) {
	tests := map[string]struct {
		brake func(*world)
		want  string
	}{
		"no brake, and the step writes": {func(*world) {}, "plan Succeeded, step Verified , 1 writes"},
		"halted, the plan is canceled":  {func(w *world) { w.halted = "its policy is halted" }, "plan Canceled, step Skipped Stopped, 0 writes"},
		"closed, the plan waits":        {func(w *world) { w.closed = "the window is closed" }, "plan Running, step Planned , 0 writes"},
		"unreadable, the plan waits":    {func(w *world) { w.unread = true }, "plan Running, step Reserved , 0 writes"},
		"superseded, the step ends":     {func(w *world) { w.superseded = "its policy has changed" }, "plan Superseded, step Skipped PolicyChanged, 0 writes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
			e := &executor{w: w, holder: "a"}
			until[Reserve](t, e)
			e.carry(fine)
			test.brake(w)
			for range 200 {
				e.decide()
				e.carry(fine)
				if e.waits != "" {
					w.now = w.now.Add(poll)
					w.objects[0].ready = true
				}
			}
			step := &w.plan.Status.Steps[0]
			if got := fmt.Sprintf("plan %s, step %s %s, %d writes", w.plan.Status.Phase, step.State, step.Reason, w.effects[0]); got != test.want {
				t.Errorf("got %s (it waits: %q), want %s", got, e.waits, test.want)
			}
		})
	}
}
