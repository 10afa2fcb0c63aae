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

// record tells an event of the plan, of which number n says which one.
func (w *world) record(n int32) evidence.Record {
	r := (&run{Executor: w.Executor, plan: w.plan}).common(evidence.KindPlanPaused, epoch)
	r.Subject = evidence.Subject{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "RemediationPlan", Namespace: "shop", Name: "production-1",
		UID: planUID, Hash: PlanDigest(&w.plan.Spec.Plan),
	}
	r.Occurrence = n
	return r
}

// another is a recorder that knows nothing of what the world's own one did.
func (w *world) another() *Recorder {
	return &Recorder{Writer: w.Evidence.Writer, Heads: w.Evidence.Heads, Builder: w.Evidence.Builder, Now: w.clock.Now}
}

func (w *world) tell(r *Recorder, n int32) evidence.Head {
	w.Helper()
	head, err := r.Tell(w.Context(), "production", w.record(n))
	if err != nil {
		w.Fatalf("telling event %d: %v", n, err)
	}
	return head
}

// verify reads all records, and compares the end of the chain with its kept head.
func (w *world) verify(records int) {
	w.Helper()
	head, err := LedgerHeads{w.Executor}.Head(w.Context(), "production", policyUID)
	if err != nil {
		w.Fatal(err)
	}
	report, err := evidence.Verify(w.Context(), w.records, w.Evidence.Writer.Keys, evidence.Options{Heads: map[string]evidence.Head{policyUID: head}})
	if err != nil || !report.OK() || len(report.Chains) != 1 || report.Chains[0].Records != records || report.Chains[0].Ahead != 0 {
		w.Errorf("the chain is %+v, %v; want %d records", report, err, records)
	}
}

func TestAnEventIsRecordedOnceHoweverOftenItIsTold(t *testing.T) {
	tests := map[string]func(w *world) (first, second evidence.Head){
		"told twice by one process": func(w *world) (first, second evidence.Head) {
			return w.tell(w.Evidence, 1), w.tell(w.Evidence, 1)
		},
		"told by one process after another": func(w *world) (first, second evidence.Head) {
			return w.tell(w.Evidence, 1), w.tell(w.another(), 1)
		},
		"told again after its head could not be kept": func(w *world) (first, second evidence.Head) {
			w.failing("update RemediationLedger", errNetwork)
			if head, err := w.Evidence.Tell(w.Context(), "production", w.record(1)); err == nil {
				w.Errorf("a record whose head is not kept is told: %+v", head)
			}
			w.fails = nil
			first = w.tell(w.Evidence, 1)
			return first, w.tell(w.another(), 1)
		},
		"told by another process after its head could not be kept": func(w *world) (first, second evidence.Head) {
			w.failing("update RemediationLedger", errNetwork)
			if head, err := w.Evidence.Tell(w.Context(), "production", w.record(1)); err == nil {
				w.Errorf("a record whose head is not kept is told: %+v", head)
			}
			w.fails = nil
			first = w.tell(w.another(), 1)
			return first, w.tell(w.Evidence, 1)
		},
		"told again after the answer of the store was lost": func(w *world) (first, second evidence.Head) {
			w.records.Fault = func(op string) error {
				if op == "after create" {
					return errNetwork
				}
				return nil
			}
			if head, err := w.Evidence.Tell(w.Context(), "production", w.record(1)); err == nil {
				w.Errorf("a record without an answer is told: %+v", head)
			}
			w.records.Fault = nil
			first = w.tell(w.Evidence, 1)
			return first, w.tell(w.another(), 1)
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := chained(t)
			first, second := test(w)
			if first != second || first.Sequence != 1 {
				t.Errorf("the record is %+v, and then %+v", first, second)
			}
			w.verify(1)
		})
	}
}

