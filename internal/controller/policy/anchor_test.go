// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

var anchoredAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// anchored is an anchor beside one ledger, whose chain "first" goes as far as is said.
type anchored struct {
	*testing.T
	*Anchor
	clock *clocktesting.FakePassiveClock
	told  []string
}

func newAnchored(t *testing.T, objects ...client.Object) *anchored {
	t.Helper()
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: "production"}}
	c := fakeclient.NewBuilder(kinds).WithStatusSubresource(l).WithObjects(append(objects, l)...).Build()
	a := &anchored{T: t, clock: clocktesting.NewFakePassiveClock(anchoredAt)}
	log := funcr.New(func(_, args string) { a.told = append(a.told, args) }, funcr.Options{})
	contradicted, err := NewContradicted(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	a.Anchor = &Anchor{Client: c, Live: c, Namespace: "plumbline-system", Clock: a.clock, Contradicted: contradicted, Log: log}
	return a
}

func anchorMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: AnchorConfigMap}}
}

func headAt(sequence int64, digest string) evidence.Head {
	return evidence.Head{Sequence: sequence, Digest: "sha256:" + strings.Repeat(digest, 64)}
}

// see has the ledger say a head after a while, and the anchor look at it.
func (a *anchored) see(after time.Duration, head evidence.Head) (reconcile.Result, error) {
	a.Helper()
	a.clock.SetTime(a.clock.Now().Add(after))
	name := types.NamespacedName{Namespace: "plumbline-system", Name: "production"}
	var l v1alpha1.RemediationLedger
	err := a.Client.Get(a.Context(), name, &l)
	l.Status.Chains = []v1alpha1.EvidenceChain{{PolicyUID: "first", Sequence: head.Sequence, Digest: head.Digest}}
	if err = errors.Join(err, a.Client.Status().Update(a.Context(), &l)); err != nil {
		a.Fatal(err)
	}
	return a.Reconcile(a.Context(), reconcile.Request{NamespacedName: name})
}

func (a *anchored) noted() []evidence.Checkpoint {
	a.Helper()
	var m corev1.ConfigMap
	if err := a.Client.Get(a.Context(), client.ObjectKeyFromObject(anchorMap()), &m); err != nil {
		a.Fatal(err)
	}
	points, err := evidence.ParseCheckpoints(m.Data["first"])
	if err != nil {
		a.Fatal(err)
	}
	return points
}

func TestTheAnchorNotesWhereAChainGoesAndIsNotTalkedBack(t *testing.T) {
	a := newAnchored(t, anchorMap())
	for _, head := range []evidence.Head{headAt(3, "3"), headAt(5, "5"), headAt(4, "4"), headAt(5, "9"), headAt(5, "5")} {
		if result, err := a.see(6*time.Minute, head); err != nil || result.RequeueAfter != 0 {
			t.Fatalf("got %+v, %v", result, err)
		}
	}
	want := []evidence.Checkpoint{{Head: headAt(3, "3"), At: anchoredAt.Add(6 * time.Minute)}, {Head: headAt(5, "5"), At: anchoredAt.Add(12 * time.Minute)}}
	if diff := cmp.Diff(want, a.noted()); diff != "" {
		t.Errorf("checkpoints (-want +got):\n%s", diff)
	}
	if len(a.told) != 2 || !strings.Contains(a.told[0], "evidence.anchor.contradicted") || !strings.Contains(a.told[1], `"sequence"=5`) {
		t.Errorf("told are %v", a.told)
	}
	if n := testutil.ToFloat64(a.Contradicted); n != 2 {
		t.Errorf("counted %v times", n)
	}
}

func TestTheAnchorIsWrittenEveryTenSecondsAtMost(t *testing.T) {
	a := newAnchored(t, anchorMap())
	if _, err := a.see(time.Second, headAt(1, "1")); err != nil {
		t.Fatal(err)
	}
	if result, err := a.see(4*time.Second, headAt(2, "2")); err != nil || result.RequeueAfter != 6*time.Second {
		t.Errorf("got %+v, %v", result, err)
	}
	if got := a.noted(); len(got) != 1 {
		t.Errorf("noted is %v", got)
	}
	if _, err := a.see(6*time.Second, headAt(3, "3")); err != nil || a.noted()[len(a.noted())-1].Head != headAt(3, "3") {
		t.Errorf("got %v, %v", a.noted(), err)
	}
}

func TestWithoutItsConfigMapTheAnchorSaysSo(t *testing.T) {
	if _, err := newAnchored(t).see(time.Second, headAt(1, "1")); err == nil {
		t.Error("a head that is noted nowhere is no error")
	}
	damaged := anchorMap()
	damaged.Data = map[string]string{"first": "{"}
	if _, err := newAnchored(t, damaged).see(time.Second, headAt(1, "1")); err == nil {
		t.Error("an anchor that cannot be read is no error")
	}
}
