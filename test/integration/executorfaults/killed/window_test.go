// SPDX-License-Identifier: Apache-2.0

//go:build integration

package killed

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestAnExecutorThatSleptOverTheEndOfAWindow stops an executor that has an intent, and lets it go on when
// the window of its policy is closed.
func TestAnExecutorThatSleptOverTheEndOfAWindow(t *testing.T) {
	failpoint.SkipUnlessLong(t)
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	tests := map[string]struct {
		point string
		// fenced says that another executor has fenced the intent meanwhile: the request is sent, and refused.
		fenced bool
	}{
		"before it decides to send its write, it revokes the intent":    {"stop:after:" + failpoint.Intended, false},
		"before its write is sent, and its write is refused when it is": {"stop:before:" + failpoint.Effect, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			closes := nextMinute(50 * time.Second)
			w, f := shared.MakeWorlds(t, 1, closesAt(closes))[0].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			plan := w.MakePlan()
			first := shared.Start(t, f, test.point)
			first.UntilStopped()
			poll.True(t, 3*time.Minute, "the window is closed", func() bool { return time.Now().After(closes) })
			if test.fenced {
				shared.Start(t, f, "")
			} else {
				first.GoOn()
			}
			w.UntilPlan(plan, "its intent is revoked, and it holds nothing", func(p *v1alpha1.RemediationPlan) bool {
				return p.Status.DeferralReason != "" && p.Status.Steps[0].State == v1alpha1.StepPlanned && len(w.Held(p)) == 0
			})
			if test.fenced {
				first.GoOn()
				first.UntilRefused()
				w.Must(first.Kill())
			}
			w.CheckUntouched("web")
			w.CheckImage("web", remediation.EvilImage)
			w.Control(plan, v1alpha1.PlanExecute) // the word of a person passes the window
			w.UntilWell(plan, f)
		})
	}
}

// nextMinute is the first full minute after a while.
func nextMinute(after time.Duration) time.Time {
	return time.Now().UTC().Add(after + time.Minute).Truncate(time.Minute)
}

// closesAt is a schedule that is open until a time of today.
func closesAt(closes time.Time) func(*v1alpha1.RemediationPolicySpec) {
	return func(s *v1alpha1.RemediationPolicySpec) {
		s.Schedule.AllowedStart, s.Schedule.AllowedEnd = closes.Add(-3*time.Hour).Format("15:04"), closes.Format("15:04")
	}
}
