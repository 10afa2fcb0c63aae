// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func baselineOf(namespace string, state v1alpha1.DriftState, age time.Duration, guards ...string) v1alpha1.Baseline {
	b := v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	b.Status.State, b.Status.Guards = state, guards
	if state != v1alpha1.StateInSync {
		b.Status.FirstSeenTime = &metav1.Time{Time: epoch.Add(-age)}
	}
	return b
}

// frozen is a status with a mass drift in these namespaces.
func frozen(namespaces ...string) v1alpha1.GuardStatus {
	s := v1alpha1.GuardStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMassDrift}}, MassDrift: &v1alpha1.MassDrift{},
	}
	for _, namespace := range namespaces {
		s.MassDrift.Namespaces = append(s.MassDrift.Namespaces, v1alpha1.FrozenNamespace{Name: namespace, StartTime: metav1.NewTime(epoch)})
	}
	return s
}

func TestMassDriftIsToldWhenItBeginsAndWhenItEnds(t *testing.T) {
	var none v1alpha1.GuardStatus
	old := frozen()
	old.MassDrift = nil // of a version that froze whole guards
	tests := map[string]struct {
		before, after v1alpha1.GuardStatus
		want          []string
	}{
		"it begins":                           {none, frozen("a"), []string{"Warning MassDrift"}},
		"it goes on":                          {before: frozen("a"), after: frozen("a")},
		"it begins in another namespace, too": {frozen("a"), frozen("a", "b"), []string{"Warning MassDrift"}},
		"it ends in one of two namespaces":    {before: frozen("a", "b"), after: frozen("b")},
		"it ends":                             {frozen("a"), none, []string{"Normal MassDriftEnded"}},
		"it ends with an upgrade":             {old, none, []string{"Normal MassDriftEnded"}},
		"there never was any":                 {},
		"another condition is": {after: v1alpha1.GuardStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			heard := &told{}
			c := &Status{Recorder: heard}
			c.tellMassDrift(&v1alpha1.SpecGuard{}, &tc.before, &tc.after)
			if diff := cmp.Diff(tc.want, heard.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// junk are objects that mallory created in her namespace, where nobody trusts her.
func junk(n int) (all []v1alpha1.Baseline) {
	for range n {
		b := baselineOf("mallorys", v1alpha1.StateDrifted, time.Minute, "ClusterSpecGuard/platform")
		b.Status.Findings = []v1alpha1.Finding{{Class: v1alpha1.ClassObjectUnexpected, Actor: v1alpha1.Actor{User: "mallory", Class: v1alpha1.ActorUntrusted}}}
		all = append(all, b)
	}
	return all
}

func TestTheStatusNamesWhatIsFrozenAndNothingElse(t *testing.T) {
	var many []v1alpha1.Baseline
	for i := range 5 {
		for range 3 {
			many = append(many, baselineOf(fmt.Sprint("team-", i), v1alpha1.StateDrifted, time.Minute, "ClusterSpecGuard/platform"))
		}
	}
	baselines := slices.Concat(many[:3], []v1alpha1.Baseline{baselineOf("team-1", v1alpha1.StateInSync, 0, "ClusterSpecGuard/platform")})
	old := v1alpha1.GuardStatus{Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMassDrift, LastTransitionTime: metav1.NewTime(epoch.Add(-time.Hour)),
	}}}
	tests := map[string]struct {
		before    v1alpha1.GuardStatus
		baselines []v1alpha1.Baseline
		want      *v1alpha1.MassDrift
		message   string
	}{
		"junk of a tenant":                      {baselines: append(junk(45), baselines[3])},
		"junk that froze the guard once":        {before: old, baselines: append(junk(45), baselines[3])},
		"a namespace":                           {v1alpha1.GuardStatus{}, baselines, frozen("team-0").MassDrift, "3 of 4 objects drift; not repaired by itself: namespace team-0"},
		"a namespace of a guard that was whole": {old, baselines, frozen("team-0").MassDrift, "3 of 4 objects drift; not repaired by itself: namespace team-0"},
		"many namespaces": {
			v1alpha1.GuardStatus{}, many, frozen("team-0", "team-1", "team-2", "team-3", "team-4").MassDrift,
			"15 of 15 objects drift; not repaired by itself: namespace team-0, namespace team-1, namespace team-2, 2 more",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Status{Clock: testingclock.NewFakePassiveClock(epoch)}
			status := tc.before.DeepCopy()
			conditions := condition.Set{Conditions: &status.Conditions, Generation: 1, Now: epoch}
			c.freeze(conditions, status, guards.Tallies(tc.baselines)[specguard.GuardRef{Name: "platform"}])
			if tc.before.Conditions != nil && tc.want != nil {
				for i := range tc.want.Namespaces { // frozen since the guard was
					tc.want.Namespaces[i].StartTime = tc.before.Conditions[0].LastTransitionTime
				}
			}
			if diff := cmp.Diff(tc.want, status.MassDrift); diff != "" {
				t.Errorf("frozen (-want +got):\n%s", diff)
			}
			message := ""
			if m := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDegraded); m.Status == metav1.ConditionTrue {
				message = m.Message
			}
			if message != tc.message {
				t.Errorf("it says %q, want %q", message, tc.message)
			}
		})
	}
}

func TestScopesAreDescribed(t *testing.T) {
	m := &v1alpha1.MassDrift{
		EverythingStartTime: new(metav1.NewTime(epoch)),
		Causes:              []v1alpha1.FrozenCause{{Path: "/spec/replicas", User: "bob"}, {}},
	}
	want := "everything, because more namespaces or causes are frozen than status.massDrift lists, drift at /spec/replicas by bob, drift of whole objects by unknown writers"
	if got := scopes(m); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestFrozenScopesAreCountedOverAllGuards(t *testing.T) {
	metrics, err := NewMassDriftMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	var all frozenScopes
	all.add(nil)
	all.add(frozen("a", "b").MassDrift)
	all.add(&v1alpha1.MassDrift{EverythingStartTime: new(metav1.NewTime(epoch)), Causes: []v1alpha1.FrozenCause{{}}})
	metrics.set(all)
	for scope, want := range map[string]float64{"Namespace": 2, "Cause": 1, "Everything": 1} {
		if got := testutil.ToFloat64(metrics.frozen.WithLabelValues(scope)); got != want {
			t.Errorf("%s: %v, want %v", scope, got, want)
		}
	}
	metrics.set(frozenScopes{})
	if got := testutil.ToFloat64(metrics.frozen.WithLabelValues("Namespace")); got != 0 {
		t.Errorf("%v namespaces after the end", got)
	}
}
