// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

func point(sequence int64, at time.Time) evidence.Checkpoint {
	return evidence.Checkpoint{Head: evidence.Head{Sequence: sequence, Digest: digest(fmt.Sprintf("%x", sequence%16))}, At: at}
}

func TestACheckpointStandsWhateverIsSaidLater(t *testing.T) {
	first := point(3, noon)
	for name, tc := range map[string]struct {
		head evidence.Head
		want []evidence.Checkpoint
	}{
		"the same head":              {first.Head, []evidence.Checkpoint{first}},
		"an earlier head":            {point(2, noon).Head, []evidence.Checkpoint{first}},
		"another record at the head": {evidence.Head{Sequence: 3, Digest: digest("9")}, []evidence.Checkpoint{first}},
		"no head":                    {evidence.Head{}, []evidence.Checkpoint{first}},
		"a later head":               {point(4, noon).Head, []evidence.Checkpoint{first, point(4, noon.Add(time.Hour))}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, evidence.AddCheckpoint([]evidence.Checkpoint{first}, tc.head, noon.Add(time.Hour))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if none := evidence.AddCheckpoint(nil, evidence.Head{}, noon); none != nil {
		t.Errorf("a chain without a record has %v", none)
	}
}

func TestCheckpoints_AreReadAsTheyAreWritten(t *testing.T) {
	got, err := evidence.ParseCheckpoints(`[{"sequence":3,"digest":"` + digest("3") + `","at":"2026-11-21T12:00:00Z"}]`)
	if diff := cmp.Diff([]evidence.Checkpoint{point(3, noon)}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := evidence.ParseCheckpoints(""); got != nil || err != nil {
		t.Errorf("no text has %v, %v", got, err)
	}
	if got, err := evidence.ParseCheckpoints("{}"); err == nil {
		t.Errorf("damaged text has %v", got)
	}
}

// attack is a chain of three honest records, of which two checkpoints were noted, and what
// the thief of a token or of the store makes of it.
type attack struct {
	store   *storetest.Memory
	sealed  []evidence.Sealed
	keys    *evidence.Keyring
	options evidence.Options
}

func newAttack(t *testing.T) *attack {
	t.Helper()
	a := &attack{keys: keyring(t, key(t, 1))}
	a.store, a.sealed = chain(t, 3, 9)
	a.options.Heads = map[string]evidence.Head{policyUID: a.sealed[2].Head()}
	a.options.Anchors = map[string][]evidence.Checkpoint{policyUID: {{Head: a.sealed[0].Head(), At: noon}, {Head: a.sealed[1].Head(), At: noon}}}
	return a
}

// rewrite puts a whole history of n records in the place of the true one, signed by the
// thief. The token lets the thief publish the key, and write heads and statuses of plans.
func (a *attack) rewrite(t *testing.T, n int, withToken bool) {
	t.Helper()
	store, head := &storetest.Memory{}, evidence.Head{}
	var digests []string
	w := evidence.Writer{Store: store, Signer: key(t, 9), Keys: keyring(t, key(t, 9))}
	for i := range n {
		r := step(int32(i))
		r.Subject.Name, r.Requester = "innocent", "bob"
		s := appended(t, w, head, r)
		head, digests = s.Head(), append(digests, s.Digest)
	}
	if a.store = store; withToken {
		a.keys, a.options.Heads = keyring(t, key(t, 1), key(t, 9)), map[string]evidence.Head{policyUID: head}
		a.options.Plans = []evidence.PlanStatus{{UID: planUID, Chain: policyUID, Digests: digests}}
	}
}

// The review of remediation: with the token of the executor and the store, a thief replaced
// the whole history, and verify found no fault.
func TestAStolenTokenAndAStolenStoreRewriteNoHistoryUnseen(t *testing.T) {
	for name, tc := range map[string]struct {
		steal func(*testing.T, *attack)
		want  []evidence.ProblemKind
	}{
		"nothing is stolen": {func(*testing.T, *attack) {}, nil},
		"the token: the heads go back": {func(_ *testing.T, a *attack) {
			a.options.Heads[policyUID] = a.sealed[0].Head()
		}, nil},
		"the store: the whole history": {func(t *testing.T, a *attack) { a.rewrite(t, 3, false) }, []evidence.ProblemKind{
			evidence.ProblemRewritten, evidence.ProblemUnknownKey, evidence.ProblemOtherHead,
		}},
		"the store: the end": {func(_ *testing.T, a *attack) { a.store.Remove(a.sealed[2].Name) }, []evidence.ProblemKind{evidence.ProblemCutOff}},
		"both: the end, and the head goes back": {func(_ *testing.T, a *attack) {
			a.store.Remove(a.sealed[1].Name)
			a.store.Remove(a.sealed[2].Name)
			a.options.Heads[policyUID] = a.sealed[0].Head()
		}, []evidence.ProblemKind{evidence.ProblemCutOff}},
		"both: a longer history":  {func(t *testing.T, a *attack) { a.rewrite(t, 5, true) }, []evidence.ProblemKind{evidence.ProblemRewritten}},
		"both: a shorter history": {func(t *testing.T, a *attack) { a.rewrite(t, 1, true) }, []evidence.ProblemKind{evidence.ProblemRewritten, evidence.ProblemCutOff}},
		"both: the chain is gone": {func(_ *testing.T, a *attack) {
			a.store, a.options.Heads = &storetest.Memory{}, nil
		}, []evidence.ProblemKind{evidence.ProblemCutOff}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttack(t)
			tc.steal(t, a)
			report, err := evidence.Verify(t.Context(), a.store, a.keys, a.options)
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[evidence.ProblemKind]bool{}
			for _, p := range report.Problems {
				kinds[p.Kind] = true
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(tc.want)), slices.Sorted(maps.Keys(kinds))); diff != "" {
				t.Errorf("%v (-want +got):\n%s", report.Problems, diff)
			}
		})
	}
}

func TestACheckpointOfARecordThatRetentionMovedAwayIsNoProblem(t *testing.T) {
	a := newAttack(t)
	a.store.Remove(a.sealed[0].Name)
	a.options.Starts = map[string]evidence.Head{policyUID: a.sealed[0].Head()}
	report, err := evidence.Verify(t.Context(), a.store, a.keys, a.options)
	if err != nil || !report.OK() {
		t.Errorf("got %+v, %v", report, err)
	}
}
