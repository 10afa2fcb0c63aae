// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

func TestADriftIsPutBack(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web", "api")
	policy := w.policy(selectsNothing)
	records := newEvidence(t)
	startExecutor(t, records)
	plan := w.Ended(w.plan(policy, "web", "api"))
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s", remediation.Describe(plan))
	}
	for _, name := range []string{"web", "api"} {
		if image := w.Live(name).Spec.Template.Spec.Containers[0].Image; image != guarded.Image {
			t.Errorf("%s runs %s", name, image)
		}
		b := w.UntilIs(name, "InSync")
		if b.Status.PlanName != "" {
			t.Errorf("%s is still claimed by %s", name, b.Status.PlanName)
		}
	}
	w.settled(2)
	w.proven(records, plan)
}

// settled checks that the ledgers know of so many steps that have ended, and of
// none that has not.
func (w *world) settled(want int) {
	w.t.Helper()
	l := &v1alpha1.RemediationLedger{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: w.environment}, l))
	ended := 0
	for i := range l.Status.Entries {
		if l.Status.Entries[i].CompletionTime != nil {
			ended++
		}
	}
	if ended != want || ended != len(l.Status.Entries) {
		w.t.Errorf("the ledger has %d entries, of which %d have ended; want %d", len(l.Status.Entries), ended, want)
	}
}
