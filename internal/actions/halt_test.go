// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestFindLedger(t *testing.T) {
	ledger := func(name, scope string) v1alpha1.RemediationLedger {
		return v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RemediationLedgerSpec{Scope: scope}}
	}
	ledgers := []v1alpha1.RemediationLedger{
		ledger("production", "Environment"), ledger("plumbline-cluster", "Cluster"), ledger("web", "Policy"),
	}
	for name, tc := range map[string]struct {
		environment, want string // the name of the ledger, empty for none
	}{
		"an Environment":               {"production", "production"},
		"the cluster":                  {"", "plumbline-cluster"},
		"an Environment without one":   {"staging", ""},
		"a ledger of another scope":    {"web", ""},
		"the cluster's name is no one": {"plumbline-cluster", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FindLedger(ledgers, tc.environment)
			if tc.want == "" {
				if none, is := errors.AsType[*NoLedgerError](err); !is || none.Environment != tc.environment {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil || got.Name != tc.want {
				t.Errorf("got %+v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestAHaltThatStandsIsNotAskedForAgain(t *testing.T) {
	halted := &v1alpha1.RemediationLedger{Spec: v1alpha1.RemediationLedgerSpec{Halt: &v1alpha1.LedgerHalt{RequestedBy: "bob"}}}
	free := &v1alpha1.RemediationLedger{}
	if !IsHaltAsWanted(halted, true) || IsHaltAsWanted(halted, false) || IsHaltAsWanted(free, true) || !IsHaltAsWanted(free, false) {
		t.Error("a halt is asked for that stands, or one that does not stand is not")
	}
}

func TestJudgeCheck(t *testing.T) {
	b := &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{CheckRequested: "now"}}
	if JudgeCheck(b, "now", false) != Taken || JudgeCheck(b, "later", false) != Pending || JudgeCheck(b, "now", true) != Refused {
		t.Error("an answer is that to another request, or that of a Baseline that is gone")
	}
}
