// SPDX-License-Identifier: Apache-2.0

package releaserecord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

const (
	system = "plumbline-system"
	hash   = "pl1:sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

var (
	now  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	web  = types.NamespacedName{Namespace: "shop", Name: "web"}
	lone = types.NamespacedName{Namespace: "lone", Name: "web"}
)

// still is a clock that stands.
type still struct{}

func (still) Now() time.Time      { return now }
func (still) Skew() time.Duration { return 0 }

// heads are kept in memory, and in the ledgers that a survey lists.
type heads struct{ w *world }

func (h heads) Head(_ context.Context, _, chain string) (evidence.Head, error) {
	h.w.asked[chain] = true
	return h.w.heads[chain], nil
}

func (h heads) Keep(ctx context.Context, ledger, chain string, left ...evidence.Head) error {
	if h.w.unkept != nil {
		return h.w.unkept
	}
	head := left[len(left)-1]
	h.w.heads[chain] = head
	l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: ledger}}
	if err := h.w.api.Create(ctx, l.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := h.w.api.Get(ctx, client.ObjectKeyFromObject(l), l); err != nil {
		return err
	}
	l.Status.Chains = slices.DeleteFunc(l.Status.Chains, func(c v1alpha1.EvidenceChain) bool { return c.PolicyUID == chain })
	l.Status.Chains = append(l.Status.Chains, v1alpha1.EvidenceChain{PolicyUID: chain, Sequence: head.Sequence, Digest: head.Digest})
	return h.w.api.Update(ctx, l)
}

// world is an API server with an Environment, and a store.
type world struct {
	*testing.T
	api    client.Client
	store  *storetest.Memory
	key    *evidence.PrivateKey
	ring   *evidence.Keyring
	heads  map[string]evidence.Head
	asked  map[string]bool
	unkept error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, failed := evidence.ParsePrivateKey(private)
	ring, err := evidence.ParseKeyring(public)
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"name": name}}}
	}
	return &world{
		T: t, store: &storetest.Memory{}, key: key, ring: ring, heads: map[string]evidence.Head{}, asked: map[string]bool{},
		api: fakeclient.NewBuilder(kinds).WithObjects(namespace("shop"), namespace("lone"), namespace(system), &v1alpha1.Environment{
			ObjectMeta: metav1.ObjectMeta{Name: "production", UID: "uid-of-production"},
			Spec:       v1alpha1.EnvironmentSpec{NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"name": "shop"}}},
		}).Build(),
	}
}

// start makes the reconciler of a new process.
func (w *world) start() *Reconciler {
	return New(Config{Live: w.api, Time: still{}, Namespace: system, Log: logr.Discard(), Chains: Recorder{&exec.Recorder{
		Writer: evidence.Writer{Store: w.store, Signer: w.key, Keys: w.ring}, Heads: heads{w}, Builder: evidence.Builder{Version: "test"}, Now: time.Now,
	}}})
}

// look has one release looked at, and fails unless all is recorded.
func (w *world) look(r *Reconciler, key types.NamespacedName) {
	w.Helper()
	got, err := r.Reconcile(w.Context(), reconcile.Request{NamespacedName: key})
	if err != nil || got != (reconcile.Result{}) {
		w.Fatalf("%+v, %v, %v", got, err, r.problems)
	}
}

// release makes one with a number of lines in its history.
func (w *world) release(key types.NamespacedName, uid string, lines int) *v1alpha1.ABRelease {
	w.Helper()
	release := &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(uid)},
		Spec:       v1alpha1.ABReleaseSpec{Rollout: &v1alpha1.Rollout{RequestedBy: "alice"}},
		Status:     v1alpha1.ABReleaseStatus{Rollout: &v1alpha1.RolloutStatus{}},
	}
	for n := range lines {
		release.Status.Rollout.History = append(release.Status.Rollout.History, v1alpha1.RolloutEvent{
			Number: int64(n + 1), EventTime: metav1.NewTime(now), Run: 1, Event: "canary.stage_started",
			TrafficPercentage: &v1alpha1.Percentage{IntOrString: intstr.FromInt32(10)},
		})
	}
	if err := w.api.Create(w.Context(), release.DeepCopy()); err != nil {
		w.Fatal(err)
	}
	return release
}

// told verifies all chains, and lists the kinds of the records of one, each with how often it follows itself.
func (w *world) told(chain string) []string {
	w.Helper()
	var kinds []evidence.Kind
	report, err := evidence.Verify(w.Context(), w.store, w.ring, evidence.Options{Heads: w.heads, Each: func(s evidence.Sealed) {
		if s.Record.Chain.UID == chain {
			kinds = append(kinds, s.Record.Kind)
		}
	}})
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range report.Problems {
		if p.Kind != evidence.ProblemBodyMissing {
			w.Errorf("%s: %s", p.Kind, p)
		}
	}
	var out []string
	for i := 0; i < len(kinds); {
		n := 0
		for ; i+n < len(kinds) && kinds[i+n] == kinds[i]; n++ {
		}
		out = append(out, fmt.Sprintf("%d %s", n, kinds[i]))
		i += n
	}
	return out
}

func (w *world) wants(chain string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.told(chain)); diff != "" {
		w.Errorf("the chain %s (-want +got):\n%s", chain, diff)
	}
}

// carried makes a work whose intent is stored.
func (w *world) carried() *v1alpha1.ReleaseWork {
	w.Helper()
	made := &v1alpha1.ReleaseWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1-1", UID: "w-1"},
		Spec:       v1alpha1.ReleaseWorkSpec{ReleaseName: "web", ReleaseUID: "r-1", Run: 1, Number: 1, Verb: v1alpha1.WorkScale, Variation: "canary", Replicas: new(int32(2)), ExpectedHash: hash},
		Status: v1alpha1.ReleaseWorkStatus{
			Phase: v1alpha1.WorkRunning, Intent: &v1alpha1.ReleaseWorkIntent{UID: "c-1", ResourceVersion: "5", TemplateHash: hash, StorageTime: metav1.NewTime(now)},
		},
	}
	if err := w.api.Create(w.Context(), made.DeepCopy()); err != nil {
		w.Fatal(err)
	}
	return made
}
