// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func TestMemory(t *testing.T) {
	m := newMemory()
	stored := func(rv, uid string) *v1alpha1.Baseline {
		return &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{UID: "b", ResourceVersion: rv}, Status: v1alpha1.BaselineStatus{
			State: v1alpha1.StateInSync, Observed: v1alpha1.ObservedState{UID: uid},
		}}
	}
	state := specguard.State{Drift: v1alpha1.StateInSync, Observed: v1alpha1.ObservedState{UID: "u1"}, Body: []byte("{}")}
	m.put(webKey, remembered{state: state, written: stored("9", "u1")})
	got, ok := m.get(webKey)
	if !ok || got.state.Body != nil {
		t.Error("the body is kept in memory")
	}
	if key, ok := m.keyOf("u1"); !ok || key != webKey {
		t.Error("the object is not found by its uid")
	}
	m.caughtUp(webKey, stored("8", "u1"))
	if got, _ := m.get(webKey); got.written == nil {
		t.Error("an older version from the cache counts as caught up")
	}
	m.caughtUp(webKey, stored("9", "u1"))
	if got, _ := m.get(webKey); got.written != nil {
		t.Error("the written version is kept after the cache has it")
	}
	state.Observed.UID = "u2"
	m.put(webKey, remembered{state: state})
	if _, ok := m.keyOf("u1"); ok {
		t.Error("a recreated object is found by its old uid")
	}
	m.forget(webKey)
	if _, ok := m.keyOf("u2"); ok || len(m.byKey) != 0 || len(m.byUID) != 0 {
		t.Error("something is remembered of a forgotten object")
	}
}

