// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/conditions"
)

// apiServer answers probes as it is told.
type apiServer struct {
	answer Answer
	served bool
	err    error
	asked  int
}

func (s *apiServer) Probe(context.Context, *v1alpha1.ClusterSpecGuard) Answer {
	s.asked++
	return s.answer
}

func (s *apiServer) Served(context.Context) (bool, error) { return s.served, s.err }

// told collects events as "type reason".
type told struct{ events []string }

func (r *told) Eventf(regarding, _ runtime.Object, kind, reason, _, _ string, _ ...any) {
	r.events = append(r.events, kind+" "+reason)
}

// enforced is an Enforcement in a world that stands still until it is told.
type enforced struct {
	*Enforcement
	t      *testing.T
	server *apiServer
	clock  *testingclock.FakePassiveClock
	told   *told
	guard  v1alpha1.ClusterSpecGuard
}

func newEnforced(t *testing.T) *enforced {
	t.Helper()
	w := &enforced{t: t, server: &apiServer{served: true}, clock: testingclock.NewFakePassiveClock(epoch), told: &told{}}
	metrics, err := NewEnforcementMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.Enforcement = &Enforcement{Prober: w.server, Clock: w.clock, Recorder: w.told, Metrics: metrics}
	w.guard = v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: "g", Generation: 1}}
	w.guard.Spec.Mode = v1alpha1.GuardModeDeny
	w.guard.Spec.Resources = []v1alpha1.GuardedResource{kind("apps/v1", "Deployment")}
	return w
}

func plurals(r v1alpha1.GuardedResource) (string, bool) {
	known := map[string]string{"Deployment": "apps/deployments", "ConfigMap": "/configmaps"}
	name, ok := known[r.Kind]
	return name, ok
}

func inForceFor(generation int64) Answer {
	return Answer{Generation: generation, Registered: []string{"apps/deployments"}}
}

