// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
	return meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionMassDrift)
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
