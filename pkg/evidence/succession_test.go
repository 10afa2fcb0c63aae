// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

// rotation is a chain of three records by the first key, which the second one is to go on.
type rotation struct {
	*testing.T
	store  *storetest.Memory
	tail   evidence.Tail
	sealed []evidence.Sealed
	ends   []evidence.KeyEnd
}

func newRotation(t *testing.T) *rotation {
	t.Helper()
	r := &rotation{T: t, store: &storetest.Memory{}}
	for i := range 3 {
		r.sign(1, step(int32(i)))
	}
	return r
}

// writer of the second key; with holds the first one too.
func (r *rotation) writer(with bool) evidence.Writer {
	w := writer(r.T, r.store, 2)
	if with {
		w.Old = []evidence.Signer{key(r.T, 1)}
	}
	return w
}

// sign puts a record at the end of the chain, with whichever key.
func (r *rotation) sign(n byte, record evidence.Record) {
	r.Helper()
	s := seal(r.T, key(r.T, n), placed(record, r.tail.Sequence+1, r.tail.Digest))
	if err := r.store.Create(r.Context(), s.Name, s.Envelope); err != nil {
		r.Fatal(err)
	}
	r.tail.Head, r.sealed = s.Head(), append(r.sealed, s)
}

// rotate has the second key succeed the first one.
func (r *rotation) rotate(with bool) {
	r.Helper()
	tail, _, err := r.writer(with).CatchUp(r.Context(), policyUID, r.tail.Head, r.ends)
	if err != nil {
		r.Fatal(err)
	}
	s, end, err := r.writer(with).Succeed(r.Context(), tail, succession())
	if err != nil || (end == nil) != with {
		r.Fatalf("got the end %v, %v", end, err)
	}
	if end != nil {
		r.ends = evidence.AddKeyEnd(r.ends, *end)
	}
	r.tail.Head, r.sealed = s.Head(), append(r.sealed, s)
}

func succession() evidence.Record {
	r := decision(evidence.KindKeySucceeded, 0)
	r.Plan, r.Result = nil, evidence.Result{}
	return r
}

// succeeded names keys whose ids are one letter, repeated.
func succeeded(predecessor, successor string) *evidence.Succession {
	return &evidence.Succession{Predecessor: strings.Repeat(predecessor, 64), Successor: strings.Repeat(successor, 64)}
}

func (r *rotation) problems() []finding {
	r.Helper()
	report, err := evidence.Verify(r.Context(), r.store, keyring(r.T, key(r.T, 1), key(r.T, 2), key(r.T, 3)), evidence.Options{Ends: r.ends})
	if err != nil {
		r.Fatal(err)
	}
	return findings(report.Problems)
}

// The review of remediation: a record that was signed with a key of before a rotation was
// accepted by the executor and by verify.
func TestARetiredKeySignsNoFurtherRecord(t *testing.T) {
	for name, with := range map[string]bool{"the old key signed who succeeds it": true, "the private half of the old key was gone": false} {
		t.Run(name, func(t *testing.T) {
			r := newRotation(t)
			r.rotate(with)
			r.sign(2, step(3))
			if found := r.problems(); found != nil {
				t.Fatalf("an honest rotation has the problems %v", found)
			}
			kept := r.tail.Head
			r.sign(1, step(7))
			r.sign(2, step(8))
			if diff := cmp.Diff([]finding{{evidence.ProblemKeyOutOfRange, 6}}, r.problems()); diff != "" {
				t.Errorf("problems of verify (-want +got):\n%s", diff)
			}
			tail, found, err := r.writer(with).CatchUp(t.Context(), policyUID, kept, r.ends)
			var damaged *evidence.DamagedError
			if !errors.As(err, &damaged) || tail.Head != kept || found != nil {
				t.Errorf("the executor goes on to %v with %d records, %v", tail.Head, len(found), err)
			}
		})
	}
}

