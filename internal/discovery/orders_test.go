// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// preparing is a release whose canary has a tenth, with a prepared rollback.
func preparing(sequence int64) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: at("shop", "web", 0)}
	r.Spec.ServiceName = "web"
	r.Status.Effective = &v1alpha1.EffectiveSplit{ServiceName: "web", Sequence: sequence, PreparedSequence: sequence + 1, Salt: "salt", Variations: []v1alpha1.EffectiveVariation{
		{Name: "stable", Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"v": "stable"}}, Weight: new(int32(9000)), Reserved: new(int32(0))},
		{Name: "canary", Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"v": "canary"}}, Weight: new(int32(1000)), Reserved: new(int32(10000))},
	}}
	return r
}

// TestAReplicaCarriesOutAnOrderBeforeTheStatusSaysSo goes from an order to the split and the sum of a
// replica, and on to the decisions that the API server brings afterwards.
func TestAReplicaCarriesOutAnOrderBeforeTheStatusSaysSo(t *testing.T) {
	r := preparing(7)
	s := sourcesOf(t, clusterService(at("shop", "web", 0), "10.0.0.1"), r)
	var marked []dirty
	g := &ground{from: s, changed: func(_ Haste, d dirty) { marked = append(marked, d) }, others: &following{log: logr.Discard()}}
	var memory ir.Memory
	type seen struct {
		Sequence uint64
		Canary   traffic.Weight
		Sum      uint64
	}
	look := func() seen {
		names, in, err := s.inputs(t.Context(), ir.Names{{Namespace: "shop", Name: "web"}: true}, &memory)
		if err != nil || len(in.Splits) != 1 {
			t.Fatalf("%d splits: %v", len(in.Splits), err)
		}
		return seen{in.Splits[0].Sequence, in.Splits[0].Shares[1].Weight, memory.Rebuild(names, in).Sequence}
	}
	decide := func(sequence, prepared int64, canary int32) {
		stored := &v1alpha1.ABRelease{}
		live := s.live.(client.Client) //nolint:forcetypeassert // it is the fake one
		if err := live.Get(t.Context(), client.ObjectKeyFromObject(r), stored); err != nil {
			t.Fatal(err)
		}
		e := stored.Status.Effective
		e.Sequence, e.PreparedSequence = sequence, prepared
		e.Variations[0].Weight, e.Variations[1].Weight = new(10000-canary), new(canary)
		if err := live.Update(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want seen) {
		t.Helper()
		if diff := cmp.Diff(want, look()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("at first", seen{7, 1000, 7})
	g.obey([]peers.Order{{Release: "web", Sequence: 12}})
	check("after an order that is not prepared here", seen{7, 1000, 7})
	g.obey([]peers.Order{{Release: "web", Sequence: 8}})
	check("after the order", seen{8, 0, 7})
	if len(marked) != 2 || !marked[1].services[types.NamespacedName{Namespace: "shop", Name: "web"}] {
		t.Errorf("built anew are %v", marked)
	}
	if g.obey([]peers.Order{{Release: "web", Sequence: 8}}); len(marked) != 2 {
		t.Error("an order that is told again builds anew")
	}
	decide(8, 0, 0)
	check("when the status says so as well", seen{8, 0, 8})
	decide(9, 10, 2500)
	check("at a later stage", seen{9, 2500, 9})
	decide(11, 12, 5000)
	check("at the stage whose order came first", seen{12, 0, 11})
	decide(13, 14, 10000)
	check("beyond all orders", seen{13, 10000, 13})
	if left := s.orders.all(); len(left) != 0 {
		t.Errorf("orders that are past are kept: %v", left)
	}
}

func TestOrdersOfReleasesThatAreGoneAreForgotten(t *testing.T) {
	s := sourcesOf(t, preparing(7))
	g := &ground{from: s, changed: func(Haste, dirty) {}, others: &following{log: logr.Discard()}}
	g.obey([]peers.Order{{Release: "gone", Sequence: 3}, {Release: "web", Sequence: 8}})
	if diff := cmp.Diff([]peers.Order{{Release: "web", Sequence: 8}}, s.orders.all()); diff != "" {
		t.Errorf("the orders (-want +got):\n%s", diff)
	}
}

func TestOrdersHaveBounds(t *testing.T) {
	var o orders
	waiting := o.changed()
	for i := range uint64(2 * maxOrdersOfOne) {
		o.add("one", i+1)
	}
	for i := range 2 * maxOrders {
		o.add(types.UID(fmt.Sprint("release-", i)), 1)
	}
	if n := len(o.all()); n != maxOrdersOfOne+maxOrders-1 {
		t.Errorf("%d orders are kept", n)
	}
	select {
	case <-waiting:
	default:
		t.Error("an order is not told of")
	}
}

func TestRoutersOrderNothingBeforeTheMeshIsServed(t *testing.T) {
	r := NewRouters()
	if err := r.Order("web", 8); err == nil {
		t.Error("there is no error")
	}
	if r.Ordered("web", 8) {
		t.Error("it is ordered")
	}
	s := sourcesOf(t, preparing(7))
	r.open(&ground{from: s, changed: func(Haste, dirty) {}, others: &following{log: logr.Discard()}})
	if err := r.Order("web", 8); err != nil || !r.Ordered("web", 8) || r.Ordered("web", 9) {
		t.Errorf("the orders are %v, and the error is %v", s.orders.all(), err)
	}
}
