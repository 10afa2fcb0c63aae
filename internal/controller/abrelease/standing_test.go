// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/conditions"
)

// says demands a condition with a reason and a part of its message.
func says(t *testing.T, r *v1alpha1.ABRelease, kind string, is metav1.ConditionStatus, reason, text string) {
	t.Helper()
	c := meta.FindStatusCondition(r.Status.Conditions, kind)
	if c == nil || c.Status != is || c.Reason != reason || !strings.Contains(c.Message, text) {
		t.Errorf("%s is %+v, want %s %s %q", kind, c, is, reason, text)
	}
}

// Finding H6: with no proxy at all a release was Ready, "0 of 0 proxies".
func TestAReleaseThatNoProxyCarriesOutIsNeverReady(t *testing.T) {
	w := newWorld(t)
	w.router.Say(traffic.Observation{Knowledge: traffic.NoProxies, Around: traffic.Population{Pods: 5, Proxied: 3}})
	w.look()
	r := w.look()
	text := "no proxy routes requests to Service web: of 5 running pods in namespace shop 3 have a proxy, and the proxies of 0 route there; in mode explicit name the Service in the annotation plumbline.dev/local-ports of the clients"
	says(t, r, v1alpha1.ConditionReady, metav1.ConditionFalse, "NoProxies", text)
	says(t, r, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "NoProxies", text)
	if c := r.Status.Acknowledged; c.Knowledge != "NoProxies" || c.Count != "0/0" || c.Pods != 5 || c.ProxiedPods != 3 || c.RoutingPods != 0 {
		t.Errorf("it is %+v", c)
	}
	w.router.Say(traffic.Observation{Knowledge: traffic.NoProxies, Around: traffic.Population{Pods: 5}})
	says(t, w.look(), v1alpha1.ConditionReady, metav1.ConditionFalse, "NoProxies", "0 have a proxy, and the proxies of 0 route there; give the clients a proxy")
}

// outOfSync is one proxy that has not acknowledged, beside one that has.
var oneOutOfSync = traffic.Observation{
	Knowledge: traffic.Unknown, Wanted: 2, Acknowledged: 1,
	OutOfSync: []traffic.OutOfSync{{Name: "shop/front-1", Why: "does not answer", Since: noon}},
	Gone:      []traffic.OutOfSync{{Name: "shop/front-2", Why: "counts as gone: its node n1 is gone", Since: noon}},
}

// Finding H4: a release waited for ever, and nothing could be set.
func TestAReleaseDoesNotWaitForEver(t *testing.T) {
	tests := map[string]struct {
		acknowledgment *v1alpha1.Acknowledgment
		after          time.Duration
		ready          metav1.ConditionStatus
		reason, text   string
	}{
		"before its deadline it is being acknowledged": {nil, 9 * time.Minute, metav1.ConditionFalse, "Acknowledging", "not shop/front-1 (does not answer); not counted: shop/front-2 (counts as gone: its node n1 is gone)"},
		"after its deadline it holds":                  {nil, 10 * time.Minute, metav1.ConditionFalse, "DeadlineExceeded", "the deadline of 10m0s is over; mend these proxies, delete their pods, or set spec.acknowledgment.onTimeout to Proceed"},
		"or proceeds, with the proxies that are out of sync named": {&v1alpha1.Acknowledgment{Deadline: &metav1.Duration{Duration: time.Minute}, OnTimeout: v1alpha1.TimeoutProceed}, time.Minute,
			metav1.ConditionTrue, "Proceeded", "not shop/front-1 (does not answer)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var r v1alpha1.ABRelease
			if err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, &r); err != nil {
				t.Fatal(err)
			}
			r.Spec.Acknowledgment = tc.acknowledgment
			if err := w.Client.Update(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
			w.router.Say(oneOutOfSync)
			w.look()
			w.clock.SetTime(noon.Add(tc.after))
			is := w.look()
			says(t, is, v1alpha1.ConditionReady, tc.ready, tc.reason, tc.text)
			if state(is, v1alpha1.ConditionAcknowledged) != metav1.ConditionFalse || len(is.Status.Acknowledged.Gone) != 1 {
				t.Errorf("it is %+v, Acknowledged %s", is.Status.Acknowledged, state(is, v1alpha1.ConditionAcknowledged))
			}
			overdue := slices.ContainsFunc(w.said(), func(e string) bool { return strings.Contains(e, "DeadlineExceeded") })
			if overdue != (tc.reason == "DeadlineExceeded") {
				t.Errorf("an Event says that it is overdue: %t", overdue)
			}
		})
	}
}

// A process that begins to lead must not give a release its whole deadline anew.
func TestTheDeadlineBeginsWithTheDecisionAndNotWithItsReader(t *testing.T) {
	w := newWorld(t)
	w.router.Say(oneOutOfSync)
	w.look()
	w.clock.SetTime(noon.Add(6 * time.Minute))
	w.look()
	next := newWorld(t)
	next.Client, next.Sequences = w.Client, w.Sequences
	next.router.Say(oneOutOfSync)
	next.clock.SetTime(noon.Add(11 * time.Minute))
	if r := next.look(); r.Status.EffectiveTime == nil || !r.Status.EffectiveTime.Time.Equal(noon) {
		t.Errorf("it is in force since %v, want noon", r.Status.EffectiveTime)
	} else {
		says(t, r, v1alpha1.ConditionReady, metav1.ConditionFalse, "DeadlineExceeded", "")
	}
}

func TestAReleaseAlwaysHasItsConditions(t *testing.T) {
	for name, change := range map[string]func(*world){
		"that is acknowledged":     func(*world) {},
		"of a Service that is not": func(w *world) { w.absent = true },
		"of an unready variation":  func(w *world) { w.ready["canary"] = 0 },
		"that nobody observes":     func(w *world) { w.router.Deafen(errors.New("nobody answers")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(w)
			for range 3 {
				conditions.CheckAlways(t, w.look().Status.Conditions, 1, v1alpha1.ConditionReady, v1alpha1.ConditionAcknowledged, v1alpha1.ConditionDegraded)
			}
		})
	}
}
