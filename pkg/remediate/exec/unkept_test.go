// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// A record whose head is not kept could be cut off unseen. No status names such a record.
func TestNoStatusNamesARecordBeforeItsHeadIsKept(t *testing.T) {
	w := newWorld(t)
	settled := 0
	w.records.Fault = func(string) error {
		if settled == 0 && w.now().Status.Steps != nil && w.now().Status.Steps[0].State == v1alpha1.StepVerified {
			return errNetwork // the settlement keeps no head
		}
		return nil
	}
	w.fails = func(call, name string) error {
		if call != "update RemediationLedger" || name != "production" {
			return nil
		}
		if w.now().Status.Steps == nil || w.now().Status.Steps[0].State != v1alpha1.StepVerified {
			return nil
		}
		if settled++; settled > 1 {
			return errNetwork // the settlement is stored, and no head after it
		}
		return nil
	}
	if _, err := w.Carry(w.Context(), w.key()); err == nil || !strings.Contains(err.Error(), "keeping the head") {
		t.Errorf("carrying the plan on ends with %v", err)
	}
	if why := w.now().Status.DeferralReason; !strings.Contains(why, "keeping the head") {
		t.Errorf("the plan stands still, and says %q", why)
	}
	if step := w.now().Status.Steps[0]; step.Evidence != nil || w.now().Status.Phase != v1alpha1.PlanRunning {
		t.Errorf("the plan is %s, and its step names record %+v", w.now().Status.Phase, step.Evidence)
	}
	w.fails = nil
	w.finish()
	status, chains := w.now().Status, w.readLedgerNow("production").Status.Chains
	if status.Phase != v1alpha1.PlanSucceeded || status.Steps[0].Evidence == nil || chains[0].Sequence < status.Steps[0].Evidence.Sequence {
		t.Errorf("then the plan is %s, with %+v; the heads are %+v", status.Phase, status.Steps[0].Evidence, chains)
	}
}

// The status that ends a plan stands for a decision, whose record has the head kept. A status
// between two steps stands for none.
func TestAStatusThatStandsForNoDecisionNamesNoRecordBeforeItsHeadIsKept(t *testing.T) {
	w := newWorld(t)
	w.fails = func(call, name string) error {
		recorded := len(w.records.Names()) > 1
		switch {
		case call == "update RemediationLedger" && name == "production" && recorded:
			return errNetwork // the head of the record of the step
		case call == "update Baseline" && recorded:
			return errNetwork // the target is not let go of, so the plan goes on
		}
		return nil
	}
	if _, err := w.Carry(w.Context(), w.key()); err == nil || !strings.Contains(err.Error(), "keeping the head") {
		t.Errorf("carrying the plan on ends with %v", err)
	}
	if step := w.now().Status.Steps[0]; step.State != v1alpha1.StepVerified || step.Evidence != nil {
		t.Errorf("the step is %s, and names record %+v", step.State, step.Evidence)
	}
}

func TestAHeadThatIsStillToBeKeptIsKeptWithTheNextPlace(t *testing.T) {
	tests := map[string]struct {
		ledger string
		kept   int64
	}{
		"a place in the Environment's ledger": {"production", 7},
		"none in the cluster's":               {ClusterLedger, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := chained(t)
			head := evidence.Head{Sequence: 7, Digest: digestOf("7")}
			w.Evidence.chains = map[string]*chain{policyUID: {head: head}}
			r := w.open()
			r.policy = w.policy
			for _, p := range r.places() {
				if p.name != test.ledger {
					continue
				}
				if verdict, err := r.reserveIn(t.Context(), p, 0); err != nil || !verdict.Granted {
					t.Fatalf("the ledger answers %+v, %v", verdict, err)
				}
			}
			var kept int64
			for _, c := range w.readLedgerNow(test.ledger).Status.Chains {
				kept = c.Sequence
			}
			if diff := cmp.Diff(test.kept, kept); diff != "" {
				t.Errorf("the head (-want +got):\n%s", diff)
			}
			writes := len(w.writes("update RemediationLedger"))
			if err := w.Evidence.KeepHead(t.Context(), "production", policyUID); err != nil {
				t.Fatal(err)
			}
			if more := len(w.writes("update RemediationLedger")) - writes; more > 0 == (test.kept > 0) {
				t.Errorf("keeping the head then is %d writes", more)
			}
		})
	}
}
