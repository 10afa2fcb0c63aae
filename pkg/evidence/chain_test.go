// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

func writer(t testing.TB, store evidence.Store, n byte) evidence.Writer {
	return evidence.Writer{Store: store, Signer: key(t, n), Keys: keyring(t, key(t, 1), key(t, 2))}
}

func appended(t testing.TB, w evidence.Writer, head evidence.Head, r evidence.Record) evidence.Sealed {
	t.Helper()
	s, err := w.Append(t.Context(), head, r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAppend_LinksEachRecordToTheOneBefore(t *testing.T) {
	store := &storetest.Memory{}
	w := writer(t, store, 1)
	first := appended(t, w, evidence.Head{}, step(0))
	second := appended(t, w, first.Head(), step(1))
	if second.Record.Chain != (evidence.Chain{UID: policyUID, Sequence: 2, Previous: first.Digest}) {
		t.Errorf("got %+v", second.Record.Chain)
	}
	want := []string{evidence.Name(policyUID, 1), evidence.Name(policyUID, 2)}
	if diff := cmp.Diff(want, store.Names()); diff != "" {
		t.Errorf("store (-want +got):\n%s", diff)
	}
}

// TestAppend_AgainIsTheSame: a writer that died before it kept the head appends
// the same record once more.
func TestAppend_AgainIsTheSame(t *testing.T) {
	store := &storetest.Memory{}
	first := appended(t, writer(t, store, 1), evidence.Head{}, step(0))
	r := step(0)
	r.At = r.At.In(time.FixedZone("elsewhere", 3600)).Add(time.Nanosecond) // the same to the microsecond
	again := appended(t, writer(t, store, 1), evidence.Head{}, r)
	if first.Digest != again.Digest || first.Name != again.Name || len(store.Names()) != 1 {
		t.Errorf("got %s %s, want %s %s", again.Name, again.Digest, first.Name, first.Digest)
	}
}

func TestAppend_WhatStandsThereDecides(t *testing.T) {
	altered := step(0)
	altered.Result.State = "Failed"
	cases := map[string]struct {
		there func(*testing.T, *storetest.Memory)
		check func(error) bool
	}{
		"another event, of somebody else": {
			func(t *testing.T, m *storetest.Memory) { appended(t, writer(t, m, 2), evidence.Head{}, step(5)) },
			func(err error) bool {
				var e *evidence.TakenError
				return errors.As(err, &e) && e.There.Record.ID() == step(5).ID()
			},
		},
		"the same event, told differently": {
			func(t *testing.T, m *storetest.Memory) { appended(t, writer(t, m, 1), evidence.Head{}, altered) },
			func(err error) bool {
				var e *evidence.ConflictError
				return errors.As(err, &e) && e.Want != e.Have && e.Name == evidence.Name(policyUID, 1)
			},
		},
		"the same record, signed with another key": {
			func(t *testing.T, m *storetest.Memory) { appended(t, writer(t, m, 2), evidence.Head{}, step(0)) },
			func(err error) bool {
				var e *evidence.TakenError
				return errors.As(err, &e) && e.There.KeyID == key(t, 2).KeyID()
			},
		},
		"a record cut off": {
			func(t *testing.T, m *storetest.Memory) {
				s := appended(t, writer(t, m, 1), evidence.Head{}, step(0))
				m.Put(s.Name, s.Envelope[:50])
			},
			func(err error) bool {
				var e *evidence.DamagedError
				return errors.As(err, &e) && faultOf(err) == evidence.FaultMalformed
			},
		},
		"a record by nobody who is known": {
			func(t *testing.T, m *storetest.Memory) { appended(t, writer(t, m, 3), evidence.Head{}, step(0)) },
			func(err error) bool { return faultOf(err) == evidence.FaultUnknownKey },
		},
		"a good record of another place": {
			func(t *testing.T, m *storetest.Memory) {
				s := seal(t, key(t, 1), placed(step(0), 2, digest("a")))
				m.Put(evidence.Name(policyUID, 1), s.Envelope)
			},
			func(err error) bool {
				var e *evidence.DamagedError
				return errors.As(err, &e)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := &storetest.Memory{}
			tc.there(t, store)
			if _, err := writer(t, store, 1).Append(t.Context(), evidence.Head{}, step(0)); !tc.check(err) {
				t.Errorf("got %v", err)
			}
			if len(store.Names()) != 1 {
				t.Errorf("the store has %v", store.Names())
			}
		})
	}
}

// TestAppend_TwoHistories: two writers whose heads differ cannot go on as one.
func TestAppend_TwoHistories(t *testing.T) {
	store := &storetest.Memory{}
	first := appended(t, writer(t, store, 1), evidence.Head{}, step(0))
	appended(t, writer(t, store, 1), first.Head(), step(1))
	elsewhere := evidence.Head{Sequence: 1, Digest: digest("9")}
	var conflict *evidence.ConflictError
	for name, r := range map[string]evidence.Record{"the same event": step(1), "another event": step(7)} {
		if _, err := writer(t, store, 1).Append(t.Context(), elsewhere, r); !errors.As(err, &conflict) {
			t.Errorf("append %s: got %v", name, err)
		}
	}
	if _, _, err := writer(t, store, 1).CatchUp(t.Context(), policyUID, elsewhere, nil); !errors.As(err, &conflict) {
		t.Errorf("catch up: got %v", err)
	}
}

func TestAppend_StoreFailsTyped(t *testing.T) {
	store := &storetest.Memory{Fault: func(string) error { return errors.New("no answer") }}
	var failed *evidence.StoreError
	_, err := writer(t, store, 1).Append(t.Context(), evidence.Head{}, step(0))
	if !errors.As(err, &failed) || failed.Reason != evidence.StoreUnreachable {
		t.Errorf("got %v", err)
	}
}

func TestCatchUp_FindsWhatWasNotKept(t *testing.T) {
	store := &storetest.Memory{}
	w := writer(t, store, 1)
	first := appended(t, w, evidence.Head{}, step(0))
	second := appended(t, w, first.Head(), step(1))
	third := appended(t, w, second.Head(), step(2))

	head, found, err := w.CatchUp(t.Context(), policyUID, first.Head(), nil)
	if err != nil || head.Head != third.Head() || len(found) != 2 || found[0].Digest != second.Digest {
		t.Errorf("got %v, %d records, %v", head, len(found), err)
	}
	if head, found, err = w.CatchUp(t.Context(), policyUID, third.Head(), nil); err != nil || head.Head != third.Head() || found != nil {
		t.Errorf("at the end: got %v, %d records, %v", head, len(found), err)
	}
	store.Put(third.Name, third.Envelope[1:])
	head, found, err = w.CatchUp(t.Context(), policyUID, first.Head(), nil)
	var damaged *evidence.DamagedError
	if !errors.As(err, &damaged) || damaged.Name != third.Name || head.Head != second.Head() || len(found) != 1 {
		t.Errorf("before a damaged one: got %v, %d records, %v", head, len(found), err)
	}
}

// A record after the head that goes on from another record is no part of the chain.
func TestCatchUp_FollowsNoOtherHistory(t *testing.T) {
	store := &storetest.Memory{}
	w := writer(t, store, 1)
	first := appended(t, w, evidence.Head{}, step(0))
	other := seal(t, key(t, 1), placed(step(1), 2, digest("9")))
	store.Put(other.Name, other.Envelope)
	tail, found, err := w.CatchUp(t.Context(), policyUID, first.Head(), nil)
	var conflict *evidence.ConflictError
	if !errors.As(err, &conflict) || conflict.Want != first.Digest || conflict.Have != digest("9") || tail.Head != first.Head() || found != nil {
		t.Errorf("got %v, %d records, %v", tail, len(found), err)
	}
}
