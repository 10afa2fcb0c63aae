// SPDX-License-Identifier: Apache-2.0

//go:build integration

package disturbed

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestAnExecutorWhoseClockIsOffByAnHour does what does not depend on the time of day,
// by the API server's time, and begins nothing else.
func TestAnExecutorWhoseClockIsOffByAnHour(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	free, timed := shared.MakeWorlds(t, 2), shared.MakeWorlds(t, 2, open)
	for i, off := range []string{"1h", "-1h"} {
		t.Run(off+" without a schedule", func(t *testing.T) {
			w, f := free[i].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			began := time.Now().Add(-2 * time.Second)
			plan := w.MakePlan()
			shared.Start(t, f, "clock:"+off)
			p := w.UntilSucceeded(plan, f)
			now := time.Now().Add(2 * time.Second)
			within := func(what string, at time.Time) {
				if at.Before(began) || at.After(now) {
					t.Errorf("%s is at %s, and that was between %s and %s", what, at, began, now)
				}
			}
			for _, l := range w.Ledgers() {
				for j := range l.Status.Entries {
					within("a place in "+l.Name, l.Status.Entries[j].ReservationTime.Time)
					within("its end", l.Status.Entries[j].CompletionTime.Time)
				}
			}
			within("the intent", p.Status.Steps[0].Intent.StorageTime.Time)
			within("the end of the plan", p.Status.CompletionTime.Time)
		})
		t.Run(off+" with a schedule that is open by either clock", func(t *testing.T) {
			w, f := timed[i].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			plan := w.MakePlan()
			e := shared.Start(t, f, "clock:"+off)
			p := w.UntilPlan(plan, "it waits for the clock", func(p *v1alpha1.RemediationPlan) bool {
				return p.Status.Phase == v1alpha1.PlanDeferred && strings.Contains(p.Status.DeferralReason, "clock")
			})
			t.Logf("it waits: %s", p.Status.DeferralReason)
			w.CheckUntouched("web")
			w.Must(e.Stop())
			shared.Start(t, f, "")
			w.UntilWell(plan, f) // with the record that it was deferred
		})
	}
}

// open is a schedule that is open today, by clocks an hour off too, and closed in
// three days: one that never closes would not depend on the time.
func open(s *v1alpha1.RemediationPolicySpec) {
	closed := time.Now().UTC().AddDate(0, 0, 3).Weekday()
	for day := time.Sunday; day <= time.Saturday; day++ {
		if day != closed {
			s.Schedule.AllowedDays = append(s.Schedule.AllowedDays, v1alpha1.Weekday(day.String()))
		}
	}
}
