// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// fakeEnds are the declared ends of keys; err is the answer to every call.
type fakeEnds struct {
	ends []evidence.KeyEnd
	err  error
}

func (f *fakeEnds) Ends(context.Context) ([]evidence.KeyEnd, error) { return f.ends, f.err }

func (f *fakeEnds) Declare(_ context.Context, end evidence.KeyEnd) error {
	if f.err == nil {
		f.ends = evidence.AddKeyEnd(f.ends, end)
	}
	return f.err
}

// rotated is a recorder of the next process, which signs with key n and knows the keys of
// before; with says that it has their private halves too.
func (w *world) rotated(n byte, with bool, ends KeyEnds) *Recorder {
	w.Helper()
	public := []ed25519.PublicKey{newKey(w.T, n).Public()}
	r := w.another()
	r.Writer.Signer, r.Ends = newKey(w.T, n), ends
	for i := byte(1); i < n; i++ {
		public = append(public, newKey(w.T, i).Public())
		if with {
			r.Writer.Old = append(r.Writer.Old, newKey(w.T, i))
		}
	}
	ring, err := evidence.NewKeyring(public...)
	if err != nil {
		w.Fatal(err)
	}
	r.Writer.Keys = ring
	return r
}

// signers are which key signed which records, and the problems of the chain.
func (w *world) signers(r *Recorder, ends *fakeEnds) ([]evidence.KeySpan, []evidence.Problem) {
	w.Helper()
	report, err := evidence.Verify(w.Context(), w.records, r.Writer.Keys, evidence.Options{Ends: ends.ends})
	if err != nil {
		w.Fatal(err)
	}
	return report.Chains[0].Keys, report.Problems
}

func TestAfterAChangeOfKeysTheOldOneSignsNoFurtherRecord(t *testing.T) {
	first, second := newKey(t, 1).KeyID(), newKey(t, 2).KeyID()
	for name, test := range map[string]struct {
		with bool
		want []evidence.KeySpan
		ends []evidence.KeyEnd
	}{
		"both keys are mounted": {true, []evidence.KeySpan{{KeyID: first, From: 1, To: 3}, {KeyID: second, From: 4, To: 4}}, nil},
		"the private half of the old key is gone": {
			false, []evidence.KeySpan{{KeyID: first, From: 1, To: 2}, {KeyID: second, From: 3, To: 4}},
			[]evidence.KeyEnd{{Chain: policyUID, Key: first, Last: 2, Successor: second}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, ends := chained(t), &fakeEnds{}
			w.tell(w.Evidence, 1)
			w.tell(w.Evidence, 2)
			next := w.rotated(2, test.with, ends)
			if err := next.Meet(t.Context(), "production", policyUID); err != nil {
				t.Fatal(err)
			}
			w.verifyWith(next, ends, 3)
			if head := w.tell(next, 4); head.Sequence != 4 {
				t.Errorf("the first record of the new key is %+v", head)
			}
			if head := w.tell(w.rotated(2, test.with, ends), 2); head.Sequence != 2 {
				t.Errorf("the next process tells an event again as %+v", head)
			}
			spans, problems := w.signers(next, ends)
			if diff := cmp.Diff(test.want, spans); diff != "" || len(problems) > 0 {
				t.Errorf("%v; signers (-want +got):\n%s", problems, diff)
			}
			if diff := cmp.Diff(test.ends, ends.ends); diff != "" {
				t.Errorf("declared ends (-want +got):\n%s", diff)
			}
			for range 2 { // it meets the chain anew each time
				if head, err := w.Evidence.Tell(t.Context(), "production", w.record(5)); err == nil {
					t.Errorf("the process with the old key tells %+v", head)
				}
			}
			w.verifyWith(next, ends, 4)
		})
	}
}

