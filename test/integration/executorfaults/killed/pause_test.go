// SPDX-License-Identifier: Apache-2.0

//go:build integration

package killed

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestAnExecutorThatSlept stops one at a write, has another one do the work, and
// wakes the first one up. Neither has a lease, so that nothing but the protocol
// keeps the two apart; what the first one was about to send it sends.
func TestAnExecutorThatSlept(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	worlds := shared.MakeWorlds(t, 4)
	t.Run("between intent and effect, its write is refused", func(t *testing.T) {
		w, f := worlds[0].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan := w.MakePlan()
		first := shared.Start(t, f, "stop:before:"+failpoint.Effect)
		first.UntilStopped()
		shared.Start(t, f, "")
		w.UntilSucceeded(plan, f)
		first.GoOn()
		first.UntilRefused()
		w.UntilSucceeded(plan, f)
	})
	t.Run("between intent and effect, with the plan canceled meanwhile, nothing is written", func(t *testing.T) {
		w, f := worlds[1].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan := w.MakePlan()
		first := shared.Start(t, f, "stop:before:"+failpoint.Effect)
		first.UntilStopped()
		w.Control(plan, v1alpha1.PlanCancel)
		shared.Start(t, f, "")
		p := w.UntilCanceled(plan)
		first.GoOn()
		first.UntilRefused()
		w.UntilRight(f, p)
		w.CheckQuiet(p)
		w.CheckStates(p, "Canceled: Fenced Stopped, Skipped Stopped")
		w.CheckImage("web", remediation.EvilImage)
	})
	t.Run("after the effect, with the plan canceled meanwhile, it is told as written", func(t *testing.T) {
		w, f := worlds[2].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan := w.MakePlan()
		first := shared.Start(t, f, "stop:after:"+failpoint.Effect)
		first.UntilStopped()
		w.Control(plan, v1alpha1.PlanCancel)
		shared.Start(t, f, "")
		p := w.UntilCanceled(plan)
		first.GoOn()
		first.UntilRefused()
		w.UntilRight(f, p)
		w.CheckQuiet(p)
		w.CheckStates(p, "Canceled: Verified, Skipped Stopped")
		w.CheckImage("web", guarded.Image)
	})
	t.Run("before its place in the ledger is stored, nobody loses one", func(t *testing.T) {
		w, f := worlds[3].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan := w.MakePlan()
		first := shared.Start(t, f, "stop:before:"+failpoint.Granted)
		first.UntilStopped()
		shared.Start(t, f, "")
		w.UntilSucceeded(plan, f)
		first.GoOn()
		first.UntilRefused()
		w.UntilSucceeded(plan, f)
	})
}

// TestCanceled asks a plan to end at a moment of its life.
func TestCanceled(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	tests := map[string]struct{ after, reads, runs string }{
		"before anything was granted":         {failpoint.Created, "Canceled: Skipped Stopped, Skipped Stopped", remediation.EvilImage},
		"before the intent":                   {failpoint.Claimed, "Canceled: Skipped Stopped, Skipped Stopped", remediation.EvilImage},
		"after the intent, as it is written":  {failpoint.Intended, "Canceled: Verified, Skipped Stopped", guarded.Image},
		"after the effect":                    {failpoint.Effect, "Canceled: Verified, Skipped Stopped", guarded.Image},
		"after the effect was told":           {failpoint.Applied, "Canceled: Verified, Skipped Stopped", guarded.Image},
		"while the ledgers are told about it": {failpoint.Verified, "Canceled: Verified, Skipped Stopped", guarded.Image},
	}
	worlds := shared.MakeWorlds(t, len(tests))
	next := 0
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, f := worlds[next].Within(t), failpoint.NewFiles(t)
			next++
			defer w.Forget()
			plan := w.MakePlan()
			e := shared.Start(t, f, "stop:after:"+tc.after)
			e.UntilStopped()
			w.Control(plan, v1alpha1.PlanCancel)
			e.GoOn()
			p := w.UntilCanceled(plan)
			w.UntilRight(f, p)
			w.CheckQuiet(p)
			w.CheckStates(p, tc.reads)
			w.CheckImage("web", tc.runs)
			w.CheckImage("api", remediation.EvilImage)
		})
	}
}

// TestALeaderThatSleptPastItsLeaseEnds is the same with leases: a standby takes
// over, and the old leader does no harm and ends.
func TestALeaderThatSleptPastItsLeaseEnds(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	worlds := shared.MakeWorlds(t, 2)
	for i, cancel := range []bool{false, true} {
		t.Run(map[bool]string{false: "the plan goes on", true: "the plan is canceled meanwhile"}[cancel], func(t *testing.T) {
			w, f := worlds[i].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			leader, standby := shared.StartPair(t, f, "stop:before:"+failpoint.Effect)
			plan := w.MakePlan()
			leader.UntilStopped()
			if !cancel {
				shared.ShortenLease(t)
				w.UntilSucceeded(plan, f)
				leader.GoOn()
				leader.UntilFailed()
				w.UntilSucceeded(plan, f)
				w.Must(standby.Stop())
				return
			}
			w.Control(plan, v1alpha1.PlanCancel)
			shared.ShortenLease(t)
			p := w.UntilCanceled(plan)
			leader.GoOn()
			leader.UntilFailed()
			w.UntilRight(f, p)
			w.CheckQuiet(p)
			w.CheckStates(p, "Canceled: Fenced Stopped, Skipped Stopped")
			w.CheckImage("web", remediation.EvilImage)
			w.Must(standby.Stop())
		})
	}
}
