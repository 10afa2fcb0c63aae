// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plumbline-dev/plumbline/internal/controller/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// A release whose first decision the cache had not seen yet was taken for one that has
// lost it: its Service was told a sequence a thousand above that of the release.
func TestADecisionThatTheCacheHasNotSeenIsNotLost(t *testing.T) {
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-1"}}
	c := fake.NewClientBuilder().WithScheme(kinds).WithObjects(r).WithStatusSubresource(r).Build()
	ledger := &Ledger{Live: c, Client: c, Namespace: "plumbline-system"}
	service := types.NamespacedName{Namespace: "shop", Name: "web"}
	cached := &v1alpha1.ABRelease{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(r), cached); err != nil {
		t.Fatal(err)
	}
	if floor, err := ledger.Hold(t.Context(), service, cached, 0); err != nil || floor != 0 {
		t.Fatalf("the first decision: floor %d, %v", floor, err)
	}
	decided := cached.DeepCopy()
	decided.Status.InForce = &v1alpha1.SplitInForce{Sequence: 1}
	if err := c.Status().Update(t.Context(), decided); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Hold(t.Context(), service, cached, 0); !apierrors.IsConflict(err) {
		t.Errorf("decided by a cache that is behind: %v, want a conflict", err)
	}
	var stored corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: release.LedgerName}, &stored); err != nil {
		t.Fatal(err)
	}
	entries, err := release.ParseEntries(stored.Data)
	if err != nil || entries["shop.web"].Plain != 0 {
		t.Errorf("the Service has %v, %v, want sequence 0 without the release", entries, err)
	}
}
