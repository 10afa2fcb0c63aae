// SPDX-License-Identifier: Apache-2.0

//go:build integration

package killed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestTheOracleSeesWhatIsWrong breaks what the other tests rely on, one thing at a
// time.
func TestTheOracleSeesWhatIsWrong(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	worlds := shared.MakeWorlds(t, 3)
	sees := func(t *testing.T, w *failpoint.World, f *failpoint.Files, p *v1alpha1.RemediationPlan, want string) {
		t.Helper()
		poll.True(t, failpoint.Patience/6, "it is seen that "+want, func() bool {
			return strings.Contains(strings.Join(w.Verdict(f.Records, p), "\n"), want)
		})
	}
	t.Run("an executor that stores no records", func(t *testing.T) {
		w, f := worlds[0].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan := w.MakePlan()
		shared.Start(t, f, "mute")
		p := w.Ended(plan)
		sees(t, w, f, p, "has no record")
	})
	t.Run("a second write of a step, a claim and a record", func(t *testing.T) {
		w, f := worlds[1].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan := w.MakePlan()
		shared.Start(t, f, "")
		p := w.UntilSucceeded(plan, f)
		sees := func(want string) { sees(t, w, f, p, want) }

		executor, err := apiserver.As(shared.Config, remediation.ExecutorUser)
		w.Must(err)
		b, err := w.Baseline("api")
		w.Must(err)
		b.Status.PlanName = plan.Name
		w.Must(executor.Status().Update(t.Context(), b))
		sees("api is still claimed")

		web := w.Live("web")
		web.Labels["again"] = "true"
		w.Must(executor.Update(t.Context(), web))
		sees("2 writes were stored for " + string(p.UID) + " step 0 web")

		w.Must(os.Remove(filepath.Join(f.RecordsDirectory(), evidence.Name(string(w.OwnPolicy.UID), 4))))
		sees("evidence: ")
	})
	t.Run("a place that nobody gives back", func(t *testing.T) {
		w, f := worlds[2].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan := w.MakePlan()
		e := shared.Start(t, f, "kill:after:"+failpoint.Intended)
		e.UntilKilled()
		p := &v1alpha1.RemediationPlan{}
		w.Must(shared.Admin.Get(t.Context(), client.ObjectKeyFromObject(plan), p))
		sees(t, w, f, p, "holds a place for step 0")
		sees(t, w, f, p, "step 0 is Intent")
		sees(t, w, f, p, "web is still claimed")
		shared.Start(t, f, "")
		w.UntilSucceeded(plan, f) // the next executor has nothing to carry on
	})
}
