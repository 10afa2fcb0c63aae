// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// judgment of a claim.
type judgment struct {
	Suppressed bool
	Doubt      Doubt
}

func TestAClaimOfAMemoryThatOthersWriteSuppressesNoAlarm(t *testing.T) {
	sent := judgment{}
	unproven, urgent, suppressed := judgment{Doubt: DoubtUnproven}, judgment{Doubt: DoubtUrgent}, judgment{Suppressed: true}
	tests := map[string]struct {
		of   notify.EventType
		want map[Claim]judgment
	}{
		"a plan that was made":      {notify.PlanCreated, map[Claim]judgment{NotTold: sent, Unproven: unproven, Proven: suppressed}},
		"a plan that began":         {notify.PlanStarted, map[Claim]judgment{NotTold: sent, Unproven: unproven, Proven: suppressed}},
		"a plan that is done":       {notify.PlanCompleted, map[Claim]judgment{NotTold: sent, Unproven: unproven, Proven: suppressed}},
		"a plan that failed":        {notify.PlanFailed, map[Claim]judgment{NotTold: sent, Unproven: unproven, Proven: urgent}},
		"a person has to decide":    {notify.PlanEscalated, map[Claim]judgment{NotTold: sent, Unproven: unproven, Proven: urgent}},
		"a type that is not known":  {"PlanBlessed", map[Claim]judgment{NotTold: sent, Unproven: unproven, Proven: urgent}},
		"a claim that is not known": {notify.PlanCompleted, map[Claim]judgment{Proven + 1: unproven}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := map[Claim]judgment{}
			for claim := range tc.want {
				var j judgment
				j.Suppressed, j.Doubt = judge(tc.of, claim)
				got[claim] = j
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// However often an attempt is repeated, the doubt is one.
func TestADoubtIsLoggedAndCountedOnce(t *testing.T) {
	e := plan("1", notify.PlanFailed)
	answer := func(_ context.Context, _, _ string, n int) *Failure {
		if n < 3 {
			return passes
		}
		return nil
	}
	memory := &book{told: map[string]Claim{"a " + e.ID(): Unproven}}
	in(t, Options{Seen: memory}, answer, func(t *testing.T, b *bubble) {
		b.must(t, e, "a")
		pass(time.Minute)
		if diff := cmp.Diff(map[Outcome]int{Sent: 1}, b.outcomes()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[Doubt]int{DoubtUnproven: 1}, b.doubts); diff != "" {
			t.Errorf("doubts (-want +got):\n%s", diff)
		}
		if n := strings.Count(b.log.String(), "notification.seen.doubted"); n != 1 {
			t.Errorf("logged %d times: %s", n, b.log.String())
		}
		if got := memory.told["a "+e.ID()]; got != Proven {
			t.Errorf("the mark is %v after the event was sent", got)
		}
	})
}