func TestTwoProcessesTellTheEventsOfOneChain(t *testing.T) {
	w := chained(t)
	other := w.another()
	w.tell(other, 1) // it knows the chain up to here
	w.tell(w.Evidence, 2)
	if head, err := other.Tell(t.Context(), "production", w.record(3)); err == nil {
		t.Errorf("over the record of another process goes %+v", head)
	}
	if head := w.tell(other, 3); head.Sequence != 3 {
		t.Errorf("the third record is %+v", head)
	}
	if head := w.tell(other, 2); head.Sequence != 2 {
		t.Errorf("the record of the other process is %+v", head)
	}
	w.verify(3)
}

func TestAProcessGoesOnAfterARecordWhoseHeadWasNotKept(t *testing.T) {
	w := chained(t)
	w.failing("update RemediationLedger", errNetwork)
	if head, err := w.Evidence.Tell(t.Context(), "production", w.record(1)); err == nil {
		t.Errorf("a record whose head is not kept is told: %+v", head)
	}
	w.fails = nil
	if head := w.tell(w.another(), 2); head.Sequence != 2 {
		t.Errorf("the next event is told as %+v", head)
	}
	w.verify(2)
}

func TestAProcessThatMeetsAChainLooksBackAndNotForEver(t *testing.T) {
	w := chained(t)
	for n := range int32(lookBack + 2) {
		w.tell(w.Evidence, n)
	}
	other := w.another()
	if head := w.tell(other, 2); head.Sequence != 3 {
		t.Errorf("an event of %d records ago is told again as %+v", lookBack, head)
	}
	for _, r := range []*Recorder{w.Evidence, other} {
		if c := r.chains[policyUID]; len(c.told) != lookBack || len(c.order) != lookBack {
			t.Errorf("%d events are kept in memory, in an order of %d", len(c.told), len(c.order))
		}
	}
	w.verify(lookBack + 2)
}

func TestRecordsThatRetentionMovedAwayAreNoObstacle(t *testing.T) {
	w := chained(t)
	for n := range int32(3) {
		w.tell(w.Evidence, n)
	}
	w.records.Remove(evidence.Name(policyUID, 1))
	other := w.another()
	if head := w.tell(other, 1); head.Sequence != 2 {
		t.Errorf("the second event is told again as %+v", head)
	}
	if head := w.tell(other, 3); head.Sequence != 4 {
		t.Errorf("a new event is told as %+v", head)
	}
}

func TestAChainThatCannotBeBelievedIsNotGoneOnWith(t *testing.T) {
	tests := map[string]func(*world){
		"a record is damaged":                  func(w *world) { w.records.Put(evidence.Name(policyUID, 1), []byte("{}")) },
		"a record after the head is damaged":   func(w *world) { w.records.Put(evidence.Name(policyUID, 3), []byte("{}")) },
		"the head cannot be read":              func(w *world) { w.failing("get RemediationLedger", errNetwork) },
		"a record cannot be read for a moment": func(w *world) { w.records.unread = errNetwork },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			w := chained(t)
			w.tell(w.Evidence, 0)
			w.tell(w.Evidence, 1)
			before := len(w.records.Names())
			damage(w)
			names := len(w.records.Names())
			if head, err := w.another().Tell(t.Context(), "production", w.record(2)); err == nil {
				t.Errorf("it goes on with %+v", head)
			}
			if after := len(w.records.Names()); after != names {
				t.Errorf("%d records are stored, %d before", after, before)
			}
		})
	}
}

func TestEachRecordNamesItsBuilderWhoeverMadeIt(t *testing.T) {
	w := chained(t)
	w.tell(w.Evidence, 1)
	sealed, err := w.Evidence.read(t.Context(), evidence.Name(policyUID, 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := sealed.Record.Builder; got != (evidence.Builder{Version: "test"}) {
		t.Errorf("the builder is %+v", got)
	}
	if _, err := w.Evidence.read(t.Context(), evidence.Name(policyUID, 2)); err == nil {
		t.Error("a record that is not there is read")
	}
}
