// SPDX-License-Identifier: Apache-2.0

//go:build integration

package killed

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestLostAnswers has writes stored whose answers the executor never gets.
func TestLostAnswers(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	lost := []string{failpoint.Effect, failpoint.Granted}
	if failpoint.Long() {
		lost = append(lost, failpoint.Intended, failpoint.StepRecord, failpoint.Created, failpoint.Claimed, failpoint.Applied, failpoint.Verified, "let go of web",
			"the Environment's ledger is made", "the cluster's ledger is made", "the Environment remembers its ledger",
			"the Environment's ledger: 1 granted, 0 ended, 1 records", "the Environment's ledger: 1 granted, 1 ended, 2 records",
			"the cluster's ledger: 1 granted, 1 ended, 0 records", "the Environment's ledger: 2 granted, 1 ended, 2 records", "record 1")
	}
	worlds := shared.MakeWorlds(t, len(lost))
	for i, write := range lost {
		t.Run(write, func(t *testing.T) {
			w, f := worlds[i].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			plan := w.MakePlan()
			e := shared.Start(t, f, "lose:after:"+write)
			p := w.UntilSucceeded(plan, f)
			e.UntilWrite(write)
			origin := v1alpha1.ResultResponse
			if write == failpoint.Effect {
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
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	worlds := shared.MakeWorlds(t, 2)
	arrives := func(t *testing.T, f *failpoint.Files, e *failpoint.Executor) {
		t.Helper()
		f.Release()
		poll.True(t, failpoint.Patience, "the late write has its answer", func() bool { return len(e.LateAnswers()) > 0 })
		failpoint.CheckLines(t, "the API server's answer to the late write", e.LateAnswers(), "409")
	}
	t.Run("and after the plan was canceled is refused", func(t *testing.T) {
		w, f := worlds[0].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan := w.MakePlan()
		e := shared.Start(t, f, "late:before:"+failpoint.Effect)
		e.UntilWrite(failpoint.Effect)
		w.Control(plan, v1alpha1.PlanCancel)
		p := w.UntilCanceled(plan)
		arrives(t, f, e)
		w.UntilRight(f, p)
		w.CheckQuiet(p)
		w.CheckStates(p, "Canceled: Fenced Stopped, Skipped Stopped")
		w.CheckImage("web", remediation.EvilImage)
	})
	t.Run("and after the step was tried again is refused", func(t *testing.T) {
		w, f := worlds[1].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan := w.MakePlan()
		e := shared.Start(t, f, "late:before:"+failpoint.Effect)
		p := w.UntilSucceeded(plan, f)
		arrives(t, f, e)
		w.UntilRight(f, p)
		if n := w.CountEffects("web"); n != 1 {
			t.Errorf("%d writes of web were stored", n)
		}
	})
}
