// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestLostAnswers has writes stored whose answers the executor never gets.
func TestLostAnswers(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	lost := []string{effect, granted}
	if long() {
		lost = append(lost, intended, stepRecord, created, "claim web", reserved, applied, verified, settled, "let go of web",
			"the Environment's ledger is made", "the cluster's ledger is made", "the Environment remembers its ledger",
			"the Environment's ledger: 1 granted, 0 ended, 1 records", "the Environment's ledger: 1 granted, 1 ended, 1 records",
			"the cluster's ledger: 1 granted, 1 ended, 0 records", "the Environment's ledger: 1 granted, 1 ended, 2 records", "record 1")
	}
	worlds := shared.prepared(t, len(lost))
	for i, write := range lost {
		t.Run(write, func(t *testing.T) {
			w, f := worlds[i].Within(t), newFiles(t)
			defer w.Forget()
			plan := w.planned()
			e := shared.start(t, f, "lose:after:"+write)
			p := w.succeeded(plan, f)
			e.until(write)
			origin := v1alpha1.ResultResponse
			if write == effect {
				origin = v1alpha1.ResultRecovered
			}
			if got := p.Status.Steps[0].Result.Origin; got != origin {
				t.Errorf("the result's origin is %s, want %s", got, origin)
			}
		})
	}
}

// TestALateEffect has the write of a step arrive long after the executor gave it up.
func TestALateEffect(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	worlds := shared.prepared(t, 2)
	arrives := func(t *testing.T, f *files, e *executor) {
		t.Helper()
		f.release()
		poll.True(t, patience, "the late write has its answer", func() bool { return len(e.late()) > 0 })
		is(t, "the API server's answer to the late write", e.late(), "409")
	}
	t.Run("and after the plan was cancelled is refused", func(t *testing.T) {
		w, f := worlds[0].Within(t), newFiles(t)
		defer w.Forget()
		plan := w.planned()
		e := shared.start(t, f, "late:before:"+effect)
		e.until(effect)
		w.Control(plan, v1alpha1.PlanCancel)
		p := w.cancelled(plan)
		arrives(t, f, e)
		w.right(f, p)
		w.quiet(p)
		w.reads(p, "Cancelled: Fenced Stopped, Skipped Stopped")
		w.runs("web", remediation.EvilImage)
	})
	t.Run("and after the step was tried again is refused", func(t *testing.T) {
		w, f := worlds[1].Within(t), newFiles(t)
		defer w.Forget()
		plan := w.planned()
		e := shared.start(t, f, "late:before:"+effect)
		p := w.succeeded(plan, f)
		arrives(t, f, e)
		w.right(f, p)
		if n := w.effects("web"); n != 1 {
			t.Errorf("%d writes of web were stored", n)
		}
	})
}
