// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// anchorAt is the ConfigMap of the anchor, with a checkpoint at each of the places.
func (a *archive) anchorAt(places ...int) *corev1.ConfigMap {
	a.t.Helper()
	var points []evidence.Checkpoint
	for _, i := range places {
		points = append(points, evidence.Checkpoint{Head: a.Sealed[i].Head(), At: clitest.Now})
	}
	raw, err := json.Marshal(points)
	clitest.Must(a.t, err)
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: records.AnchorConfigMap}, Data: map[string]string{clitest.PolicyUID: string(raw)},
	}
}

// setBack has the ledger say that the chain ends at a record.
func (a *archive) setBack(i int) func(*v1alpha1.RemediationLedger) {
	return func(l *v1alpha1.RemediationLedger) {
		l.Status.Chains[0].Sequence, l.Status.Chains[0].Digest = int64(i+1), a.Sealed[i].Digest
	}
}

func forgets(l *v1alpha1.RemediationLedger) { l.Status.Chains = nil }

func TestEvidenceVerify_BelievesTheAnchorMoreThanTheLedger(t *testing.T) {
	for name, tc := range map[string]struct {
		anchor  func(a *archive) *corev1.ConfigMap
		cluster func(a *archive) func(*v1alpha1.RemediationLedger)
		cut     int // records that remain
		args    []string
		code    int
		want    []string
	}{
		"all is whole": {
			anchor: func(a *archive) *corev1.ConfigMap { return a.anchorAt(1, 3) }, cut: 5,
			want: []string{"goes as far as the ledger says", "compared with 2 checkpoints, the last one at #4 of 2026-03-01", "Whole: 5 records"},
		},
		"the ledger was set back with the store": {
			anchor: func(a *archive) *corev1.ConfigMap { return a.anchorAt(1, 4) }, cut: 3, code: 1,
			cluster: func(a *archive) func(*v1alpha1.RemediationLedger) { return a.setBack(2) },
			want:    []string{"CutOff ", "the chain ends at 3, and went to 5 at 2026-03-01"},
		},
		"another record stood there": {
			anchor: func(a *archive) *corev1.ConfigMap {
				m := a.anchorAt(3)
				m.Data[clitest.PolicyUID] = strings.Replace(m.Data[clitest.PolicyUID], a.Sealed[3].Digest, a.Sealed[2].Digest, 1)
				return m
			}, cut: 5, code: 1, want: []string{"Rewritten "},
		},
		"no ledger knows the chain, and the anchor does": {
			anchor: func(a *archive) *corev1.ConfigMap { return a.anchorAt(4) }, cut: 5,
			cluster: func(*archive) func(*v1alpha1.RemediationLedger) { return forgets },
			want:    []string{"goes as far as the anchor says", "Whole: 5 records"},
		},
		"an anchor that cannot be read": {
			anchor: func(a *archive) *corev1.ConfigMap { m := a.anchorAt(4); m.Data[clitest.PolicyUID] = "{"; return m }, cut: 5, code: 2,
			want: []string{"reading the anchor of chain"},
		},
		"no anchor in a file": {cut: 5, code: 2, args: []string{"--anchor", "/nonexistent"}, want: []string{"reading the anchor: open /nonexistent"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := filled(t)
			for i := tc.cut; i < len(a.Sealed); i++ {
				clitest.Must(t, os.Remove(a.path(i)))
			}
			var change []func(*v1alpha1.RemediationLedger)
			if tc.cluster != nil {
				change = append(change, tc.cluster(a))
			}
			objects := a.cluster(change...)
			if tc.anchor != nil {
				objects = append(objects, tc.anchor(a))
			}
			got := clitest.Cluster{Objects: objects}.Run(t, verbs, "", append([]string{"evidence", "verify", "--evidence", a.Dir}, tc.args...)...)
			if got.Code != tc.code {
				t.Errorf("exit code %d, want %d\n%s", got.Code, tc.code, got.Stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Stdout+got.Stderr, want) {
					t.Errorf("%q is missing in\n%s%s", want, got.Stdout, got.Stderr)
				}
			}
		})
	}
}

// An auditor has the store, the keys and the anchor, each from elsewhere.
func TestEvidenceVerify_KnowsTheEndOfflineByTheAnchor(t *testing.T) {
	a := filled(t)
	raw, err := json.Marshal(a.anchorAt(2, 4))
	clitest.Must(t, err)
	file := filepath.Join(t.TempDir(), "anchor.json")
	clitest.Must(t, os.WriteFile(file, raw, 0o600))
	args := []string{"evidence", "verify", "--evidence", a.Dir, "--offline", "--key", a.keyFile(), "--anchor", file}
	if got := (clitest.Cluster{Objects: []client.Object{}}).Run(t, verbs, "", args...); got.Code != 0 || !strings.Contains(got.Stdout, "goes as far as the anchor says") {
		t.Errorf("got %+v", got)
	}
	clitest.Must(t, os.Remove(a.path(4)))
	if got := (clitest.Cluster{Objects: []client.Object{}}).Run(t, verbs, "", args...); got.Code != 1 || !strings.Contains(got.Stdout, "CutOff ") {
		t.Errorf("got %+v", got)
	}
}

// Who may read the ledgers, and no ConfigMap, gave the keys in files before there was an
// anchor.
func TestEvidenceVerify_WarnsWhereTheAnchorMayNotBeRead(t *testing.T) {
	a := filled(t)
	hooks := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if key.Name == records.AnchorConfigMap {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New("no"))
		}
		return c.Get(ctx, key, o, opts...)
	}}
	got := clitest.Cluster{Objects: a.cluster(), Hooks: hooks}.Run(t, verbs, "", "evidence", "verify", "--evidence", a.Dir, "--key", a.keyFile())
	if got.Code != 0 || !strings.Contains(got.Stderr, "Warning: reading the anchor") || !strings.Contains(got.Stdout, "Whole: 5 records") {
		t.Errorf("got %+v", got)
	}
}
