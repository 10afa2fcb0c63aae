// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

const (
	policyBody = `{"environment":"production"}`
	planBody   = `{"trigger":"Immediate"}`
	beforeBody = `{"spec":{"replicas":7}}`
)

func TestABodyIsStoredOnceUnderItsDigest(t *testing.T) {
	store := &storetest.Memory{}
	w := writer(t, store, 1)
	for range 2 {
		got, err := w.Keep(t.Context(), policyUID, []byte(policyBody))
		if err != nil || got != evidence.Digest([]byte(policyBody)) {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	want := []string{evidence.BodyName(policyUID, evidence.Digest([]byte(policyBody)))}
	if diff := cmp.Diff(want, store.Names()); diff != "" {
		t.Errorf("the store (-want +got):\n%s", diff)
	}
	body, err := evidence.ReadBody(t.Context(), store, policyUID, evidence.Digest([]byte(policyBody)))
	if err != nil || string(body) != policyBody {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestABodyThatIsNotWhatItsNameSaysIsNeverBelieved(t *testing.T) {
	want := evidence.Digest([]byte(policyBody))
	name := evidence.BodyName(policyUID, want)
	store := &storetest.Memory{}
	store.Put(name, []byte(planBody))
	var mismatch *evidence.BodyError
	if _, err := writer(t, store, 1).Keep(t.Context(), policyUID, []byte(policyBody)); !errors.As(err, &mismatch) {
		t.Errorf("keeping: got %v, want a digest mismatch", err)
	}
	body, err := evidence.ReadBody(t.Context(), store, policyUID, want)
	if body != nil || !errors.As(err, &mismatch) {
		t.Fatalf("reading: got %q, %v, want a digest mismatch", body, err)
	}
	if diff := cmp.Diff(evidence.BodyError{Name: name, Want: want, Have: evidence.Digest([]byte(planBody))}, *mismatch); diff != "" {
		t.Errorf("the mismatch (-want +got):\n%s", diff)
	}
	store.Remove(name)
	if _, err := evidence.ReadBody(t.Context(), store, policyUID, want); !errors.Is(err, evidence.ErrNotFound) {
		t.Errorf("reading what is not there: got %v", err)
	}
}

func TestABodyThatNoReaderCouldReadWholeIsNotStored(t *testing.T) {
	store := &storetest.Memory{}
	if _, err := writer(t, store, 1).Keep(t.Context(), policyUID, make([]byte, evidence.MaxBody+1)); err == nil {
		t.Error("no error")
	}
	if _, err := writer(t, store, 1).Keep(t.Context(), policyUID, make([]byte, evidence.MaxBody)); err != nil {
		t.Errorf("the largest body: %v", err)
	}
	if names := store.Names(); len(names) != 1 {
		t.Errorf("the store has %v", names)
	}
}

func TestTheNameOfABodyTellsItFromARecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digest := evidence.Digest(rapid.SliceOf(rapid.Byte()).Draw(t, "body"))
		name := evidence.BodyName(policyUID, digest)
		chain, again, ok := evidence.ParseBodyName(name)
		if !ok || chain != policyUID || again != digest {
			t.Fatalf("got %s %s %t", chain, again, ok)
		}
		if _, _, isRecord := evidence.ParseName(name); isRecord {
			t.Fatalf("%s is taken for a record", name)
		}
		if evidence.MaxSize(name) != evidence.MaxBody || evidence.MaxSize(evidence.Name(policyUID, 1)) != evidence.MaxEnvelope {
			t.Fatal("bodies and records have one bound")
		}
	})
	hex := strings.Repeat("a", 64)
	for _, name := range []string{
		"", "x", "x/sha256-.json", "x/sha256-" + hex, "x/sha256-" + strings.ToUpper(hex) + ".json", "x/sha256-" + hex + "a.json",
		"../sha256-" + hex + ".json", "/sha256-" + hex + ".json", "x/y/sha256-" + hex + ".json", "x/sha512-" + hex + ".json",
		strings.Repeat("x", 65) + "/sha256-" + hex + ".json",
	} {
		if _, _, ok := evidence.ParseBodyName(name); ok {
			t.Errorf("%q was taken for a body", name)
		}
	}
}

// withBodies is a chain of three records that name three bodies.
func withBodies(t *testing.T) *storetest.Memory {
	t.Helper()
	store := &storetest.Memory{}
	w := writer(t, store, 1)
	head := evidence.Head{}
	for i := range int32(3) {
		r := step(i)
		for of, body := range map[evidence.BodyOf]string{evidence.BodyPolicy: policyBody, evidence.BodyPlan: planBody, evidence.BodyBefore: beforeBody} {
			digest, err := w.Keep(t.Context(), policyUID, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			switch of {
			case evidence.BodyPolicy:
				r.Policy.Digest = digest
			case evidence.BodyPlan:
				r.Plan.Digest = digest
			default:
			}
			if of != evidence.BodyBefore || i == 1 {
				r.Bodies = append(r.Bodies, evidence.Body{Of: of, Digest: digest})
			}
		}
		head = appended(t, w, head, r).Head()
	}
	return store
}

func TestVerify_CoversTheBodies(t *testing.T) {
	name := func(body string) string { return evidence.BodyName(policyUID, evidence.Digest([]byte(body))) }
	tests := map[string]struct {
		change func(*storetest.Memory)
		bodies int
		want   []finding
		text   string
	}{
		"all are there":                      {func(*storetest.Memory) {}, 3, nil, ""},
		"one that no record names is no one": {func(m *storetest.Memory) { m.Put(name("{}"), []byte("{}")) }, 4, nil, ""},
		"one is gone": {
			func(m *storetest.Memory) { m.Remove(name(policyBody)) }, 2,
			[]finding{{evidence.ProblemBodyMissing, 1}}, "record 1 names the body Policy, and the store lacks it",
		},
		"one that only the second record names is gone": {
			func(m *storetest.Memory) { m.Remove(name(beforeBody)) }, 2,
			[]finding{{evidence.ProblemBodyMissing, 2}}, "record 2 names the body Before, and the store lacks it",
		},
		"one was changed": {
			func(m *storetest.Memory) { m.Put(name(planBody), []byte(planBody+" ")) }, 2,
			[]finding{{evidence.ProblemBodyMismatch, 1}}, "digest mismatch: the content has the digest " + evidence.Digest([]byte(planBody+" ")),
		},
		"one was replaced by another": {
			func(m *storetest.Memory) { m.Put(name(beforeBody), []byte(policyBody)) }, 2,
			[]finding{{evidence.ProblemBodyMismatch, 2}}, "digest mismatch: the content has the digest " + evidence.Digest([]byte(policyBody)),
		},
		"one that no record names was changed": {
			func(m *storetest.Memory) { m.Put(name("{}"), []byte("[]")) }, 3,
			[]finding{{evidence.ProblemBodyMismatch, 0}}, "digest mismatch: the content has the digest " + evidence.Digest([]byte("[]")),
		},
		"one stands under a name that is none": {
			func(m *storetest.Memory) { m.Put(policyUID+"/sha256-0.json", []byte("{}")) }, 3,
			[]finding{{evidence.ProblemForeign, 0}}, "is not named as a record or a body",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := withBodies(t)
			test.change(store)
			report, err := evidence.Verify(t.Context(), store, keyring(t, key(t, 1)), evidence.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, findings(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if len(report.Problems) > 0 && report.Problems[0].Text != test.text {
				t.Errorf("got %q, want %q", report.Problems[0].Text, test.text)
			}
			if got := report.Chains[0]; got.Bodies != test.bodies || got.Records != 3 {
				t.Errorf("the chain is %+v, want %d bodies", got, test.bodies)
			}
		})
	}
}

func TestVerify_SaysThatABodyCannotBeRead(t *testing.T) {
	store := withBodies(t)
	unread := errors.New("connection reset")
	_, err := evidence.Verify(t.Context(), unreadableBodies{store, unread}, keyring(t, key(t, 1)), evidence.Options{})
	if !errors.Is(err, unread) {
		t.Errorf("got %v, want that the store cannot be read", err)
	}
}

// TestVerify_FindsABodyBeforeAnyRecord: a writer died after the body and before its record.
func TestVerify_FindsABodyBeforeAnyRecord(t *testing.T) {
	store := &storetest.Memory{}
	if _, err := writer(t, store, 1).Keep(t.Context(), policyUID, []byte(policyBody)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		heads map[string]evidence.Head
		want  []finding
	}{
		"and the chain has no head": {nil, nil},
		"and the chain has a head":  {map[string]evidence.Head{policyUID: {Sequence: 2, Digest: digest("a")}}, []finding{{evidence.ProblemCutOff, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := evidence.Verify(t.Context(), store, keyring(t, key(t, 1)), evidence.Options{Heads: test.heads})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, findings(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARecordNamesEachBodyOnceAndTruly(t *testing.T) {
	body := func(of evidence.BodyOf, digest string) evidence.Body { return evidence.Body{Of: of, Digest: digest} }
	tests := map[string]struct {
		bodies []evidence.Body
		field  string
	}{
		"the policy and the plan":            {[]evidence.Body{body(evidence.BodyPolicy, digest("b")), body(evidence.BodyPlan, digest("c"))}, ""},
		"a sort that a later version has":    {[]evidence.Body{body("Manifest", digest("0"))}, ""},
		"one sort twice":                     {[]evidence.Body{body(evidence.BodyBefore, digest("0")), body(evidence.BodyBefore, digest("1"))}, "bodies.of"},
		"a sort of two words":                {[]evidence.Body{body("be fore", digest("0"))}, "bodies.of"},
		"no digest":                          {[]evidence.Body{body(evidence.BodyBefore, "x")}, "bodies.digest"},
		"a policy of another digest":         {[]evidence.Body{body(evidence.BodyPolicy, digest("c"))}, "bodies.digest"},
		"a plan of another digest":           {[]evidence.Body{body(evidence.BodyPlan, digest("b"))}, "bodies.digest"},
		"more bodies than a record may name": {make([]evidence.Body, 6), "bodies"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := step(0)
			r.Bodies = test.bodies
			err := r.Validate()
			var invalid *evidence.InvalidError
			if test.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &invalid) || invalid.Field != test.field {
				t.Errorf("got %v, want the field %s", err, test.field)
			}
		})
	}
	r := step(0)
	r.Bodies = []evidence.Body{body(evidence.BodyPlan, digest("c"))}
	if r.Body(evidence.BodyPlan) != digest("c") || r.Body(evidence.BodyPolicy) != "" {
		t.Errorf("the record names %q and %q", r.Body(evidence.BodyPlan), r.Body(evidence.BodyPolicy))
	}
}

// unreadableBodies is a store that reads records and no bodies.
type unreadableBodies struct {
	*storetest.Memory
	err error
}

func (s unreadableBodies) Read(ctx context.Context, name string) ([]byte, error) {
	if _, _, isBody := evidence.ParseBodyName(name); isBody {
		return nil, s.err
	}
	return s.Memory.Read(ctx, name)
}