func TestAgrees(t *testing.T) {
	base := func() (*specguard.State, *v1alpha1.Baseline) {
		at := metav1.NewTime(epoch)
		b := &v1alpha1.Baseline{
			Spec: v1alpha1.BaselineSpec{Authorized: &v1alpha1.AuthorizedState{Hash: "h", Number: 1, AuthorizationTime: at}},
			Status: v1alpha1.BaselineStatus{State: v1alpha1.StateInSync, Observed: v1alpha1.ObservedState{
				UID: "u", FullHash: "f",
			}},
		}
		s := specguard.FromBaseline(b.DeepCopy(), nil)
		return &s, b
	}
	tests := map[string]struct {
		change func(*v1alpha1.Baseline)
		want   bool
	}{
		"equal":                               {change: func(*v1alpha1.Baseline) {}, want: true},
		"a request to accept changes nothing": {change: func(b *v1alpha1.Baseline) { b.Spec.Accept = &v1alpha1.AcceptRequest{} }, want: true},
		"another authorized state":            {change: func(b *v1alpha1.Baseline) { b.Spec.Authorized.Number = 2 }},
		"no authorized state":                 {change: func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil }},
		"another state":                       {change: func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateDrifted }},
		"another object":                      {change: func(b *v1alpha1.Baseline) { b.Status.Observed.UID = "v" }},
		"another body":                        {change: func(b *v1alpha1.Baseline) { b.Status.Observed.FullHash = "g" }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, b := base()
			tc.change(b)
			if got := agrees(s, b); got != tc.want {
				t.Errorf("agrees is %t, want %t", got, tc.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	finding := v1alpha1.Finding{
		Path: "/spec/replicas", Operation: v1alpha1.OperationChanged, Type: v1alpha1.DriftScale,
		Actor: v1alpha1.Actor{User: "alice"},
	}
	tests := map[string]struct {
		status      v1alpha1.BaselineStatus
		bodyLost    bool
		wantStatus  metav1.ConditionStatus
		wantReason  string
		wantMessage string
	}{
		"in sync": {
			status:     v1alpha1.BaselineStatus{State: v1alpha1.StateInSync},
			wantStatus: metav1.ConditionTrue, wantReason: "InSync", wantMessage: "the object has its authorized content",
		},
		"in sync with masks": {
			status:     v1alpha1.BaselineStatus{State: v1alpha1.StateInSync, Masks: make([]v1alpha1.Mask, 2)},
			wantStatus: metav1.ConditionTrue, wantReason: "InSync", wantMessage: "moved 2 fields",
		},
		"drifted names path and writer": {
			status:     v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted, Findings: []v1alpha1.Finding{finding}, FindingsTotal: 1},
			wantStatus: metav1.ConditionFalse, wantReason: "DriftedScale", wantMessage: "/spec/replicas changed by alice",
		},
		"many findings are counted": {
			status: v1alpha1.BaselineStatus{
				State: v1alpha1.StateDrifted, FindingsTotal: 70,
				Findings: []v1alpha1.Finding{finding, finding, finding, finding, finding, finding},
			},
			wantStatus: metav1.ConditionFalse, wantReason: "DriftedScale", wantMessage: "and 65 more",
		},
		"missing": {
			status: v1alpha1.BaselineStatus{State: v1alpha1.StateMissing, FindingsTotal: 1, Findings: []v1alpha1.Finding{{
				Operation: v1alpha1.OperationRemoved, Type: v1alpha1.DriftMissing,
			}}},
			wantStatus: metav1.ConditionFalse, wantReason: "Missing", wantMessage: "the object removed by an unknown user",
		},
		"unknown is neither": {
			status:     v1alpha1.BaselineStatus{State: v1alpha1.StateUnknown},
			wantStatus: metav1.ConditionUnknown, wantReason: "Unreadable",
		},
		"without its authorized body": {
			status: v1alpha1.BaselineStatus{State: v1alpha1.StateUnknown}, bodyLost: true,
			wantStatus: metav1.ConditionUnknown, wantReason: "BodyLost", wantMessage: "To authorize the observed state, accept it",
		},
		"with a body that is too large": {
			status:     v1alpha1.BaselineStatus{State: v1alpha1.StateUnknown, Oversized: &v1alpha1.OversizedBody{Size: 900000}},
			wantStatus: metav1.ConditionUnknown, wantReason: "BodyTooLarge", wantMessage: "has 900000 bytes compressed, and a BaselineRevision holds 786432",
		},
		"a state that nobody knows is unknown": {
			status:     v1alpha1.BaselineStatus{State: "Strange"},
			wantStatus: metav1.ConditionUnknown, wantReason: "Unreadable", wantMessage: "Strange",
		},
		"back after it was retired": {
			status: v1alpha1.BaselineStatus{State: v1alpha1.StateDrifted, RetirementTime: &metav1.Time{Time: epoch}, Findings: []v1alpha1.Finding{
				{Type: v1alpha1.DriftUnexpected, Class: v1alpha1.ClassObjectUnexpected, Operation: v1alpha1.OperationAdded},
			}},
			wantStatus: metav1.ConditionFalse, wantReason: "DriftedUnexpected", wantMessage: "the object added by an unknown user",
		},
		"retired": {
			status:     v1alpha1.BaselineStatus{State: v1alpha1.StateRetired, RetirementTime: &metav1.Time{Time: epoch}},
			wantStatus: metav1.ConditionTrue, wantReason: "Retired",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Generation: 4}, Status: tc.status}
			setConditions(b, tc.bodyLost, epoch)
			ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != tc.wantStatus || ready.Reason != tc.wantReason || !strings.Contains(ready.Message, tc.wantMessage) {
				t.Errorf("Ready is %+v, want %s %s %q", ready, tc.wantStatus, tc.wantReason, tc.wantMessage)
			}
			for _, stuck := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				if meta.FindStatusCondition(b.Status.Conditions, stuck) != nil {
					t.Errorf("%s is set: a wait for the Baseline would hang", stuck)
				}
			}
		})
	}
}

func TestContentionDegradesABaselineUntilItEnds(t *testing.T) {
	b := &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{
		State: v1alpha1.StateDrifted, Contention: &v1alpha1.Contention{
			With:   []string{"alice", "ci"},
			Places: []v1alpha1.Place{{Aspect: v1alpha1.AspectValue}, {Path: "/spec/paused", Aspect: v1alpha1.AspectValue}},
		},
	}}
	setConditions(b, false, epoch)
	c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionDegraded)
	if want := "alice, ci; at the object as a whole, /spec/paused"; c == nil || !strings.HasSuffix(c.Message, want) {
		t.Errorf("Degraded is %+v", c)
	}
	b.Status.Contention.Places = make([]v1alpha1.Place, 16)
	setConditions(b, false, epoch)
	c = meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionDegraded)
	if !strings.HasSuffix(c.Message, "and 11 more") {
		t.Errorf("Degraded is %+v", c)
	}
	b.Status.Contention = nil
	setConditions(b, false, epoch)
	if !meta.IsStatusConditionFalse(b.Status.Conditions, v1alpha1.ConditionDegraded) {
		t.Error("Degraded is not False after the fight")
	}
}

