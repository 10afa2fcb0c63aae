// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

const (
	// askWhileNot is how soon it is asked again whether a guard is in force that
	// was not: the API server looks at its policies once a second.
	askWhileNot = time.Second
	// askAnyway is how often it is asked without a change.
	askAnyway = time.Minute
	// settling is how long a guard may be on its way into force: the API server
	// looks for new kinds of parameters every 30 seconds.
	settling = time.Minute
)

// Reasons of the condition Enforced.
const (
	reasonEnforced       = "Enforced"
	reasonSuspended      = "Suspended"
	reasonNotDenying     = "NotInModeDeny"
	reasonNotYet         = "NotYetEnforced"
	reasonNotEnforced    = "PolicyNotEnforced"
	reasonNotRegistered  = "KindsNotRegistered"
	reasonNotAsked       = "NotKnown"
	reasonKindNotServed  = "KindNotServed"
	actionAskForPolicies = "AskForPolicies"
)

// Prober asks the API server whether a guard that denies is in force.
type Prober interface {
	// Probe asks about one guard.
	Probe(ctx context.Context, g *v1alpha1.ClusterSpecGuard) Answer
	// Served asks whether the kind ClusterSpecGuard is served at all; an error
	// says that it is not known.
	Served(ctx context.Context) (bool, error)
}

// Answer is what the API server said of a guard.
type Answer struct {
	// Generation of the guard that is in force, 0 for none.
	Generation int64
	// Registered are the resources that the policy sees, as group/plural.
	Registered []string
	// Err is why the question was not answered.
	Err error
}

// Enforcement says of each guard that denies whether it is in force, by proof
// and not by the presence of objects: the policy refuses a dry run of the
// assessor's exactly while policy, binding and guard are in force in the API
// server that answers. It is used by one goroutine.
type Enforcement struct {
	Prober   Prober
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Metrics  *EnforcementMetrics

	known map[string]asked
}

// asked is what is remembered of one guard.
type asked struct {
	generation int64
	suspended  bool
	// since is when this generation was first asked about.
	since time.Time
	last  time.Time
	// proven says that this generation was in force once.
	proven bool
	state  state
}

// state is the condition Enforced.
type state struct {
	status          metav1.ConditionStatus
	reason, message string
}

// Observe sets the condition Enforced of a guard, and asks if it is time to.
// registered tells for a kind of the guard how it is called in paths, ok false
// if that is not known.
func (e *Enforcement) Observe(ctx context.Context, g, next *v1alpha1.ClusterSpecGuard, plural func(v1alpha1.GuardedResource) (string, bool)) {
	now := e.Clock.Now()
	conditions := condition.Set{Conditions: &next.Status.Conditions, Generation: g.Generation, Now: now}
	if g.Spec.Mode != v1alpha1.GuardModeDeny {
		e.forget(g.Name)
		conditions.False(v1alpha1.ConditionEnforced, reasonNotDenying, "spec.mode is not Deny, so the guard refuses no write")
		return
	}
	before, known := e.known[g.Name]
	if !known {
		before.resume(g)
	}
	a := before
	if suspended := suspendedUntil(&g.Spec.GuardSpec).After(now); !known || a.generation != g.Generation || a.suspended != suspended {
		a = asked{generation: g.Generation, suspended: suspended, since: now, proven: before.proven && before.generation == g.Generation && !suspended, state: before.state}
	}
	if a.last.IsZero() || !now.Before(a.due()) {
		a.last = now
		a.ask(ctx, e.Prober, g, plural, now)
	}
	if e.known == nil {
		e.known = map[string]asked{}
	}
	e.known[g.Name] = a
	e.tell(g, before.state, a.state)
	conditions.Put(v1alpha1.ConditionEnforced, a.state.status, a.state.reason, a.state.message)
}

// resume takes up what the assessor before this one wrote.
func (a *asked) resume(g *v1alpha1.ClusterSpecGuard) {
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEnforced); c != nil {
		a.generation, a.proven = c.ObservedGeneration, c.Status == metav1.ConditionTrue
		a.state = state{c.Status, c.Reason, c.Message}
	}
}

// due is when to ask again.
func (a *asked) due() time.Time {
	if a.state.status == metav1.ConditionTrue || a.suspended {
		return a.last.Add(askAnyway)
	}
	if a.last.Sub(a.since) >= settling {
		return a.last.Add(settling / 4)
	}
	return a.last.Add(askWhileNot)
}

