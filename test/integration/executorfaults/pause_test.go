// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestAnExecutorThatSlept stops one at a write, has another one do the work, and
// wakes the first one up. Neither has a lease, so that nothing but the protocol
// keeps the two apart; what the first one was about to send it sends.
func TestAnExecutorThatSlept(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	worlds := shared.prepared(t, 4)
	t.Run("between intent and effect, its write is refused", func(t *testing.T) {
		w, f := worlds[0].Within(t), newFiles(t)
		defer w.Forget()
		plan := w.planned()
		first := shared.start(t, f, "stop:before:"+effect)
		first.stopped()
		shared.start(t, f, "")
		w.succeeded(plan, f)
		first.goesOn()
		first.refused()
		w.succeeded(plan, f)
	})
	t.Run("between intent and effect, with the plan cancelled meanwhile, nothing is written", func(t *testing.T) {
		w, f := worlds[1].Within(t), newFiles(t)
		defer w.Forget()
		plan := w.planned()
		first := shared.start(t, f, "stop:before:"+effect)
		first.stopped()
		w.Control(plan, v1alpha1.PlanCancel)
		shared.start(t, f, "")
		p := w.cancelled(plan)
		first.goesOn()
		first.refused()
		w.right(f, p)
		w.quiet(p)
		w.reads(p, "Cancelled: Fenced Stopped, Skipped Stopped")
		w.runs("web", remediation.EvilImage)
	})
	t.Run("after the effect, with the plan cancelled meanwhile, it is told as written", func(t *testing.T) {
		w, f := worlds[2].Within(t), newFiles(t)
		defer w.Forget()
		plan := w.planned()
		first := shared.start(t, f, "stop:after:"+effect)
		first.stopped()
		w.Control(plan, v1alpha1.PlanCancel)
		shared.start(t, f, "")
		p := w.cancelled(plan)
		first.goesOn()
		first.refused()
		w.right(f, p)
		w.quiet(p)
		w.reads(p, "Cancelled: Verified, Skipped Stopped")
		w.runs("web", guarded.Image)
	})
	t.Run("before its place in the ledger is stored, nobody loses one", func(t *testing.T) {
		w, f := worlds[3].Within(t), newFiles(t)
		defer w.Forget()
		plan := w.planned()
		first := shared.start(t, f, "stop:before:"+granted)
		first.stopped()
		shared.start(t, f, "")
		w.succeeded(plan, f)
		first.goesOn()
		first.refused()
		w.succeeded(plan, f)
	})
}

// TestCancelled asks a plan to end at a moment of its life.
func TestCancelled(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	tests := map[string]struct{ after, reads, runs string }{
		"before anything was granted":         {created, "Cancelled: Skipped Stopped, Skipped Stopped", remediation.EvilImage},
		"before the intent":                   {reserved, "Cancelled: Skipped Stopped, Skipped Stopped", remediation.EvilImage},
		"after the intent, as it is written":  {intended, "Cancelled: Verified, Skipped Stopped", guarded.Image},
		"after the effect":                    {effect, "Cancelled: Verified, Skipped Stopped", guarded.Image},
		"after the effect was told":           {applied, "Cancelled: Verified, Skipped Stopped", guarded.Image},
		"while the ledgers are told about it": {verified, "Cancelled: Verified, Skipped Stopped", guarded.Image},
	}
	worlds := shared.prepared(t, len(tests))
	next := 0
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, f := worlds[next].Within(t), newFiles(t)
			next++
			defer w.Forget()
			plan := w.planned()
			e := shared.start(t, f, "stop:after:"+tc.after)
			e.stopped()
			w.Control(plan, v1alpha1.PlanCancel)
			e.goesOn()
			p := w.cancelled(plan)
			w.right(f, p)
			w.quiet(p)
			w.reads(p, tc.reads)
			w.runs("web", tc.runs)
			w.runs("api", remediation.EvilImage)
		})
	}
}

// TestALeaderThatSleptPastItsLeaseEnds is the same with leases: a standby takes
// over, and the old leader does no harm and ends.
func TestALeaderThatSleptPastItsLeaseEnds(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	worlds := shared.prepared(t, 2)
	for i, cancel := range []bool{false, true} {
		t.Run(map[bool]string{false: "the plan goes on", true: "the plan is cancelled meanwhile"}[cancel], func(t *testing.T) {
			w, f := worlds[i].Within(t), newFiles(t)
			defer w.Forget()
			leader, standby := shared.pair(t, f, "stop:before:"+effect)
			plan := w.planned()
			leader.stopped()
			if !cancel {
				shared.shortenLease(t)
				w.succeeded(plan, f)
				leader.goesOn()
				leader.ends()
				w.succeeded(plan, f)
				w.Must(standby.Stop())
				return
			}
			w.Control(plan, v1alpha1.PlanCancel)
			shared.shortenLease(t)
			p := w.cancelled(plan)
			leader.goesOn()
			leader.ends()
			w.right(f, p)
			w.quiet(p)
			w.reads(p, "Cancelled: Fenced Stopped, Skipped Stopped")
			w.runs("web", remediation.EvilImage)
			w.Must(standby.Stop())
		})
	}
}
