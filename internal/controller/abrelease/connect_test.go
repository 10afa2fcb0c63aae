// SPDX-License-Identifier: Apache-2.0

// One goroutine decides: the race detector has nothing to say of it, and takes six times as long.
//go:build !race

package abrelease

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

// edges are TrafficRouters by name; another name is refused.
type edges map[string]*routertest.Recorder

// Connect implements Connectors.
func (e edges) Connect(_ context.Context, _ *v1alpha1.ABRelease, name string) (traffic.Router, error) {
	if e[name] == nil {
		return nil, errors.New("TrafficRouter " + name + " does not exist")
	}
	return e[name], nil
}

// States implements Connectors.
func (edges) States(types.NamespacedName) []v1alpha1.ReleaseRouterStatus { return nil }

// Forget implements Connectors.
func (edges) Forget(types.NamespacedName) {}

// routed is a world whose release names routers.
func routed(t *testing.T, of edges, names ...string) *world {
	t.Helper()
	w := newWorld(t)
	if of != nil {
		w.Connectors = of
	}
	r := w.read()
	for _, name := range names {
		r.Spec.Routers = append(r.Spec.Routers, v1alpha1.ReleaseRouter{Name: name})
	}
	if err := w.Client.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	return w
}

// read returns the release as it is stored.
func (w *world) read() *v1alpha1.ABRelease {
	w.Helper()
	r := &v1alpha1.ABRelease{}
	if err := w.Client.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, r); err != nil {
		w.Fatal(err)
	}
	return r
}

func TestTheRoutersOfARelease(t *testing.T) {
	for name, tc := range map[string]struct {
		of    edges
		names []string
		// told are the routers that have the split; refused is a part of the reason why there is none.
		told    []string
		refused string
	}{
		"without names the mesh":             {names: nil, told: []string{"mesh"}},
		"the mesh by name":                   {names: []string{"mesh"}, told: []string{"mesh"}},
		"a TrafficRouter, and not the mesh":  {of: edges{"edge": {}}, names: []string{"edge"}, told: []string{"edge"}},
		"several":                            {of: edges{"edge": {}, "far": {}}, names: []string{"edge", "mesh", "far"}, told: []string{"edge", "far", "mesh"}},
		"one that does not exist":            {of: edges{}, names: []string{"edge"}, refused: "spec.routers: TrafficRouter edge does not exist"},
		"one of two that does not exist":     {of: edges{"edge": {}}, names: []string{"edge", "far"}, refused: "router far: spec.routers: TrafficRouter far does not exist"},
		"an installation that has none":      {names: []string{"edge"}, refused: "set routers.enabled in the values of the chart"},
		"the mesh, and none beside the mesh": {names: []string{"mesh", "edge"}, refused: "router edge: spec.routers: TrafficRouters are not enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			w := routed(t, tc.of, tc.names...)
			r := w.looks()
			has := func(name string) bool {
				if name == "mesh" {
					return w.router.Current() != nil
				}
				return tc.of[name].Current() != nil
			}
			for _, name := range tc.told {
				if !has(name) {
					t.Errorf("router %s has no split", name)
				}
			}
			for name := range tc.of {
				if has(name) != (strings.Contains(strings.Join(tc.told, " "), name)) {
					t.Errorf("router %s has a split: %t", name, has(name))
				}
			}
			if has("mesh") && !strings.Contains(strings.Join(tc.told, " "), "mesh") {
				t.Error("the mesh has the split")
			}
			c := conditionOf(r, v1alpha1.ConditionReady)
			if tc.refused == "" && c.Status != metav1.ConditionTrue || tc.refused != "" && (c.Reason != reasonInvalid || !strings.Contains(c.Message, tc.refused)) {
				t.Errorf("Ready is %+v, want %q", c, tc.refused)
			}
		})
	}
}

// A release over a receiver told people of proxies that it does not have.
func TestTheStatusNamesTheRoutersOfARelease(t *testing.T) {
	for name, tc := range map[string]struct {
		routers []string
		want    string
	}{
		"the mesh":                     {nil, "0 of 1 proxies have acknowledged sequence 1"},
		"a TrafficRouter":              {[]string{"edge"}, "0 of 1 routers have acknowledged sequence 1"},
		"the mesh and a TrafficRouter": {[]string{"mesh", "edge"}, "0 of 2 proxies and routers have acknowledged sequence 1"},
	} {
		t.Run(name, func(t *testing.T) {
			edge := &routertest.Recorder{}
			w := routed(t, edges{"edge": edge}, tc.routers...)
			w.look()
			late := traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1, OutOfSync: []traffic.OutOfSync{{Name: "a", Why: "is late"}}}
			edge.Say(late)
			w.router.Say(late)
			if c := conditionOf(w.look(), v1alpha1.ConditionAcknowledged); !strings.Contains(c.Message, tc.want) {
				t.Errorf("Acknowledged is %+v, want %q", c, tc.want)
			}
		})
	}
}

func TestADeletedReleaseReturnsTheRequestsOfItsConnector(t *testing.T) {
	edge := &routertest.Recorder{}
	w := routed(t, edges{"edge": edge}, "edge")
	r := w.looks()
	if len(r.Finalizers) != 1 || edge.Current().Shares[1].Weight != 1_000 {
		t.Fatalf("the finalizers are %v, and the split is %+v", r.Finalizers, edge.Current())
	}
	edge.Say(traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1, OutOfSync: []traffic.OutOfSync{{Name: "edge", Why: "away"}}})
	if err := w.Client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if r, err := w.lookOften(); r == nil || err != nil || edge.Current().Shares[1].Weight != 0 {
		t.Fatalf("the release is %v, %v, and the split is %+v", r, err, edge.Current())
	}
	edge.Say(traffic.Observation{Sequence: edge.Current().Sequence, Knowledge: traffic.Proven, Wanted: 1, Acknowledged: 1})
	edge.Break(errors.New("no removal now"))
	if r, _ := w.lookOften(); r == nil {
		t.Fatal("the release went, and its router has a split")
	}
	edge.Break(nil)
	if r, err := w.lookOften(); r != nil || err != nil || edge.Current() != nil {
		t.Errorf("the release is %v, %v, and the split is %+v", r, err, edge.Current())
	}
}

func TestNoTrafficRouterHoldsAReleaseThatCannotHaveIt(t *testing.T) {
	of := edges{"edge": {}}
	w := routed(t, of, "edge")
	r := w.looks()
	delete(of, "edge")
	if err := w.Client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if r, err := w.lookOften(); r != nil || err != nil {
		t.Errorf("the release is %v, %v", r, err)
	}
}