func (a *asked) ask(ctx context.Context, prober Prober, g *v1alpha1.ClusterSpecGuard, plural func(v1alpha1.GuardedResource) (string, bool), now time.Time) {
	if a.suspended {
		a.state = state{metav1.ConditionFalse, reasonSuspended, "the guard is suspended and rejects no write"}
		return
	}
	answer := prober.Probe(ctx, g)
	a.state = a.judge(answer, g, plural, now)
	a.proven = a.proven || answer.Err == nil && answer.Generation == g.Generation
}

// judge says what an answer means. No answer is Unknown and never True.
func (a *asked) judge(answer Answer, g *v1alpha1.ClusterSpecGuard, plural func(v1alpha1.GuardedResource) (string, bool), now time.Time) state {
	switch {
	case answer.Err != nil:
		return state{metav1.ConditionUnknown, reasonNotAsked, "asking the API server whether the guard is enforced: " + answer.Err.Error()}
	case answer.Generation != g.Generation && (a.proven || now.Sub(a.since) >= settling):
		return state{metav1.ConditionFalse, reasonNotEnforced, "the API server does not enforce the policy plumbline-deny for this guard, so no write is rejected: the policy or its binding is missing, or cannot be evaluated"}
	case answer.Generation != g.Generation:
		return state{metav1.ConditionFalse, reasonNotYet, "the API server does not refuse anything for this guard yet"}
	}
	var missing []string
	for _, r := range specguard.ListResources(&g.Spec.GuardSpec) {
		name, ok := plural(r.GuardedResource)
		if !ok || !slices.Contains(answer.Registered, name) {
			missing = append(missing, fmt.Sprintf("%s (%s)", r.Path, r.Kind))
		}
	}
	if len(missing) > 0 {
		return state{metav1.ConditionFalse, reasonNotRegistered, "the installation does not register these kinds (chart value guard.resources), so writes of them are not refused: " + strings.Join(missing, ", ")}
	}
	return state{metav1.ConditionTrue, reasonEnforced, "the API server rejects the writes that this guard does not allow"}
}

// tell makes an event and a figure of the state.
func (e *Enforcement) tell(g *v1alpha1.ClusterSpecGuard, before, after state) {
	if after.reason == reasonSuspended { // by somebody's will, and no reason for an alert
		e.Metrics.remove(g.Name)
	} else {
		e.Metrics.set(g.Name, after.status == metav1.ConditionTrue)
	}
	if before.reason == after.reason {
		return
	}
	switch after.reason {
	case reasonEnforced:
		e.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "Enforced", actionAskForPolicies, "%s", after.message)
	case reasonNotEnforced, reasonNotRegistered:
		e.Recorder.Eventf(g, nil, corev1.EventTypeWarning, "NotEnforced", actionAskForPolicies, "%s", after.message)
	default: // on its way, suspended or not known: the condition says so
	}
}

// Missing looks into guards that are remembered and no longer listed. A guard
// that was deleted is forgotten; if its kind went, nothing is refused any more
// and nothing but this says so.
func (e *Enforcement) Missing(ctx context.Context, listed []v1alpha1.ClusterSpecGuard) {
	var gone []string
	for name := range e.known {
		if !slices.ContainsFunc(listed, func(g v1alpha1.ClusterSpecGuard) bool { return g.Name == name }) {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 {
		return
	}
	served, err := e.Prober.Served(ctx)
	for _, name := range gone {
		switch {
		case err == nil && served:
			e.forget(name)
		case err == nil:
			e.kindGone(ctx, name)
		default: // not known: the next round asks again, and no guard looks enforced
			e.Metrics.set(name, false)
		}
	}
}

func (e *Enforcement) kindGone(ctx context.Context, name string) {
	e.Metrics.set(name, false)
	a := e.known[name]
	if a.state.reason == reasonKindNotServed {
		return
	}
	a.state = state{metav1.ConditionFalse, reasonKindNotServed, "the kind ClusterSpecGuard is not served any more"}
	a.proven = false
	e.known[name] = a
	log.FromContext(ctx).Error(nil, "The kind ClusterSpecGuard is not served any more: guards of mode Deny reject no write", "guard", name)
	crd := &corev1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "clusterspecguards.plumbline.dev"}
	e.Recorder.Eventf(crd, nil, corev1.EventTypeWarning, "NotEnforced", actionAskForPolicies,
		"the kind ClusterSpecGuard is not served any more, so ClusterSpecGuard %s rejects no write", name)
}

func (e *Enforcement) forget(name string) {
	delete(e.known, name)
	e.Metrics.remove(name)
}

// Again is how long until a question is due, limit at most.
func (e *Enforcement) Again(limit time.Duration) time.Duration {
	now := e.Clock.Now()
	for _, a := range e.known {
		limit = min(limit, max(a.due().Sub(now), askWhileNot/10))
	}
	return limit
}
