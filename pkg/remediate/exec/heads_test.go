// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

func digestOf(c string) string { return "sha256:" + strings.Repeat(c, 64) }

// chained is a world whose ledger has the heads of some chains.
func chained(t *testing.T, chains ...v1alpha1.EvidenceChain) *world {
	t.Helper()
	w := newWorld(t)
	if _, err := w.readLedger(t.Context(), "production"); err != nil {
		t.Fatal(err)
	}
	l := w.readLedgerNow("production")
	l.Status.Chains = chains
	if err := w.Client.Status().Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	w.calls = nil
	return w
}

func TestAHeadIsKeptInTheLedgerAndNeverGoesBack(t *testing.T) {
	first := v1alpha1.EvidenceChain{PolicyUID: "first", Sequence: 7, Digest: digestOf("7")}
	other := v1alpha1.EvidenceChain{PolicyUID: "other", Sequence: 3, Digest: digestOf("3")}
	tests := map[string]struct {
		before []v1alpha1.EvidenceChain
		head   evidence.Head
		want   []v1alpha1.EvidenceChain
		writes int
	}{
		"the first head of a chain":             {[]v1alpha1.EvidenceChain{other}, evidence.Head{Sequence: 1, Digest: digestOf("1")}, []v1alpha1.EvidenceChain{other, {PolicyUID: "first", Sequence: 1, Digest: digestOf("1")}}, 1},
		"a later head":                          {[]v1alpha1.EvidenceChain{first, other}, evidence.Head{Sequence: 8, Digest: digestOf("8")}, []v1alpha1.EvidenceChain{{PolicyUID: "first", Sequence: 8, Digest: digestOf("8")}, other}, 1},
		"a later head of the second chain":      {[]v1alpha1.EvidenceChain{other, first}, evidence.Head{Sequence: 8, Digest: digestOf("8")}, []v1alpha1.EvidenceChain{other, {PolicyUID: "first", Sequence: 8, Digest: digestOf("8")}}, 1},
		"the same head again writes nothing":    {[]v1alpha1.EvidenceChain{first}, evidence.Head{Sequence: 7, Digest: digestOf("7")}, []v1alpha1.EvidenceChain{first}, 0},
		"a head that is behind changes nothing": {[]v1alpha1.EvidenceChain{first}, evidence.Head{Sequence: 6, Digest: digestOf("6")}, []v1alpha1.EvidenceChain{first}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := chained(t, test.before...)
			before := w.readLedgerNow("production").Status.Sequence
			w.failing("list RemediationPolicyList", errNetwork) // there is room, so it asks for none
			if err := (LedgerHeads{w.Executor}).Keep(t.Context(), "production", "first", test.head); err != nil {
				t.Fatal(err)
			}
			status := w.readLedgerNow("production").Status
			if diff := cmp.Diff(test.want, status.Chains); diff != "" {
				t.Errorf("chains (-want +got):\n%s", diff)
			}
			if writes := len(w.writes("update RemediationLedger")); writes != test.writes || status.Sequence != before+int64(test.writes) {
				t.Errorf("%d writes, want %d; the sequence goes from %d to %d", writes, test.writes, before, status.Sequence)
			}
		})
	}
}

// The store of records may lose a record whose head is kept. An executor that has not read that
// record writes another one in its place, and the chain is in order again: only the ledger knows.
func TestARecordInThePlaceOfALostOneIsNoticed(t *testing.T) {
	first := v1alpha1.EvidenceChain{PolicyUID: "first", Sequence: 7, Digest: digestOf("7")}
	another, next := evidence.Head{Sequence: 7, Digest: digestOf("a")}, evidence.Head{Sequence: 8, Digest: digestOf("b")}
	for name, left := range map[string][]evidence.Head{"it is the last one": {another}, "further records follow it": {another, next}} {
		t.Run(name, func(t *testing.T) {
			w := chained(t, first)
			err := (LedgerHeads{w.Executor}).Keep(t.Context(), "production", "first", left...)
			var conflict *evidence.ConflictError
			if !errors.As(err, &conflict) || conflict.Want != digestOf("7") || conflict.Have != digestOf("a") {
				t.Errorf("keeping another record as the head ends with %v", err)
			}
			if diff := cmp.Diff([]v1alpha1.EvidenceChain{first}, w.readLedgerNow("production").Status.Chains); diff != "" {
				t.Errorf("chains (-want +got):\n%s", diff)
			}
		})
	}
}

