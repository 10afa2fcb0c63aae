// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

// chain of n steps, the last ones signed with the second key.
func chain(t *testing.T, n, rotatedFrom int) (*storetest.Memory, []evidence.Sealed) {
	t.Helper()
	store := &storetest.Memory{}
	var sealed []evidence.Sealed
	head := evidence.Head{}
	for i := range n {
		k := byte(1)
		if i >= rotatedFrom {
			k = 2
		}
		s := appended(t, writer(t, store, k), head, step(int32(i)))
		head = s.Head()
		sealed = append(sealed, s)
	}
	return store, sealed
}

// rotated says that the second key signs from a record on, counted from 0.
func rotated(t *testing.T, from int) []evidence.KeyEnd {
	t.Helper()
	return []evidence.KeyEnd{{Chain: policyUID, Key: key(t, 1).KeyID(), Last: int64(from), Successor: key(t, 2).KeyID()}}
}

// finding is the part of a problem that a case states.
type finding struct {
	Kind     evidence.ProblemKind
	Sequence int64
}

func findings(problems []evidence.Problem) []finding {
	var out []finding
	for _, p := range problems {
		out = append(out, finding{p.Kind, p.Sequence})
	}
	return out
}

func TestVerify_FindsWhatIsWrong(t *testing.T) {
	type store = *storetest.Memory
	type records = []evidence.Sealed
	name := func(n int64) string { return evidence.Name(policyUID, n) }
	cases := map[string]struct {
		change func(*testing.T, store, records)
		keys   []byte
		want   []finding
	}{
		"nothing": {change: func(*testing.T, store, records) {}},
		"a record cut off is named, and those after it are not": {
			change: func(_ *testing.T, m store, r records) { m.Put(name(3), r[2].Envelope[:100]) },
			want:   []finding{{evidence.ProblemDamaged, 3}},
		},
		"a bit of the signature": {
			change: func(_ *testing.T, m store, r records) { m.Put(name(3), flipped(r[2].Envelope, `"sig":"`)) },
			want:   []finding{{evidence.ProblemBadSignature, 3}},
		},
		"a bit of the payload breaks the next link too": {
			change: func(_ *testing.T, m store, r records) { m.Put(name(3), flipped(r[2].Envelope, `"payload":"`)) },
			want:   []finding{{evidence.ProblemBadSignature, 3}, {evidence.ProblemBrokenLink, 4}},
		},
		"a record replaced by another, properly signed": {
			change: func(t *testing.T, m store, r records) {
				m.Put(name(3), seal(t, key(t, 1), placed(step(9), 3, r[1].Digest)).Envelope)
			},
			want: []finding{{evidence.ProblemBrokenLink, 4}},
		},
		"a record that is gone": {
			change: func(_ *testing.T, m store, _ records) { m.Remove(name(3)) },
			want:   []finding{{evidence.ProblemGap, 3}},
		},
		"two that are gone": {
			change: func(_ *testing.T, m store, _ records) { m.Remove(name(2)); m.Remove(name(3)) },
			want:   []finding{{evidence.ProblemGap, 2}},
		},
		"the first that is gone": {
			change: func(_ *testing.T, m store, _ records) { m.Remove(name(1)) },
			want:   []finding{{evidence.ProblemGap, 1}},
		},
		"the last but one that is gone": {
			change: func(_ *testing.T, m store, _ records) { m.Remove(name(5)) },
			want:   []finding{{evidence.ProblemGap, 5}},
		},
		"only the last that is gone": {
			change: func(_ *testing.T, m store, _ records) { m.Remove(name(6)) },
			want:   []finding{{evidence.ProblemCutOff, 6}},
		},
		"the end that is gone": {
			change: func(_ *testing.T, m store, _ records) { m.Remove(name(5)); m.Remove(name(6)) },
			want:   []finding{{evidence.ProblemCutOff, 6}},
		},
		"all that is gone": {
			change: func(_ *testing.T, m store, _ records) {
				for _, n := range m.Names() {
					m.Remove(n)
				}
			},
			want: []finding{{evidence.ProblemCutOff, 6}},
		},
		"two that changed places": {
			change: func(_ *testing.T, m store, r records) {
				m.Put(name(3), r[3].Envelope)
				m.Put(name(4), r[2].Envelope)
			},
			want: []finding{{evidence.ProblemMisplaced, 3}, {evidence.ProblemMisplaced, 4}, {evidence.ProblemBrokenLink, 5}},
		},
		"a record of another chain": {
			change: func(t *testing.T, m store, _ records) {
				r := step(2)
				r.Chain.UID, r.Policy = "other", nil
				m.Put(name(3), seal(t, key(t, 1), placed(r, 3, digest("a"))).Envelope)
			},
			want: []finding{{evidence.ProblemMisplaced, 3}, {evidence.ProblemBrokenLink, 4}},
		},
		"an event told twice": {
			change: func(t *testing.T, m store, r records) {
				m.Put(name(6), seal(t, key(t, 2), placed(step(0), 6, r[4].Digest)).Envelope)
			},
			want: []finding{{evidence.ProblemRepeated, 6}, {evidence.ProblemOtherHead, 6}},
		},
		"a last record that is another one": {
			change: func(t *testing.T, m store, r records) {
				m.Put(name(6), seal(t, key(t, 2), placed(step(9), 6, r[4].Digest)).Envelope)
			},
			want: []finding{{evidence.ProblemOtherHead, 6}},
		},
		"the key of before a rotation that was forgotten": {
			change: func(*testing.T, store, records) {}, keys: []byte{2},
			want: []finding{{evidence.ProblemUnknownKey, 1}, {evidence.ProblemUnknownKey, 2}, {evidence.ProblemUnknownKey, 3}, {evidence.ProblemUnknownKey, 4}},
		},
		"a statement of another type, signed with our key": {
			change: func(t *testing.T, m store, r records) {
				other := bytes.Replace(r[2].Payload, []byte("remediation/v1"), []byte("promotion/v1"), 1)
				m.Put(name(3), signed(t, key(t, 1), evidence.PayloadType, other))
			},
			want: []finding{{evidence.ProblemWrongType, 3}, {evidence.ProblemBrokenLink, 4}},
		},
		"something else in the store": {
			change: func(_ *testing.T, m store, _ records) { m.Put(policyUID+"/notes.txt", nil) },
			want:   []finding{{evidence.ProblemForeign, 0}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store, sealed := chain(t, 6, 4)
			tc.change(t, store, sealed)
			keys := keyring(t, key(t, 1), key(t, 2))
			if tc.keys != nil {
				keys = keyring(t, key(t, tc.keys[0]))
			}
			report, err := evidence.Verify(t.Context(), store, keys,
				evidence.Options{Heads: map[string]evidence.Head{policyUID: sealed[5].Head()}, Ends: rotated(t, 4)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, findings(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s\n%v", diff, report.Problems)
			}
			for _, p := range report.Problems {
				if p.Text == "" || p.Chain != policyUID {
					t.Errorf("no sentence or no chain: %+v", p)
				}
			}
			first, found := report.First()
			if found != (len(tc.want) > 0) || found && first.Kind != tc.want[0].Kind {
				t.Errorf("first: got %v %t", first, found)
			}
		})
	}
}

// flipped has one character after a mark changed to another of the same alphabet.
func flipped(data []byte, after string) []byte {
	out := bytes.Clone(data)
	i := bytes.Index(out, []byte(after)) + len(after) + 20
	if out[i] == 'A' {
		out[i] = 'B'
	} else {
		out[i] = 'A'
	}
	return out
}

func TestVerify_TellsWhichKeySignedWhat(t *testing.T) {
	store, sealed := chain(t, 5, 3)
	report, err := evidence.Verify(t.Context(), store, keyring(t, key(t, 1), key(t, 2)), evidence.Options{Ends: rotated(t, 3)})
	if err != nil {
		t.Fatal(err)
	}
	want := &evidence.Report{
		Problems: []evidence.Problem{},
		Chains: []evidence.ChainReport{{
			UID: policyUID, Records: 5, Last: sealed[4].Head(),
			Keys: []evidence.KeySpan{{KeyID: key(t, 1).KeyID(), From: 1, To: 3}, {KeyID: key(t, 2).KeyID(), From: 4, To: 5}},
		}},
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVerify_StartsWhereRetentionEnded(t *testing.T) {
	store, sealed := chain(t, 6, 6)
	for _, s := range sealed[:3] {
		store.Remove(s.Name)
	}
	o := evidence.Options{
		Starts: map[string]evidence.Head{policyUID: sealed[2].Head()},
		Heads:  map[string]evidence.Head{policyUID: sealed[4].Head()},
	}
	report, err := evidence.Verify(t.Context(), store, keyring(t, key(t, 1)), o)
	if err != nil || !report.OK() || report.Chains[0].Records != 3 || report.Chains[0].Ahead != 1 {
		t.Errorf("got %+v, %v", report, err)
	}
	o.Starts[policyUID] = evidence.Head{Sequence: 3, Digest: digest("9")}
	report, err = evidence.Verify(t.Context(), store, keyring(t, key(t, 1)), o)
	if err != nil || len(report.Problems) != 1 || report.Problems[0].Kind != evidence.ProblemBrokenLink {
		t.Errorf("another start: got %+v, %v", report, err)
	}
}

func TestVerify_ComparesWithPlans(t *testing.T) {
	store, sealed := chain(t, 3, 3)
	digests := []string{sealed[0].Digest, sealed[1].Digest, sealed[2].Digest}
	assessed := appended(t, writer(t, store, 1), sealed[2].Head(), assessment(0))
	cases := map[string]struct {
		plans []evidence.PlanStatus
		want  []finding
	}{
		"the same on both sides":         {[]evidence.PlanStatus{{UID: planUID, Chain: policyUID, Digests: digests}}, nil},
		"plans that nobody gave":         {nil, nil},
		"a record that the status lacks": {[]evidence.PlanStatus{{UID: planUID, Chain: policyUID, Digests: digests[:2]}}, []finding{{evidence.ProblemNotInStatus, 3}}},
		"a record that the store lacks": {
			[]evidence.PlanStatus{{UID: planUID, Chain: policyUID, Digests: append([]string{digest("9")}, digests...)}},
			[]finding{{evidence.ProblemNotStored, 0}},
		},
		"a plan without any record": {
			[]evidence.PlanStatus{{UID: "other", Chain: "gone", Digests: []string{digest("9")}}},
			[]finding{{evidence.ProblemNotStored, 0}},
		},
		"an assessment that came after the status was read": {[]evidence.PlanStatus{{UID: planUID, Chain: policyUID, Digests: digests}}, nil},
		"an assessment that the status names":               {[]evidence.PlanStatus{{UID: planUID, Chain: policyUID, Digests: append(slices.Clone(digests), assessed.Digest)}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report, err := evidence.Verify(t.Context(), store, keyring(t, key(t, 1)), evidence.Options{Plans: tc.plans})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, findings(report.Problems)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestVerify_UnreadableIsNotVerified: what could not be read is no good record,
// and no bad one.
func TestVerify_UnreadableIsNotVerified(t *testing.T) {
	store, _ := chain(t, 3, 3)
	report, err := evidence.Verify(t.Context(), unreadable{store}, keyring(t, key(t, 1)), evidence.Options{})
	var failed *evidence.StoreError
	if !errors.As(err, &failed) || report != nil {
		t.Errorf("got %+v, %v", report, err)
	}
}

// unreadable store: it lists, and does not give.
type unreadable struct{ *storetest.Memory }

func (unreadable) Read(_ context.Context, name string) ([]byte, error) {
	return nil, &evidence.StoreError{Op: "read", Name: name, Reason: evidence.StoreDenied, Err: errors.New("no")}
}

// A store holds the chains of many policies. The end of each is compared with its own
// head.
func TestVerify_ComparesTheEndOfEachChain(t *testing.T) {
	const first, second = "a-policy", "b-policy"
	store, heads := &storetest.Memory{}, map[string]evidence.Head{}
	for _, uid := range []string{second, first} {
		head := evidence.Head{}
		for i := range 3 {
			r := step(int32(i))
			r.Chain.UID, r.Policy = uid, nil
			head = appended(t, writer(t, store, 1), head, r).Head()
		}
		heads[uid] = head
	}
	type cut struct {
		Chain string
		Found finding
	}
	for name, test := range map[string]struct {
		gone []string
		want []cut
	}{
		"none is cut off":    {nil, nil},
		"the first is":       {[]string{evidence.Name(first, 3)}, []cut{{first, finding{evidence.ProblemCutOff, 3}}}},
		"the second is":      {[]string{evidence.Name(second, 3)}, []cut{{second, finding{evidence.ProblemCutOff, 3}}}},
		"both are":           {[]string{evidence.Name(first, 3), evidence.Name(second, 3)}, []cut{{first, finding{evidence.ProblemCutOff, 3}}, {second, finding{evidence.ProblemCutOff, 3}}}},
		"the first has gone": {[]string{evidence.Name(first, 1), evidence.Name(first, 2), evidence.Name(first, 3)}, []cut{{first, finding{evidence.ProblemCutOff, 3}}}},
	} {
		t.Run(name, func(t *testing.T) {
			part := &storetest.Memory{}
			for _, n := range store.Names() {
				data, err := store.Read(t.Context(), n)
				if err != nil {
					t.Fatal(err)
				}
				part.Put(n, data)
			}
			for _, n := range test.gone {
				part.Remove(n)
			}
			report, err := evidence.Verify(t.Context(), part, keyring(t, key(t, 1)), evidence.Options{Heads: heads})
			if err != nil {
				t.Fatal(err)
			}
			var got []cut
			for _, p := range report.Problems {
				got = append(got, cut{p.Chain, finding{p.Kind, p.Sequence}})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if len(report.Chains) != 2 || report.Chains[0].UID != first || report.Chains[1].UID != second {
				t.Errorf("the chains are %+v", report.Chains)
			}
		})
	}
}