// Whoever writes an object chooses the name, the field manager and the keys that
// its Baseline tells of.
func TestConditionsOfHostileNamesAreOneReadableLine(t *testing.T) {
	for name, hostile := range map[string]string{
		"lines":                  "alice\nReady: True",
		"an escape sequence":     "\x1b[2J\x1b]0;title\x07alice",
		"C1 controls":            "\u009b31malice",
		"text turned around":     "\u202eecila\u2066",
		"what cannot be seen":    "ali\u200bce\ufeff",
		"a line of other kind":   "alice\u2028bob\u0085",
		"bytes that are no text": "alice\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{
				State: v1alpha1.StateDrifted, FindingsTotal: 2,
				Findings: []v1alpha1.Finding{
					{Path: "/spec/" + hostile, Operation: v1alpha1.OperationChanged, Type: v1alpha1.DriftOther, Actor: v1alpha1.Actor{User: hostile}},
					{Path: "/spec/x", Operation: v1alpha1.OperationAdded, Type: v1alpha1.DriftUnexpected, Actor: v1alpha1.Actor{FieldManager: hostile}},
				},
				Contention: &v1alpha1.Contention{With: []string{hostile, "ci"}, Places: []v1alpha1.Place{{Path: "/spec/" + hostile}}},
			}}
			setConditions(b, false, epoch)
			shown := diff.Printable(hostile)
			want := map[string]string{
				v1alpha1.ConditionReady: "/spec/" + shown + " changed by " + shown +
					"; /spec/x added by an unknown user (field manager " + shown + ")",
				v1alpha1.ConditionDegraded: "writers keep undoing each other: " + shown + ", ci; at /spec/" + shown,
			}
			for kind, message := range want {
				if c := meta.FindStatusCondition(b.Status.Conditions, kind); c == nil || c.Message != message {
					t.Errorf("%s is %+q, want %+q", kind, c, message)
				}
			}
			if b.Status.Findings[0].Actor.User != hostile || b.Status.Contention.With[0] != hostile {
				t.Error("the names themselves were changed: whoever compares them would miss one")
			}
		})
	}
}

func TestSeverityAgesOverTime(t *testing.T) {
	finding := v1alpha1.Finding{Type: v1alpha1.DriftOther, Class: v1alpha1.ClassOther, FirstSeenTime: metav1.NewTime(epoch)}
	now := epoch
	var levels []int32
	for {
		levels = append(levels, worstSeverity([]v1alpha1.Finding{finding}, nil, []string{"web"}, now).Score)
		edge, ok := nextAge(epoch, now)
		if !ok {
			break
		}
		// Right before the edge nothing has changed: no visit in between is needed.
		if before := worstSeverity([]v1alpha1.Finding{finding}, nil, []string{"web"}, edge.Add(-time.Nanosecond)).Score; before != levels[len(levels)-1] {
			t.Errorf("the score moved from %d to %d before the edge at %s", levels[len(levels)-1], before, edge.Sub(epoch))
		}
		now = edge
	}
	for i := 1; i < len(levels); i++ {
		if levels[i] <= levels[i-1] {
			t.Errorf("at edge %d the score goes from %d to %d: a visit for nothing", i, levels[i-1], levels[i])
		}
	}
	if worstSeverity(nil, nil, []string{"web"}, epoch) != nil {
		t.Error("no drift has a severity")
	}
}

// The first level alone did not show a worsening that a floor hides.
func TestADriftKeepsItsFirstLevelAndScore(t *testing.T) {
	seen := metav1.NewTime(epoch)
	now := v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 73}
	for name, test := range map[string]struct {
		before v1alpha1.BaselineStatus
		level  v1alpha1.SeverityLevel
		score  int32
	}{
		"a new drift has those of now": {v1alpha1.BaselineStatus{}, v1alpha1.SeverityHigh, 73},
		"a drift that comes after another one has ended has those of now": {
			v1alpha1.BaselineStatus{Severity: &v1alpha1.Severity{First: v1alpha1.SeverityLow, FirstScore: new(int32(20))}}, v1alpha1.SeverityHigh, 73,
		},
		"a drift that goes on keeps them": {
			v1alpha1.BaselineStatus{FirstSeenTime: &seen, Severity: &v1alpha1.Severity{Score: 60, First: v1alpha1.SeverityMedium, FirstScore: new(int32(0))}},
			v1alpha1.SeverityMedium, 0,
		},
		"a drift of an earlier release takes the last score": {
			v1alpha1.BaselineStatus{FirstSeenTime: &seen, Severity: &v1alpha1.Severity{Score: 60, First: v1alpha1.SeverityMedium}}, v1alpha1.SeverityMedium, 60,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rated := now
			keepFirst(&rated, &test.before)
			if rated.First != test.level || *rated.FirstScore != test.score {
				t.Errorf("first are %s and %d, want %s and %d", rated.First, *rated.FirstScore, test.level, test.score)
			}
		})
	}
}

