// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func sliceOf(ready ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: at("shop", "web-1", 0)}
	for _, address := range []string{"10.0.1.1", "10.0.1.2"} {
		is := false
		for _, r := range ready {
			is = is || r == address
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &is}})
	}
	return s
}

func podThat(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: at("shop", "web-0", 0)}
	p.Labels = map[string]string{"v": "canary"}
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.0.1.1", []corev1.PodIP{{IP: "10.0.1.1"}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func ending(p *corev1.Pod)  { p.DeletionTimestamp = &metav1.Time{Time: begin.Add(time.Minute)} }
func elsewhere(p *corev1.Pod) {
	p.Namespace = "bank"
}

func inForce(sequence int64) *v1alpha1.ABRelease {
	r := releaseOf("first", "web")
	r.Status.Effective = &v1alpha1.EffectiveSplit{Sequence: sequence, ServiceName: "web"}
	return r
}

func quarantined(is bool) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{ObjectMeta: at("shop", "web", 0)}
	if is {
		b.Status.Quarantine = &v1alpha1.Quarantine{}
	}
	return b
}

// What somebody decided waits for nothing, endpoints that go nearly so, and what comes in
// flocks until the flock is there.
func TestAChangeIsAsHastyAsWhatItIs(t *testing.T) {
	relabeled := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"v": value} }
	}
	annotated := func(p *corev1.Pod) { p.Annotations = map[string]string{"x": "y"} }
	said := inForce(2)
	said.Status.ObservedGeneration = 7
	node := func(zone string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: at("", "n1", 0)}
		n.Labels = map[string]string{corev1.LabelTopologyZone: zone}
		return n
	}
	web := clusterService(at("shop", "web", 0), "10.0.0.1")
	tests := map[string]struct {
		// before is nil for what is new, after for what is gone.
		before, after client.Object
		want          []Haste
	}{
		"a release that is new is decided":              {nil, inForce(1), []Haste{AtOnce}},
		"and so is a step":                              {inForce(1), inForce(2), []Haste{AtOnce}},
		"and so is its end":                             {inForce(1), nil, []Haste{AtOnce}},
		"what else a release says changes no request":   {inForce(2), said, nil},
		"a quarantine is decided":                       {quarantined(false), quarantined(true), []Haste{AtOnce}},
		"one that is new too":                           {nil, quarantined(true), []Haste{AtOnce}},
		"and the end of one":                            {quarantined(true), quarantined(false), []Haste{AtOnce}},
		"also when the Baseline goes":                   {quarantined(true), nil, []Haste{AtOnce}},
		"a Baseline without one is no matter":           {nil, quarantined(false), nil},
		"nor is its end":                                {quarantined(false), nil, nil},
		"an endpoint that goes is lost to each request": {sliceOf("10.0.1.1", "10.0.1.2"), sliceOf("10.0.1.1"), []Haste{Soon}},
		"also when another comes":                       {sliceOf("10.0.1.1"), sliceOf("10.0.1.2"), []Haste{Soon}},
		"and when the slice goes":                       {sliceOf("10.0.1.1"), nil, []Haste{Soon}},
		"one that comes may wait for the others":        {sliceOf("10.0.1.1"), sliceOf("10.0.1.1", "10.0.1.2"), []Haste{Later}},
		"and so may a slice":                            {nil, sliceOf("10.0.1.1"), []Haste{Later}},
		"a pod that is no longer ready is lost":         {podThat(), podThat(unready), []Haste{Soon}},
		"and one that ends":                             {podThat(), podThat(ending), []Haste{Soon}},
		"and one that is gone":                          {podThat(), nil, []Haste{Soon}},
		"one that is ready may wait":                    {podThat(unready), podThat(), []Haste{Later}},
		"and one that is new":                           {nil, podThat(), []Haste{Later}},
		"and one that goes to another variation":        {podThat(), podThat(relabeled("stable")), []Haste{Later}},
		"what nobody decides by is no matter":           {podThat(), podThat(annotated), nil},
		"nor is a pod of whom nothing was decided":      {podThat(elsewhere), podThat(elsewhere, unready), nil},
		"a Service may wait":                            {nil, web, []Haste{Later}},
		"and the end of a Service":                      {web, nil, []Haste{Later}},
		"a node of another zone may wait":               {node("a"), node("b"), []Haste{Later}},
		"a node that is as it was is no matter":         {node("a"), node("a"), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := sourcesOf(t)
			informers := &informertest.FakeInformers{Scheme: s.live.(client.Client).Scheme()} //nolint:forcetypeassert // it is the fake one
			s.cache = informers
			s.concern.set("shop", "ABRelease/other", true)
			var got []Haste
			changed := func(h Haste, _ dirty) { got = append(got, h) }
			quiet := func(string) {}
			if err := s.watch(t.Context(), changed, endings{gone: quiet, rescoped: quiet}); err != nil {
				t.Fatal(err)
			}
			for _, k := range s.kindsThat(changed) {
				if err := s.handle(t.Context(), k.object, k.handler); err != nil {
					t.Fatal(err)
				}
			}
			object := tc.after
			if object == nil {
				object = tc.before
			}
			informer, err := informers.FakeInformerFor(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tc.before == nil:
				informer.Add(tc.after)
			case tc.after == nil:
				informer.Delete(tc.before)
			default:
				informer.Update(tc.before, tc.after)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("it is told as (-want +got):\n%s", diff)
			}
		})
	}
}
