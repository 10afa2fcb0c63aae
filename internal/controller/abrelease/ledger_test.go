// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// A release whose first decision the cache had not seen yet was taken for one that has
// lost it: its Service was told a sequence a thousand above that of the release.
func TestADecisionThatTheCacheHasNotSeenIsNotLost(t *testing.T) {
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-1"}}
	c := fakeclient.NewBuilder(kinds).WithObjects(r).WithStatusSubresource(r).Build()
	ledger := &Ledger{Live: c, Client: c, Namespace: "plumbline-system", Clock: clock.RealClock{}}
	service := types.NamespacedName{Namespace: "shop", Name: "web"}
	cached := &v1alpha1.ABRelease{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(r), cached); err != nil {
		t.Fatal(err)
	}
	if floor, err := ledger.Hold(t.Context(), service, cached, 0); err != nil || floor != 0 {
		t.Fatalf("the first decision: floor %d, %v", floor, err)
	}
	decided := cached.DeepCopy()
	decided.Status.Effective = &v1alpha1.EffectiveSplit{Sequence: 1}
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

// stand is a ledger with what is stored, and a release that has something in force.
func stand(t *testing.T, data map[string]string) (ledger *Ledger, c client.Client, r *v1alpha1.ABRelease) {
	t.Helper()
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	r = &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-1"}}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: release.LedgerName}, Data: data}
	c = fakeclient.NewBuilder(kinds).WithObjects(r, stored).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	return &Ledger{Live: c, Client: c, Namespace: "plumbline-system", Clock: clock.RealClock{}}, c, r
}

func storedIn(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	var m corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: release.LedgerName}, &m); err != nil {
		t.Fatal(err)
	}
	return m.Data
}

func TestWhatSomebodyHasDoneToTheLedger(t *testing.T) {
	const held = `{"plain":1000,"ceiling":2000,"release":"web","holder":"uid-1"}`
	whole := map[string]string{"shop.web": held, "shop.gone": `{"plain":3000}`}
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	for name, data := range map[string]map[string]string{
		"an entry of a Service without a release is gone": {"shop.web": held},
		"all is gone":                        nil,
		"entries are cut off":                {"shop.web": held[:20], "shop.gone": `{"pl`},
		"entries are those of before":        {"shop.web": `{"plain":0,"ceiling":1000,"release":"web","holder":"uid-0"}`, "shop.gone": `{"plain":2000}`},
		"an entry is lower, of the same one": {"shop.web": `{"plain":0,"ceiling":1500,"release":"web","holder":"uid-1"}`, "shop.gone": `{"plain":3000}`},
	} {
		t.Run(name, func(t *testing.T) {
			ledger, c, r := stand(t, whole)
			if err := ledger.Keep(t.Context(), web, r, 1200); err != nil {
				t.Fatal(err)
			}
			changed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: release.LedgerName}, Data: data}
			if err := c.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			ledger.looked = time.Time{}
			if err := ledger.Keep(t.Context(), web, r, 1200); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole, storedIn(t, c)); diff != "" {
				t.Errorf("it is not written again (-want +got):\n%s", diff)
			}
		})
	}
}

// What nobody can read and this process does not know is left as it is, and is in the way
// of nobody but who would begin anew there.
func TestAnEntryThatNobodyKnows(t *testing.T) {
	broken := map[string]string{"shop.web": "{", "shop.pay": "none"}
	web, pay, more := types.NamespacedName{Namespace: "shop", Name: "web"}, types.NamespacedName{Namespace: "shop", Name: "pay"}, types.NamespacedName{Namespace: "shop", Name: "more"}
	ledger, c, r := stand(t, broken)
	if _, err := ledger.Hold(t.Context(), pay, r, 0); err == nil || !strings.Contains(err.Error(), "shop.pay") || !strings.Contains(err.Error(), "restart the proxies of its Service") {
		t.Errorf("a release begins anew: %v", err)
	}
	if err := ledger.Settle(t.Context(), types.NamespacedName{Namespace: "shop", Name: "none"}); err != nil {
		t.Errorf("that a release is gone is not noted: %v", err)
	}
	if _, err := ledger.Hold(t.Context(), more, r, 0); err != nil {
		t.Errorf("another Service is not divided: %v", err)
	}
	if err := ledger.Keep(t.Context(), web, r, 77); err != nil {
		t.Errorf("what is in force is not held: %v", err)
	}
	want := map[string]string{
		"shop.pay": "none", "shop.more": `{"plain":0,"ceiling":1000,"release":"web","holder":"uid-1"}`,
		"shop.web": `{"plain":0,"ceiling":1077,"release":"web","holder":"uid-1"}`,
	}
	if diff := cmp.Diff(want, storedIn(t, c)); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
}

// Who leads no more may still see that a release is gone which was made anew under its
// name, and has decided: its Service was told a sequence that the release is far below.
func TestAReleaseThatIsThereIsNotSettledByACacheThatIsBehind(t *testing.T) {
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-2"}}
	c := fakeclient.NewBuilder(kinds).WithObjects(r).WithStatusSubresource(r).Build()
	leads := &Ledger{Live: c, Client: c, Namespace: "plumbline-system", Clock: clock.RealClock{}}
	before := &Ledger{Live: c, Client: c, Namespace: "plumbline-system", Clock: clock.RealClock{}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	if _, err := leads.Hold(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, r, 0); err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		t.Helper()
		var stored corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: release.LedgerName}, &stored); err != nil {
			t.Fatal(err)
		}
		entries, err := release.ParseEntries(stored.Data)
		if err != nil {
			t.Fatal(err)
		}
		return entries["shop.web"].Holder
	}
	if err := before.Settle(t.Context(), client.ObjectKeyFromObject(r)); err != nil || holder() != "uid-2" {
		t.Errorf("its holder is %q, %v", holder(), err)
	}
	if err := c.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := before.Settle(t.Context(), client.ObjectKeyFromObject(r)); err != nil || holder() != "" {
		t.Errorf("one that is gone still holds it: %q, %v", holder(), err)
	}
}
