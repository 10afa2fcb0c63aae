// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// What an API server, a webhook in it, or a policy says about a refusal may be
// as long as it likes. A status that carries all of it would be refused itself,
// and the plan would try the same for ever.
func TestALongRefusalIsStoredAsMuchAsTheSchemaTakes(t *testing.T) {
	long := strings.Repeat("日本", 2000)
	w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
	e := &executor{w: w, holder: "a"}
	for range 200 {
		e.decide()
		if _, ok := e.pending.(Try); ok {
			e.learn(0, func(f *StepFacts) { f.Tried = &Write{Result: Refused, Message: long} })
			e.pending = nil
			continue
		}
		e.carry(fine)
	}
	step := &w.plan.Status.Steps[0]
	if step.State != v1alpha1.StepSkipped || step.Reason != v1alpha1.ReasonRefused {
		t.Fatalf("it ended as %s %s", step.State, step.Reason)
	}
	if len(step.Message) > MaxMessage || !utf8.ValidString(step.Message) || !strings.HasPrefix(step.Message, "日本") {
		t.Errorf("the message has %d bytes: %q", len(step.Message), step.Message)
	}
	for _, line := range step.Logs {
		if len(line) > maxLine || !utf8.ValidString(line) {
			t.Errorf("a line has %d bytes: %q", len(line), line)
		}
	}
	t.Run("and what a plan waits for", func(t *testing.T) {
		w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
		w.closed = long
		e := &executor{w: w, holder: "a"}
		for range 10 {
			e.decide()
			e.carry(fine)
		}
		if got := w.plan.Status.DeferralReason; got == "" || len(got) > MaxMessage || e.waits == "" {
			t.Errorf("it waits %q for %d bytes", e.waits, len(got))
		}
	})
}
