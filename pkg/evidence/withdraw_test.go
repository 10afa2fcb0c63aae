// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

func withdrawal(at evidence.Head) evidence.Record {
	r := decision(evidence.KindDecisionWithdrawn, int32(at.Sequence))
	r.Withdraws, r.Result = &at, evidence.Result{}
	return r
}

// withdrawn is a chain of a step, a decision that never was and two more decisions.
func withdrawn(t *testing.T) (*storetest.Memory, []evidence.Sealed) {
	t.Helper()
	store, w := &storetest.Memory{}, writer(t, nil, 1)
	w.Store = store
	var sealed []evidence.Sealed
	head := evidence.Head{}
	for _, r := range []evidence.Record{
		step(0), decision(evidence.KindPlanFinished, 0), decision(evidence.KindPlanCanceled, 0), decision(evidence.KindPlanPaused, 0),
	} {
		s := appended(t, w, head, r)
		head, sealed = s.Head(), append(sealed, s)
	}
	return store, sealed
}

func TestADecisionIsWithdrawnByItsOwnPlanAlone(t *testing.T) {
	finished := func(s []evidence.Sealed) evidence.Record { return withdrawal(s[1].Head()) }
	cases := map[string]struct {
		record   func([]evidence.Sealed) evidence.Record
		spoil    func(*storetest.Memory)
		problems []finding
		want     []evidence.Withdrawal
	}{
		"a decision":               {finished, nil, nil, []evidence.Withdrawal{{Sequence: 2, By: 5}}},
		"a step, which took place": {func(s []evidence.Sealed) evidence.Record { return withdrawal(s[0].Head()) }, nil, []finding{{evidence.ProblemUnfounded, 5}}, nil},
		"a decision of another digest": {func(s []evidence.Sealed) evidence.Record {
			return withdrawal(evidence.Head{Sequence: 2, Digest: s[2].Digest})
		}, nil, []finding{{evidence.ProblemUnfounded, 5}}, nil},
		"a decision about another plan": {
			func(s []evidence.Sealed) evidence.Record { r := finished(s); r.Plan.UID = "other"; return r }, nil,
			[]finding{{evidence.ProblemUnfounded, 5}}, nil,
		},
		"itself": {
			func(s []evidence.Sealed) evidence.Record {
				return withdrawal(evidence.Head{Sequence: 5, Digest: s[1].Digest})
			}, nil,
			[]finding{{evidence.ProblemUnfounded, 5}}, nil,
		},
		"a decision whose record is missing, which is one problem": {
			finished, func(m *storetest.Memory) { m.Remove(evidence.Name(policyUID, 2)) }, []finding{{evidence.ProblemGap, 2}}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store, sealed := withdrawn(t)
			appended(t, writer(t, store, 1), sealed[3].Head(), tc.record(sealed))
			if tc.spoil != nil {
				tc.spoil(store)
			}
			report, err := evidence.Verify(t.Context(), store, keyring(t, key(t, 1)), evidence.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.problems, findings(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, report.Chains[0].Withdrawn); diff != "" {
				t.Errorf("withdrawn (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADecisionMayBeToldAgainAfterItWasWithdrawn(t *testing.T) {
	for name, withdraw := range map[string]bool{"withdrawn": true, "not withdrawn": false} {
		t.Run(name, func(t *testing.T) {
			store, sealed := withdrawn(t)
			head := sealed[3].Head()
			if withdraw {
				head = appended(t, writer(t, store, 1), head, withdrawal(sealed[1].Head())).Head()
			}
			appended(t, writer(t, store, 1), head, decision(evidence.KindPlanFinished, 0))
			report, err := evidence.Verify(t.Context(), store, keyring(t, key(t, 1)), evidence.Options{})
			if err != nil || report.OK() != withdraw {
				t.Errorf("got %+v, %v", report, err)
			}
		})
	}
}