func TestSurroundings(t *testing.T) {
	e := &v1alpha1.Environment{Spec: v1alpha1.EnvironmentSpec{
		Criticality:          v1alpha1.CriticalityStaging,
		ComponentCriticality: []v1alpha1.ComponentCriticality{{Component: "db", Criticality: new(int32(90))}},
		Dependencies:         []v1alpha1.ComponentDependencies{{Component: "web", DependsOn: []string{"db"}}},
	}}
	if in := surroundings(e, "db"); in.Criticality != v1alpha1.CriticalityStaging || in.Dependents != 1 || *in.ComponentCriticality != 90 {
		t.Errorf("db is rated with %+v", in)
	}
	if in := surroundings(e, "web"); in.Dependents != 0 || in.ComponentCriticality != nil {
		t.Errorf("web is rated with %+v", in)
	}
}

// A write may drift and set the label of a component that matters less.
func TestALabelDoesNotLowerASeverity(t *testing.T) {
	e := &v1alpha1.Environment{Spec: v1alpha1.EnvironmentSpec{
		Criticality:          v1alpha1.CriticalityProduction,
		ComponentCriticality: []v1alpha1.ComponentCriticality{{Component: "toy", Criticality: new(int32(0))}, {Component: "db", Criticality: new(int32(100))}},
	}}
	findings := []v1alpha1.Finding{{Type: v1alpha1.DriftOther, Class: v1alpha1.ClassOther, FirstSeenTime: metav1.NewTime(epoch)}}
	score := func(label string) int32 {
		object := &kube.Object{}
		object.Labels = map[string]string{labelComponent: label}
		s := &subject{key: kube.Key{Name: "db"}}
		return worstSeverity(findings, e, s.components(&decision{last: observed{object: object}}), epoch).Score
	}
	if score("toy") != score("db") {
		t.Errorf("the score is %d with the label toy, and %d with the name alone", score("toy"), score("db"))
	}
	if toy := worstSeverity(findings, e, []string{"toy"}, epoch).Score; toy >= score("db") {
		t.Errorf("toy matters as much as db: %d", toy)
	}
}

func TestKeptRevisionsFitTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 2*revisionBudget).Draw(t, "size")
		n := kept(size)
		if n < 1 || n > maxRevisions {
			t.Fatalf("%d revisions of %d bytes are kept", n, size)
		}
		if n > 1 && int(n)*size > revisionBudget {
			t.Fatalf("%d revisions of %d bytes do not fit", n, size)
		}
	})
}

func TestBodyCacheIsBounded(t *testing.T) {
	c := newBodyCache(100)
	key := func(i int) bodyKey { return bodyKey{"shop", fmt.Sprint("r-", i), "h"} }
	for i := range 10 {
		c.put(key(i), make([]byte, 30))
		c.get(key(0))
	}
	if c.size > 100 || c.order.Len() != len(c.byKey) {
		t.Errorf("%d bytes in %d entries, %d keys", c.size, c.order.Len(), len(c.byKey))
	}
	if _, ok := c.get(key(0)); !ok {
		t.Error("what is used all the time was dropped")
	}
	if _, ok := c.get(key(5)); ok {
		t.Error("what was not used for long is kept")
	}
	c.put(key(9), make([]byte, 200))
	if _, ok := c.get(key(9)); !ok {
		t.Error("a body over the limit is not even kept for the next look")
	}
}

func TestLabelValue(t *testing.T) {
	if got := LabelValue("deployments.apps.web"); got != "deployments.apps.web" {
		t.Errorf("a name that fits becomes %q", got)
	}
	long := strings.Repeat("x", 200)
	if got := LabelValue(long + "a"); len(got) > maxLabelValue || got == LabelValue(long+"b") {
		t.Errorf("long names become %q", got)
	}
}
