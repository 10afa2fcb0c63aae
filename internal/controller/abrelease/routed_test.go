// SPDX-License-Identifier: Apache-2.0

// One goroutine decides: the race detector has nothing to say of it, and takes six times as long.
//go:build !race

package abrelease

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

// stated are TrafficRouters with states.
type stated struct {
	edges
	states []v1alpha1.ReleaseRouterStatus
}

// States implements Connectors.
func (s *stated) States(types.NamespacedName) []v1alpha1.ReleaseRouterStatus { return s.states }

func TestTheStateOfARouterIsInTheStatus(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	for name, tc := range map[string]struct {
		stored, now, want []v1alpha1.ReleaseRouterStatus
	}{
		"the first state":                {nil, []v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 1}}, []v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 1}}},
		"a later state":                  {[]v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 1}}, []v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 2}}, []v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 2}}},
		"a router that is not connected": {[]v1alpha1.ReleaseRouterStatus{{Name: "far", Sequence: 1}}, []v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 2}}, []v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 2}, {Name: "far", Sequence: 1}}},
		"a router without a split":       {[]v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 1, Restores: []v1alpha1.RouterRestore{{RestoreTime: at(1)}}}}, []v1alpha1.ReleaseRouterStatus{{Name: "edge"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := routed(t, edges{"edge": &routertest.Recorder{}}, "edge")
			w.Connectors = &stated{edges{"edge": &routertest.Recorder{}}, tc.now}
			r := w.read()
			r.Status.Routers = tc.stored
			if err := w.Client.Status().Update(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, w.looks().Status.Routers); d != "" {
				t.Errorf("the states (-want +got):\n%s", d)
			}
		})
	}
}

func TestARestoreIsToldOnce(t *testing.T) {
	w := routed(t, edges{}, "edge")
	of := &stated{edges{"edge": &routertest.Recorder{}}, []v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 1}}}
	w.Connectors = of
	w.looks()
	for _, restored := range []int{1, 2} {
		for len(w.events.Events) > 0 {
			<-w.events.Events
		}
		of.states[0].LastEditor = "argocd-controller"
		at := metav1.NewTime(noon.Add(time.Duration(restored) * time.Minute))
		of.states[0].Restores = append(of.states[0].Restores, v1alpha1.RouterRestore{RestoreTime: at})
		w.looks()
		var told []string
		for len(w.events.Events) > 0 {
			told = append(told, <-w.events.Events)
		}
		want := `RouteChangedByAnother router edge: field manager "argocd-controller" changed the weights of the route, and the router restored them`
		if len(told) != 1 || !strings.Contains(told[0], want) {
			t.Errorf("after restore %d the Events are %q, want one with %q", restored, told, want)
		}
	}
}

// The status said that the state of the router is not known, and not why.
func TestARouterThatDoesNotTakeASplitSaysWhy(t *testing.T) {
	edge := &routertest.Recorder{}
	w := routed(t, edges{"edge": edge}, "edge")
	edge.Break(errors.New("RuleNotNamed"))
	edge.Say(traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1, OutOfSync: []traffic.OutOfSync{{Name: "HTTPRoute shop/web", Why: "RuleNotNamed: name the rule"}}})
	if c := conditionOf(w.looks(), v1alpha1.ConditionAcknowledged); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "HTTPRoute shop/web (RuleNotNamed: name the rule)") {
		t.Errorf("Acknowledged is %+v", c)
	}
}

func TestARouteThatIsGoneHoldsNoRelease(t *testing.T) {
	edge := &routertest.Recorder{}
	w := routed(t, edges{"edge": edge}, "edge")
	w.looks()
	edge.Say(traffic.Observation{Knowledge: traffic.NoProxies, Wanted: 1, OutOfSync: []traffic.OutOfSync{{Name: "HTTPRoute shop/web", Why: "RouteNotFound"}}})
	r := w.looks()
	if c := conditionOf(r, v1alpha1.ConditionReady); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "no program carries the split out: HTTPRoute shop/web (RouteNotFound)") {
		t.Errorf("Ready is %+v", c)
	}
	if err := w.Client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if r, err := w.lookOften(); r != nil || err != nil {
		t.Errorf("the release is %v, %v", r, err)
	}
}