func TestTheKeyOfARecordHasToBeTheOneOfItsPlace(t *testing.T) {
	cases := map[string]struct {
		change func(*rotation)
		want   []finding
	}{
		"one key signs all": {func(r *rotation) { r.sign(1, step(3)) }, nil},
		"a second key signs, and was not named": {
			func(r *rotation) { r.sign(2, step(3)); r.sign(2, step(4)) },
			[]finding{{evidence.ProblemKeyOutOfRange, 4}},
		},
		"a third key signs after the second one": {
			func(r *rotation) { r.rotate(true); r.sign(3, step(3)) },
			[]finding{{evidence.ProblemKeyOutOfRange, 5}},
		},
		"the first key signs directly after its successor was named": {
			func(r *rotation) { r.rotate(true); r.sign(1, step(3)) },
			[]finding{{evidence.ProblemKeyOutOfRange, 5}},
		},
		"the end of a key is declared, and that key goes on": {
			func(r *rotation) { r.ends = rotated(r.T, 3); r.sign(1, step(3)) },
			[]finding{{evidence.ProblemKeyOutOfRange, 4}},
		},
		"the end of a key is declared, and a third key goes on": {
			func(r *rotation) { r.ends = rotated(r.T, 3); r.sign(3, step(3)) },
			[]finding{{evidence.ProblemKeyOutOfRange, 4}},
		},
		"the end of a key is declared later than another key signs": {
			func(r *rotation) { r.ends = rotated(r.T, 5); r.sign(2, step(3)) },
			[]finding{{evidence.ProblemKeyOutOfRange, 4}},
		},
		"the end in another chain": {
			func(r *rotation) { r.ends = rotated(r.T, 3); r.ends[0].Chain = "other"; r.sign(2, step(3)) },
			[]finding{{evidence.ProblemKeyOutOfRange, 4}},
		},
		"the retired key names itself the successor": {
			func(r *rotation) {
				r.rotate(true)
				back := succession()
				back.Occurrence, back.Succession = 1, &evidence.Succession{Predecessor: key(r.T, 2).KeyID(), Successor: key(r.T, 1).KeyID()}
				r.sign(1, back)
				r.sign(1, step(3))
			},
			[]finding{{evidence.ProblemKeyOutOfRange, 5}, {evidence.ProblemKeyOutOfRange, 6}},
		},
		"a key names a successor in the name of another key": {
			func(r *rotation) {
				record := succession()
				record.Succession = &evidence.Succession{Predecessor: key(r.T, 2).KeyID(), Successor: key(r.T, 3).KeyID()}
				r.sign(1, record)
				r.sign(1, step(3))
			},
			nil,
		},
		"the record of the successor is missing, which is one problem": {
			func(r *rotation) { r.rotate(true); r.sign(2, step(3)); r.store.Remove(evidence.Name(policyUID, 4)) },
			[]finding{{evidence.ProblemGap, 4}},
		},
		"the record of the successor is damaged, which is one problem": {
			func(r *rotation) {
				r.rotate(true)
				r.sign(2, step(3))
				r.store.Put(evidence.Name(policyUID, 4), r.sealed[3].Envelope[:100])
			},
			[]finding{{evidence.ProblemDamaged, 4}},
		},
		"a record is missing, and the retired key signs after the gap": {
			func(r *rotation) {
				r.rotate(true)
				r.sign(2, step(3))
				r.sign(1, step(4))
				r.store.Remove(evidence.Name(policyUID, 5))
			},
			[]finding{{evidence.ProblemGap, 5}, {evidence.ProblemKeyOutOfRange, 6}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRotation(t)
			tc.change(r)
			if diff := cmp.Diff(tc.want, r.problems()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCatchUp_KnowsWhoseTurnItIs(t *testing.T) {
	first, second := key(t, 1).KeyID(), key(t, 2).KeyID()
	cases := map[string]struct {
		change func(*rotation)
		from   int // records whose head was kept
		with   bool
		key    string
		want   string // part of the error
	}{
		"before the rotation":                         {func(*rotation) {}, 3, false, first, ""},
		"a record that the old key left behind":       {func(*rotation) {}, 2, false, first, ""},
		"after the rotation, whose head was not kept": {func(r *rotation) { r.rotate(true) }, 3, false, second, ""},
		"after the rotation":                          {func(r *rotation) { r.rotate(true) }, 4, false, second, ""},
		"the end of the old key is declared":          {func(r *rotation) { r.ends = rotated(r.T, 3) }, 3, false, second, ""},
		"another record stands at the head": {
			func(r *rotation) {
				r.store.Put(evidence.Name(policyUID, 3), seal(r.T, key(r.T, 1), placed(step(9), 3, r.sealed[1].Digest)).Envelope)
			}, 3, false, first, "the record at the head is another one",
		},
		"the record at the head is damaged":           {func(r *rotation) { r.store.Put(evidence.Name(policyUID, 3), nil) }, 3, false, "", "Malformed"},
		"the record at the head was moved away":       {func(r *rotation) { r.store.Remove(evidence.Name(policyUID, 3)) }, 3, false, "", ""},
		"the same, and the retired key goes on":       {func(r *rotation) { r.store.Remove(evidence.Name(policyUID, 2)) }, 2, false, "", "may begin no chain"},
		"the same, while the old key is still there":  {func(r *rotation) { r.store.Remove(evidence.Name(policyUID, 2)) }, 2, true, first, ""},
		"a retired key begins a chain":                {func(*rotation) {}, 0, false, "", "may begin no chain"},
		"the same, while the old key is still around": {func(*rotation) {}, 0, true, first, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRotation(t)
			tc.change(r)
			var head evidence.Head
			if tc.from > 0 {
				head = r.sealed[tc.from-1].Head()
			}
			tail, _, err := r.writer(tc.with).CatchUp(t.Context(), policyUID, head, r.ends)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if err == nil && tail.Key != tc.key {
				t.Errorf("key %q may go on, want %q", tail.Key, tc.key)
			}
		})
	}
}

// The signer died after its record, and before it declared where the range of the other
// key ends.
func TestASuccessorFindsTheEndThatItHasNotDeclared(t *testing.T) {
	r := newRotation(t)
	kept := r.tail.Head
	r.rotate(false)
	want := r.ends[0]
	tail, found, err := r.writer(false).CatchUp(t.Context(), policyUID, kept, nil)
	if err != nil || len(found) != 1 || tail.Key != want.Successor {
		t.Fatalf("got %+v, %d records, %v", tail, len(found), err)
	}
	if diff := cmp.Diff(&want, tail.Undeclared); diff != "" {
		t.Errorf("the end to declare (-want +got):\n%s", diff)
	}
	if tail, _, err := writer(t, r.store, 3).CatchUp(t.Context(), policyUID, kept, nil); err == nil {
		t.Errorf("another executor goes on to %+v by a word that is not its own", tail)
	}
}

func TestKeyEnds_AreToldOnce(t *testing.T) {
	first := rotated(t, 3)[0]
	later, other := first, first
	later.Last, other.Chain = 9, "other"
	ends := evidence.AddKeyEnd(evidence.AddKeyEnd([]evidence.KeyEnd{first}, later), other)
	if diff := cmp.Diff([]evidence.KeyEnd{first, other}, ends); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	read, err := evidence.ParseKeyEnds([]byte(`[{"chain":"` + policyUID + `","key":"` + first.Key + `","last":3,"successor":"` + first.Successor + `"}]`))
	if diff := cmp.Diff([]evidence.KeyEnd{first}, read); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if none, err := evidence.ParseKeyEnds(nil); err != nil || none != nil {
		t.Errorf("no data has the ends %v, %v", none, err)
	}
	if ends, err := evidence.ParseKeyEnds([]byte("{}")); err == nil {
		t.Errorf("damaged data has the ends %v", ends)
	}
}
