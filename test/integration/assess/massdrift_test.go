// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// guardCounts waits until a guard counts so many drifting objects, and says
// whether it speaks of mass drift then.
func (w *world) guardCounts(g *v1alpha1.SpecGuard, objects, drifted int32) (frozen bool) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%d of %d objects drift", drifted, objects), func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		if g.Status.Objects != objects || g.Status.Drifted != drifted {
			return fmt.Errorf("it counts %d of %d", g.Status.Drifted, g.Status.Objects)
		}
		return nil
	})
	return v1alpha1.IsDegradedFor(g.Status.Conditions, v1alpha1.ReasonMassDrift)
}

// TestMassDriftBeginsAtThirtyPercentAndEndsBelowFifteen walks over both edges
// with twenty objects.
func TestMassDriftBeginsAtThirtyPercentAndEndsBelowFifteen(t *testing.T) {
	const objects = 20
	w := newWorld(t)
	c := &laterClock{}
	start(t, withClock(c))
	g := w.UnderGuard()
	for i := range objects {
		w.Deploy(ci, fmt.Sprint("web-", i))
	}
	if w.guardCounts(g, objects, 0) {
		t.Fatal("frozen without drift")
	}
	drift := func(i int) { w.SetImage(alice, fmt.Sprint("web-", i), "registry.example/evil:1") }
	restore := func(i int) { w.SetImage(alice, fmt.Sprint("web-", i), "registry.example/shop:1") }
	for i := range 5 {
		drift(i)
	}
	if w.guardCounts(g, objects, 5) {
		t.Error("frozen at 25 %")
	}
	// What drifts one after the other is no mass drift, however much it is.
	c.forward(11 * time.Minute)
	for i := range 5 {
		drift(5 + i)
	}
	if w.guardCounts(g, objects, 10) {
		t.Error("frozen at 25 % within ten minutes and 25 % before")
	}
	drift(10)
	if !w.guardCounts(g, objects, 11) {
		t.Error("not frozen at 30 % within ten minutes")
	}
	// It does not end by time, but by what drifts.
	c.forward(time.Hour)
	for i := range 8 {
		restore(i)
	}
	if !w.guardCounts(g, objects, 3) {
		t.Error("the freeze ended at 15 %")
	}
	restore(8)
	if w.guardCounts(g, objects, 2) {
		t.Error("still frozen at 10 %")
	}
	// The way back is the long one again.
	for i := range 3 {
		drift(i)
	}
	if w.guardCounts(g, objects, 5) {
		t.Error("frozen at 25 % again")
	}
}

// frozenWith waits until so many objects drift, and returns what is frozen then.
func (w *world) frozenWith(g *v1alpha1.ClusterSpecGuard, objects, drifted int32) *v1alpha1.MassDrift {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%d of %d objects drift", drifted, objects), func() error {
		w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g))
		if g.Status.Objects != objects || g.Status.Drifted != drifted {
			return fmt.Errorf("it counts %d of %d", g.Status.Drifted, g.Status.Objects)
		}
		return nil
	})
	if told := v1alpha1.IsDegradedFor(g.Status.Conditions, v1alpha1.ReasonMassDrift); told != (g.Status.MassDrift != nil) {
		w.t.Errorf("it is degraded by mass drift: %t, and frozen is %+v", told, g.Status.MassDrift)
	}
	return g.Status.MassDrift
}

// H10 of the guard's review: junk of one tenant froze the repair of everybody under
// the same guard.
func TestJunkAndDriftOfOneTenantFreezeNothingInAnotherNamespace(t *testing.T) {
	const team, junk = 4, 45
	w, tenant := newWorld(t), newWorld(t)
	start(t)
	g := w.UnderClusterGuard(w.namespace, tenant.namespace)
	for i := range team {
		w.Deploy(ci, fmt.Sprint("web-", i))
	}
	for i := range junk {
		tenant.Deploy(alice, fmt.Sprint("junk-", i))
	}
	w.SetImage(alice, "web-0", "registry.example/evil:1")
	if m := w.frozenWith(g, team+junk, junk+1); m != nil {
		t.Errorf("junk freezes %+v", m)
	}
	// What CI deploys for the tenant drifts as well, more of it than others have.
	for i := range 2 * team {
		tenant.Deploy(ci, fmt.Sprint("web-", i))
		tenant.UntilIs(fmt.Sprint("web-", i), "InSync")
		tenant.SetImage(alice, fmt.Sprint("web-", i), "registry.example/evil:1")
	}
	m := w.frozenWith(g, 3*team+junk, junk+1+2*team)
	if m == nil || len(m.Namespaces) != 1 || m.Namespaces[0].Name != tenant.namespace || len(m.Causes) > 0 || m.EverythingStartTime != nil {
		t.Errorf("frozen is %+v, want the namespace %s of the tenant alone", m, tenant.namespace)
	}
}

// One controller changes what no namespace has much of.
func TestOneCauseOverManyNamespacesIsFrozenInEach(t *testing.T) {
	var worlds []*world
	var names []string
	for range 4 {
		each := newWorld(t)
		worlds, names = append(worlds, each), append(names, each.namespace)
	}
	w := worlds[0]
	start(t)
	g := w.UnderClusterGuard(names...)
	for _, each := range worlds {
		for _, name := range []string{"web", "db"} {
			each.Deploy(ci, name)
			each.UntilIs(name, "InSync")
		}
		each.SetImage(bob, "web", "registry.example/shop:bobs")
	}
	m := w.frozenWith(g, 8, 4)
	if m == nil || len(m.Namespaces) > 0 || len(m.Causes) != 1 {
		t.Fatalf("frozen is %+v, want one cause", m)
	}
	m.Causes[0].StartTime = metav1.Time{}
	want := v1alpha1.FrozenCause{Path: "/spec/template/spec/containers/*/image", User: bob}
	if diff := cmp.Diff(want, m.Causes[0]); diff != "" {
		t.Errorf("the cause (-want +got):\n%s", diff)
	}
	for _, each := range worlds[:3] {
		each.SetImage(bob, "web", "registry.example/shop:1")
	}
	if m := w.frozenWith(g, 8, 1); m != nil {
		t.Errorf("still frozen is %+v", m)
	}
}