// The write of a place would keep a head in passing.
func TestNoPlaceKeepsAHeadThatContradictsTheLedger(t *testing.T) {
	kept := v1alpha1.EvidenceChain{PolicyUID: policyUID, Sequence: 7, Digest: digestOf("7")}
	w := chained(t, kept)
	w.Evidence.chains = map[string]*chain{policyUID: {
		head: evidence.Head{Sequence: 8, Digest: digestOf("8")}, order: []event{{at: evidence.Head{Sequence: 7, Digest: digestOf("a")}}},
	}}
	r := w.open()
	r.policy = w.policy
	for _, p := range r.places() {
		if verdict, err := r.reserveIn(t.Context(), p, 0); err != nil || !verdict.Granted {
			t.Fatalf("the ledger answers %+v, %v", verdict, err)
		}
	}
	if diff := cmp.Diff([]v1alpha1.EvidenceChain{kept}, w.readLedgerNow("production").Status.Chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
}

// After such a conflict the process forgets its own record, so that no further record goes on
// from it: the chain stands still until a person has looked.
func TestNoRecordGoesOnFromOneThatTookALostPlace(t *testing.T) {
	w := chained(t, v1alpha1.EvidenceChain{PolicyUID: policyUID, Sequence: 1, Digest: digestOf("1")})
	w.Evidence.chains = map[string]*chain{policyUID: {told: map[string]evidence.Head{}, signed: map[string]bool{}, decided: map[evidence.Head]string{}}}
	r := w.open()
	for _, kind := range []evidence.Kind{evidence.KindPlanCreated, evidence.KindPlanPaused, evidence.KindPlanResumed} {
		record := r.common(kind, w.clock.Now())
		record.Subject, record.Result.State = r.subject(), "Running"
		_, err := r.tell(t.Context(), record)
		if conflict := (*evidence.ConflictError)(nil); !errors.As(err, &conflict) {
			t.Errorf("telling %s ends with %v", kind, err)
		}
	}
	records := slices.DeleteFunc(w.records.Names(), func(name string) bool { _, _, isRecord := evidence.ParseName(name); return !isRecord })
	if len(records) != 1 {
		t.Errorf("there are the records %v, want the first one alone", records)
	}
}

func TestTheHeadOfAChainIsItsOwn(t *testing.T) {
	w := chained(t, v1alpha1.EvidenceChain{PolicyUID: "other", Sequence: 3, Digest: digestOf("3")}, v1alpha1.EvidenceChain{PolicyUID: "first", Sequence: 7, Digest: digestOf("7")})
	heads := LedgerHeads{w.Executor}
	for chain, want := range map[string]evidence.Head{
		"first": {Sequence: 7, Digest: digestOf("7")}, "other": {Sequence: 3, Digest: digestOf("3")}, "new": {},
	} {
		if got, err := heads.Head(t.Context(), "production", chain); err != nil || got != want {
			t.Errorf("the head of %s is %+v, %v; want %+v", chain, got, err, want)
		}
	}
	w.failing("get RemediationLedger", errNetwork)
	if got, err := heads.Head(t.Context(), "production", "first"); err == nil {
		t.Errorf("from a ledger that cannot be read comes %+v", got)
	}
}

// A ledger has room for 256 chains. Those of policies that are gone make room.
func TestAFullLedgerForgetsTheChainsOfPoliciesThatAreGone(t *testing.T) {
	full := func(there int) (*world, []string) {
		var chains []v1alpha1.EvidenceChain
		for i := range maxChains {
			chains = append(chains, v1alpha1.EvidenceChain{PolicyUID: fmt.Sprint("policy-", i), Sequence: 1, Digest: digestOf("1")})
		}
		w := chained(t, chains...)
		var want []string
		for i := range there {
			policy := w.newPolicy()
			policy.Name = fmt.Sprint("p", i)
			if err := w.Client.Create(t.Context(), policy); err != nil {
				t.Fatal(err)
			}
			policy.UID = types.UID(chains[i].PolicyUID)
			if err := w.Client.Update(t.Context(), policy); err != nil {
				t.Fatal(err)
			}
			want = append(want, chains[i].PolicyUID)
		}
		return w, want
	}
	head := evidence.Head{Sequence: 1, Digest: digestOf("a")}
	t.Run("some are gone", func(t *testing.T) {
		w, want := full(3)
		if err := (LedgerHeads{w.Executor}).Keep(t.Context(), "production", "new", head); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range w.readLedgerNow("production").Status.Chains {
			got = append(got, c.PolicyUID)
		}
		if diff := cmp.Diff(append(want, "new"), got); diff != "" {
			t.Errorf("chains (-want +got):\n%s", diff)
		}
	})
	t.Run("the chain of an Environment's releases stays", func(t *testing.T) {
		w, _ := full(0)
		environment := &v1alpha1.Environment{}
		if err := w.Client.Get(t.Context(), types.NamespacedName{Name: "production"}, environment); err != nil {
			t.Fatal(err)
		}
		l := w.readLedgerNow("production")
		l.Status.Chains[7].PolicyUID = string(environment.UID)
		if err := w.Client.Status().Update(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if err := (LedgerHeads{w.Executor}).Keep(t.Context(), "production", "new", head); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range w.readLedgerNow("production").Status.Chains {
			got = append(got, c.PolicyUID)
		}
		if diff := cmp.Diff([]string{string(environment.UID), "new"}, got); diff != "" {
			t.Errorf("chains (-want +got):\n%s", diff)
		}
	})
	t.Run("none is gone", func(t *testing.T) {
		w, _ := full(maxChains)
		if err := (LedgerHeads{w.Executor}).Keep(t.Context(), "production", "new", head); err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the last place is taken without a look at the policies", func(t *testing.T) {
		w, _ := full(0)
		l := w.readLedgerNow("production")
		l.Status.Chains = l.Status.Chains[1:]
		if err := w.Client.Status().Update(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if err := (LedgerHeads{w.Executor}).Keep(t.Context(), "production", "new", head); err != nil {
			t.Fatal(err)
		}
		if got := len(w.readLedgerNow("production").Status.Chains); got != maxChains {
			t.Errorf("%d chains are left", got)
		}
	})
	t.Run("the policies cannot be listed", func(t *testing.T) {
		w, _ := full(0)
		w.failing("list RemediationPolicyList", errNetwork)
		if err := (LedgerHeads{w.Executor}).Keep(t.Context(), "production", "new", head); err == nil {
			t.Error("it is kept")
		}
	})
	t.Run("the ledger cannot be written", func(t *testing.T) {
		w := chained(t)
		w.failing("update RemediationLedger", errNetwork)
		if err := (LedgerHeads{w.Executor}).Keep(t.Context(), "production", "new", head); err == nil {
			t.Error("it is kept")
		}
	})
}
