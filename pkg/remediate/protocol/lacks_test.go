// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// What an object that is made again lacks is told before it is made, since the executor may
// die after that, and stays told when the step ends well.
func TestWhatAnObjectLacksIsSaidFromTheIntentToTheEnd(t *testing.T) {
	const lacks = "made again without its owner Basket/a (it is gone)"
	type told struct{ Intent, End string }
	tests := map[string]struct {
		gone  bool
		lacks string
		ends  func(*world)
		want  told
	}{
		"an object that is made": {true, lacks, func(*world) {}, told{lacks, "as it should be, and healthy; " + lacks}},
		"an object that is made while the plan is canceled": {
			true, lacks, func(w *world) { w.ask(v1alpha1.PlanCancel) }, told{lacks, "as it should be, and healthy when the plan was ended; " + lacks},
		},
		"an object that is written": {false, lacks, func(*world) {}, told{"", "as it should be, and healthy"}},
		"a text that is too long":   {true, strings.Repeat("x", 2*MaxMessage), func(*world) {}, told{strings.Repeat("x", MaxMessage-3) + "…", ""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, test.gone)
			e := &executor{w: w, holder: "a"}
			until[Try](t, e)
			e.carry(fine)
			e.learn(0, func(f *StepFacts) { f.Tried.Lacks = test.lacks })
			until[WriteTarget](t, e)
			step := &w.plan.Status.Steps[0]
			got := told{Intent: step.Message}
			e.carry(fine)
			until[ReadTarget](t, e)
			w.objects[0].ready = true
			test.ends(w)
			e.finish(t)
			if got.End = w.plan.Status.Steps[0].Message; len(got.End) > MaxMessage {
				t.Errorf("the message has %d bytes", len(got.End))
			}
			if test.want.End == "" {
				got.End = ""
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the message (-want +got):\n%s", diff)
			}
		})
	}
}