// TestAChangeOfKeysInAChainOfReleasesIsOneOfReleases: a further change of keys knows the Environment as well.
func TestAChangeOfKeysInAChainOfReleasesIsOneOfReleases(t *testing.T) {
	for name, environment := range map[string]string{"of an Environment": "production", "of no Environment": ""} {
		t.Run(name, func(t *testing.T) {
			w, ends := chained(t), &fakeEnds{}
			decided := w.record(1)
			decided.Kind, decided.Policy, decided.Plan, decided.Step, decided.Intent, decided.Drift, decided.Severity = evidence.KindReleaseDecision, nil, nil, nil, nil, nil, nil
			decided.Result = evidence.Result{}
			decided.Delivery = &evidence.Delivery{
				Environment: environment, Release: &evidence.Release{Namespace: "shop", Name: "web", UID: "r-1"},
				Decision: &evidence.Decision{Number: 1, Event: "ab.started"},
			}
			if _, err := w.Evidence.Tell(t.Context(), "production", decided); err != nil {
				t.Fatal(err)
			}
			var last *Recorder
			for n := byte(2); n <= 3; n++ {
				last = w.rotated(n, true, ends)
				if err := last.Meet(t.Context(), "production", policyUID); err != nil {
					t.Fatal(err)
				}
			}
			records, err := last.Delivered(t.Context(), "production", policyUID)
			if err != nil || len(records) != 3 {
				t.Fatalf("%d records, %v", len(records), err)
			}
			want := map[string]evidence.Subject{
				"production": {APIVersion: "plumbline.dev/v1alpha1", Kind: "Environment", Name: "production", UID: policyUID},
				"":           {APIVersion: "v1", Kind: "Namespace", Name: policyUID, UID: policyUID},
			}[environment]
			for i := range records[1:] {
				r := &records[i+1]
				want.Hash = r.Subject.Hash
				if diff := cmp.Diff(want, r.Subject); diff != "" || r.Kind != evidence.KindKeySucceeded || r.Delivery.Environment != environment {
					t.Errorf("%+v; the subject (-want +got):\n%s", r, diff)
				}
			}
			before, err := last.ReadBefore(t.Context(), policyUID, 3)
			if err != nil || len(before) != 2 {
				t.Errorf("%d records before the last one, %v", len(before), err)
			}
		})
	}
}

// verifyWith is verify, for a chain that has seen several keys.
func (w *world) verifyWith(r *Recorder, ends *fakeEnds, records int) {
	w.Helper()
	head, err := LedgerHeads{w.Executor}.Head(w.Context(), "production", policyUID)
	if err != nil {
		w.Fatal(err)
	}
	report, err := evidence.Verify(w.Context(), w.records, r.Writer.Keys, evidence.Options{
		Ends: ends.ends, Heads: map[string]evidence.Head{policyUID: head},
	})
	if err != nil || !report.OK() || report.Chains[0].Records != records || report.Chains[0].Ahead != 0 {
		w.Errorf("the chain is %+v, %v; want %d records", report, err, records)
	}
}

func TestAKeyThatIsChangedTwiceHasOneRangeForEach(t *testing.T) {
	w, ends := chained(t), &fakeEnds{}
	w.tell(w.Evidence, 1)
	w.tell(w.rotated(2, true, ends), 2)
	w.tell(w.rotated(3, false, ends), 3)
	w.verifyWith(w.rotated(3, false, ends), ends, 5)
}

// A person puts the old key back. Its range has ended.
func TestAnExecutorWithAKeyOfBeforeWritesNoRecord(t *testing.T) {
	w, ends := chained(t), &fakeEnds{}
	w.tell(w.Evidence, 1)
	next := w.rotated(2, true, ends)
	w.tell(next, 2)
	back := w.rotated(2, true, ends)
	back.Writer.Signer = newKey(t, 1)
	if _, err := back.Tell(t.Context(), "production", w.record(3)); err == nil || !strings.Contains(err.Error(), "has a successor") {
		t.Errorf("got %v", err)
	}
	w.verifyWith(next, ends, 3)
}

func TestTheRangeOfAKeyEndsHoweverTheSuccessorDied(t *testing.T) {
	for name, spoil := range map[string]func(w *world, ends *fakeEnds){
		"before the end was declared":     func(_ *world, ends *fakeEnds) { ends.err = errNetwork },
		"before the head was kept":        func(w *world, _ *fakeEnds) { w.failing("update RemediationLedger", errNetwork) },
		"before the store gave an answer": func(w *world, _ *fakeEnds) { w.records.Fault = lostAnswer },
	} {
		for half, with := range map[string]bool{"both keys are mounted": true, "the old private key is gone": false} {
			t.Run(name+", "+half, func(t *testing.T) {
				w, ends := chained(t), &fakeEnds{}
				w.tell(w.Evidence, 1)
				spoil(w, ends)
				if err := w.rotated(2, with, ends).Meet(t.Context(), "production", policyUID); err == nil {
					t.Fatal("it did not die")
				}
				w.fails, w.records.Fault, ends.err = nil, nil, nil
				next := w.rotated(2, with, ends)
				if head := w.tell(next, 2); head.Sequence != 3 {
					t.Errorf("the first record of the new key is %+v", head)
				}
				w.verifyWith(next, ends, 3)
			})
		}
	}
}

func lostAnswer(op string) error {
	if op == "after create" {
		return errNetwork
	}
	return nil
}
