// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestWhichGuardsMayDeny: what could be walked around is refused with the path
// of the field.
func TestWhichGuardsMayDeny(t *testing.T) {
	tests := map[string]struct {
		edit    func(*v1alpha1.ClusterSpecGuard)
		refused string
	}{
		"by namespace and kind":  {func(*v1alpha1.ClusterSpecGuard) {}, ""},
		"without a namespace":    {func(g *v1alpha1.ClusterSpecGuard) { g.Spec.NamespaceSelector = nil }, ""},
		"with replicas left out": {func(g *v1alpha1.ClusterSpecGuard) { g.Spec.ExpectedWriters = expecting("/spec/replicas") }, ""},
		"by a label": {func(g *v1alpha1.ClusterSpecGuard) {
			g.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, "spec.selector: "},
		"with an image left out": {func(g *v1alpha1.ClusterSpecGuard) { g.Spec.ExpectedWriters = expecting("/spec/template") }, "spec.expectedWriters: "},
		"with replicas and others": {func(g *v1alpha1.ClusterSpecGuard) {
			g.Spec.ExpectedWriters = expecting("/spec/replicas", "/spec/paused")
		}, "spec.expectedWriters: "},
		"by a label, but warning only": {func(g *v1alpha1.ClusterSpecGuard) {
			g.Spec.Mode, g.Spec.Selector = v1alpha1.GuardModeWarn, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			g.Spec.ExpectedWriters = expecting("/spec/template")
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := guard(fmt.Sprintf("kinds-%d", time.Now().UnixNano()), "no-such-namespace")
			test.edit(g)
			checkInvalid(t, admin.Create(t.Context(), g, client.DryRunAll), test.refused)
		})
	}
	t.Run("a SpecGuard may not", func(t *testing.T) {
		g := &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deny"}}
		g.Spec.Resources, g.Spec.Mode = workloads, v1alpha1.GuardModeDeny
		checkInvalid(t, admin.Create(t.Context(), g, client.DryRunAll), "spec.mode: ")
	})
	t.Run("a guard that selects by label may not begin to", func(t *testing.T) {
		g := guard(fmt.Sprintf("kinds-%d", time.Now().UnixNano()), "no-such-namespace")
		g.Spec.Mode, g.Spec.Selector = v1alpha1.GuardModeAudit, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		mustDo(t, admin.Create(t.Context(), g))
		g.Spec.Mode = v1alpha1.GuardModeDeny
		checkInvalid(t, admin.Update(t.Context(), g), "spec.selector: ")
		mustDo(t, admin.Delete(t.Context(), g))
	})
}

func expecting(paths ...string) []v1alpha1.ExpectedWriter {
	return []v1alpha1.ExpectedWriter{{Name: "r", Paths: paths, Writers: v1alpha1.Writers{Users: []string{"u"}}}}
}

func checkInvalid(t *testing.T, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), refused)):
		t.Errorf("got %v, want Invalid at %s", err, refused)
	}
}
