// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// heads are those of the chains of one Environment.
type heads map[string]evidence.Head

func (h heads) Head(_ context.Context, _, chain string) (evidence.Head, error) { return h[chain], nil }

func (h heads) Keep(_ context.Context, _, chain string, left ...evidence.Head) error {
	h[chain] = left[len(left)-1]
	return nil
}

func newKey(t *testing.T) *evidence.PrivateKey {
	t.Helper()
	private, _, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := evidence.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func decided(chain string) evidence.Record {
	digest := "sha256:" + strings.Repeat("c", 64)
	return evidence.Record{
		Kind: evidence.KindPlanCreated, At: time.Unix(1, 0), Chain: evidence.Chain{UID: chain},
		Subject:     evidence.Subject{APIVersion: "plumbline.dev/v1alpha1", Kind: "RemediationPlan", Namespace: "shop", Name: "plan", UID: "uid", Hash: digest},
		Policy:      &evidence.Policy{Name: chain, UID: chain, Digest: digest},
		InitiatedBy: evidence.InitiatedBySystem, Builder: evidence.Builder{Version: "test"},
	}
}

// A chain may wait for its next record for weeks. The range of the key of before ends when
// the process leads, however often that has to be tried.
func TestANewKeyEndsTheRangesOfTheOldOneInAllChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, now := newKey(t), newKey(t)
		ring, err := evidence.NewKeyring(before.Public(), now.Public())
		if err != nil {
			t.Fatal(err)
		}
		store, kept := &storetest.Memory{}, heads{}
		l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: "production"}}
		for _, chain := range []string{"first", "second"} {
			sealed, err := evidence.Writer{Store: store, Signer: before, Keys: ring}.Append(t.Context(), evidence.Head{}, decided(chain))
			if err != nil {
				t.Fatal(err)
			}
			kept[chain] = sealed.Head()
			l.Status.Chains = append(l.Status.Chains, v1alpha1.EvidenceChain{PolicyUID: chain, Sequence: 1, Digest: sealed.Digest})
		}
		kinds, err := elected.Kinds()
		if err != nil {
			t.Fatal(err)
		}
		failures := 1
		store.Fault = func(op string) error {
			if op == storetest.BeforeCreate && failures > 0 {
				failures--
				return errors.New("no answer")
			}
			return nil
		}
		executor := &exec.Executor{Client: fakeclient.NewBuilder(kinds).WithObjects(l).Build(), Namespace: "plumbline-system"}
		executor.Evidence = &exec.Recorder{
			Writer: evidence.Writer{Store: store, Signer: now, Old: []evidence.Signer{before}, Keys: ring},
			Heads:  kept, Ends: noEnds{}, Builder: evidence.Builder{Version: "test"}, Now: time.Now,
		}
		r := &rotator{executor: executor, clock: clock.RealClock{}, log: logr.Discard()}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		report, err := evidence.Verify(t.Context(), store, ring, evidence.Options{Heads: kept})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, chain := range report.Chains {
			got[chain.UID] = chain.Records
		}
		if diff := cmp.Diff(map[string]int{"first": 2, "second": 2}, got); diff != "" || !report.OK() {
			t.Errorf("%v; records (-want +got):\n%s", report.Problems, diff)
		}
	})
}

// noEnds has none, and takes none.
type noEnds struct{}

func (noEnds) Ends(context.Context) ([]evidence.KeyEnd, error) { return nil, nil }

func (noEnds) Declare(context.Context, evidence.KeyEnd) error { return errors.New("none is needed") }