// look observes once after a while and returns the condition as text.
func (w *enforced) look(after time.Duration) string {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(after))
	next := w.guard.DeepCopy()
	w.Observe(w.t.Context(), &w.guard, next, plurals)
	w.guard.Status = next.Status
	c := meta.FindStatusCondition(next.Status.Conditions, v1alpha1.ConditionEnforced)
	if c == nil {
		return "absent"
	}
	if c.ObservedGeneration != w.guard.Generation {
		w.t.Errorf("the condition speaks of generation %d, want %d", c.ObservedGeneration, w.guard.Generation)
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

func (w *enforced) want(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func (w *enforced) wantFigure(want float64) {
	w.t.Helper()
	if got := testutil.ToFloat64(w.Metrics.enforced.WithLabelValues("g")); got != want {
		w.t.Errorf("plumbline_guard_enforced is %v, want %v", got, want)
	}
}

func TestAGuardComesIntoForceAndGoesOut(t *testing.T) {
	w := newEnforced(t)
	w.want("at first", w.look(0), "False NotYetEnforced")
	w.wantFigure(0)
	w.server.answer = inForceFor(1)
	w.want("asked again too soon", w.look(500*time.Millisecond), "False NotYetEnforced")
	w.want("after a second", w.look(500*time.Millisecond), "True Enforced")
	w.wantFigure(1)
	asked := w.server.asked
	w.want("within the minute", w.look(59*time.Second), "True Enforced")
	if w.server.asked != asked {
		t.Error("a guard in force is asked about before its minute")
	}
	w.server.answer = Answer{}
	w.want("a policy that went", w.look(time.Second), "False PolicyNotEnforced")
	w.wantFigure(0)
	w.want("and stays away", w.look(time.Second), "False PolicyNotEnforced")
	w.server.answer = inForceFor(1)
	w.want("it is back", w.look(time.Minute), "True Enforced")
	if diff := cmp.Diff([]string{"Normal Enforced", "Warning NotEnforced", "Normal Enforced"}, w.told.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestWhatAnAnswerMeans(t *testing.T) {
	tests := map[string]struct {
		answer Answer
		after  time.Duration
		edit   func(*v1alpha1.ClusterSpecGuard)
		want   string
	}{
		"in force":                        {answer: inForceFor(1), want: "True Enforced"},
		"an older generation is in force": {answer: inForceFor(1), edit: func(g *v1alpha1.ClusterSpecGuard) { g.Generation = 2 }, want: "False NotYetEnforced"},
		"not refused for a minute":        {after: settling, want: "False PolicyNotEnforced"},
		"no answer":                       {answer: Answer{Err: errors.New("timeout")}, want: "Unknown NotKnown"},
		"a kind that is not registered":   {answer: inForceFor(1), edit: withConfigMaps, want: "False KindsNotRegistered"},
		"a kind that is not served":       {answer: inForceFor(1), edit: func(g *v1alpha1.ClusterSpecGuard) { g.Spec.Resources[0].Kind = "Widget" }, want: "False KindsNotRegistered"},
		"suspended":                       {answer: inForceFor(1), edit: suspendedFor(time.Hour), want: "False Suspended"},
		"a suspension that is over":       {answer: inForceFor(1), edit: suspendedFor(-time.Hour), want: "True Enforced"},
		"a guard that warns":              {answer: inForceFor(1), edit: func(g *v1alpha1.ClusterSpecGuard) { g.Spec.Mode = v1alpha1.GuardModeWarn }, want: "False NotInModeDeny"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newEnforced(t)
			if test.edit != nil {
				test.edit(&w.guard)
			}
			w.server.answer = test.answer
			got := w.look(0)
			if test.after > 0 {
				got = w.look(test.after)
			}
			w.want("the condition", got, test.want)
		})
	}
}

func withConfigMaps(g *v1alpha1.ClusterSpecGuard) {
	g.Spec.Resources = append(g.Spec.Resources, kind("v1", "ConfigMap"))
}

func suspendedFor(d time.Duration) func(*v1alpha1.ClusterSpecGuard) {
	return func(g *v1alpha1.ClusterSpecGuard) {
		g.Spec.Suspend = &v1alpha1.Suspension{Reason: "r", EndTime: metav1.NewTime(epoch.Add(d))}
	}
}

func TestAChangeIsAskedAboutAtOnce(t *testing.T) {
	w := newEnforced(t)
	w.server.answer = inForceFor(1)
	w.want("the first generation", w.look(0), "True Enforced")
	w.guard.Generation = 2
	w.want("the second", w.look(time.Millisecond), "False NotYetEnforced")
	w.server.answer = inForceFor(2)
	w.want("the second in force", w.look(time.Second), "True Enforced")
	suspendedFor(time.Hour)(&w.guard)
	w.guard.Generation = 3
	w.want("suspended", w.look(time.Millisecond), "False Suspended")
	if n := testutil.CollectAndCount(w.Metrics.enforced); n != 0 {
		t.Errorf("a suspended guard has %d series", n)
	}
	w.server.answer = inForceFor(3)
	w.want("the suspension ends without a change", w.look(time.Hour), "True Enforced")
}

func TestANewAssessorKnowsWhatWasInForce(t *testing.T) {
	w := newEnforced(t)
	w.server.answer = inForceFor(1)
	w.look(0)
	w.Enforcement = &Enforcement{Prober: w.server, Clock: w.clock, Recorder: w.told, Metrics: w.Metrics}
	w.server.answer = Answer{}
	w.want("a policy that went between two assessors", w.look(time.Second), "False PolicyNotEnforced")
	if diff := cmp.Diff([]string{"Normal Enforced", "Warning NotEnforced"}, w.told.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAGuardThatIsGone(t *testing.T) {
	tests := map[string]struct {
		served bool
		err    error
		events []string
		known  bool
		figure int // series left
	}{
		"deleted":            {served: true, events: []string{"Normal Enforced"}},
		"its kind is gone":   {events: []string{"Normal Enforced", "Warning NotEnforced"}, known: true, figure: 1},
		"nobody knows which": {err: errors.New("timeout"), events: []string{"Normal Enforced"}, known: true, figure: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newEnforced(t)
			w.server.answer = inForceFor(1)
			w.look(0)
			w.server.served, w.server.err = test.served, test.err
			w.Missing(t.Context(), nil)
			w.Missing(t.Context(), nil) // told once
			if diff := cmp.Diff(test.events, w.told.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if _, known := w.known["g"]; known != test.known {
				t.Errorf("remembered: %t, want %t", known, test.known)
			}
			if got := testutil.CollectAndCount(w.Metrics.enforced); got != test.figure {
				t.Errorf("%d series, want %d", got, test.figure)
			}
			if test.figure > 0 {
				w.wantFigure(0)
			}
		})
	}
	t.Run("one that is there is left alone", func(t *testing.T) {
		w := newEnforced(t)
		w.server.answer = inForceFor(1)
		w.look(0)
		w.server.err = errors.New("must not be asked")
		w.Missing(t.Context(), []v1alpha1.ClusterSpecGuard{w.guard})
		w.wantFigure(1)
	})
}

func TestWhenToAskAgain(t *testing.T) {
	w := newEnforced(t)
	if got := w.Again(time.Hour); got != time.Hour {
		t.Errorf("without a guard: %s", got)
	}
	w.look(0)
	if got := w.Again(time.Hour); got != askWhileNot {
		t.Errorf("not in force: %s, want %s", got, askWhileNot)
	}
	w.look(settling)
	if got := w.Again(time.Hour); got != settling/4 {
		t.Errorf("not in force for long: %s, want %s", got, settling/4)
	}
	w.server.answer = inForceFor(1)
	w.look(settling)
	if got := w.Again(time.Hour); got != askAnyway {
		t.Errorf("in force: %s, want %s", got, askAnyway)
	}
	if got := w.Again(time.Second); got != time.Second {
		t.Errorf("the limit: %s", got)
	}
}

func TestParseProof(t *testing.T) {
	const prefix = `clusterspecguards.plumbline.dev "g" is forbidden: ValidatingAdmissionPolicy 'plumbline-deny' with binding 'plumbline-deny' denied request: `
	tests := map[string]struct {
		text string
		want Answer
		bad  bool
	}{
		"a proof":                     {text: prefix + "proof: ClusterSpecGuard g generation 7 is in force for apps/deployments,/configmaps;", want: Answer{Generation: 7, Registered: []string{"apps/deployments", "/configmaps"}}},
		"a proof of another guard":    {text: prefix + "proof: ClusterSpecGuard gg generation 7 is in force for apps/deployments;", bad: true},
		"a refusal by RBAC":           {text: `clusterspecguards.plumbline.dev "g" is forbidden: User "x" cannot patch`, bad: true},
		"a proof that is cut":         {text: prefix + "proof: ClusterSpecGuard g generation ", bad: true},
		"a message that could not be": {text: prefix + "plumbline-deny could not list the guards that are active", bad: true},
		"a number that is none":       {text: prefix + "proof: ClusterSpecGuard g generation x is in force for a;", bad: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := parseProof("g", errors.New(test.text))
			if (got.Err != nil) != test.bad {
				t.Fatalf("error = %v", got.Err)
			}
			if test.bad {
				if got.Generation != 0 {
					t.Errorf("an unreadable proof proves generation %d", got.Generation)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSuspensionIsACondition(t *testing.T) {
	tests := map[string]struct {
		suspend *v1alpha1.Suspension
		want    string
	}{
		"none":     {nil, "Suspended=False NotSuspended"},
		"running":  {&v1alpha1.Suspension{Reason: "migration", EndTime: metav1.NewTime(epoch.Add(time.Hour))}, "Suspended=True Suspended"},
		"over":     {&v1alpha1.Suspension{Reason: "migration", EndTime: metav1.NewTime(epoch.Add(-time.Hour))}, "Suspended=False Over"},
		"just now": {&v1alpha1.Suspension{Reason: "migration", EndTime: metav1.NewTime(epoch)}, "Suspended=False Over"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			lines := conditionsOf(t, kinds{Synced: true}, func(g *v1alpha1.SpecGuard) { g.Spec.Suspend = test.suspend })
			if !strings.Contains(lines, test.want) {
				t.Errorf("conditions are %q, want %q", lines, test.want)
			}
		})
	}
}

func TestAGuardAlwaysHasItsConditions(t *testing.T) {
	own := []string{v1alpha1.ConditionReady, v1alpha1.ConditionSuspended, v1alpha1.ConditionDegraded}
	for name, change := range map[string]func(*v1alpha1.ClusterSpecGuard){
		"that denies":        nil,
		"that warns":         func(g *v1alpha1.ClusterSpecGuard) { g.Spec.Mode = v1alpha1.GuardModeWarn },
		"that is suspended":  suspendedFor(time.Hour),
		"of an unknown kind": func(g *v1alpha1.ClusterSpecGuard) { g.Spec.Resources[0].Kind = "Gadget" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnforced(t)
			if change != nil {
				change(&w.guard)
			}
			w.guard.Generation = 3
			snapshot, err := guards.Build(guards.Input{ClusterGuards: []v1alpha1.ClusterSpecGuard{w.guard}}, mapper(), epoch)
			if err != nil {
				t.Fatal(err)
			}
			status := &Status{Clock: testingclock.NewFakePassiveClock(epoch), Kinds: kinds{Synced: true}}
			next := w.guard.DeepCopy()
			status.fill(&next.Status, next.Generation, specguard.GuardRef{Name: "g"}, &next.Spec.GuardSpec, snapshot, guards.Tally{})
			conditions.CheckAlways(t, next.Status.Conditions, 3, own...) // as a SpecGuard has them
			w.Observe(t.Context(), &w.guard, next, plurals)
			conditions.CheckAlways(t, next.Status.Conditions, 3, append(own, v1alpha1.ConditionEnforced)...)
		})
	}
}
