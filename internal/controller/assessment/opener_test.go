// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// planEnded is a plan of which each step is in a state.
func planEnded(states ...v1alpha1.StepState) *v1alpha1.RemediationPlan {
	p := planWith(nil)
	for len(p.Spec.Plan.Targets) < len(states) {
		p.Spec.Plan.Targets = append(p.Spec.Plan.Targets, p.Spec.Plan.Targets[0])
	}
	for i, state := range states {
		p.Status.Steps = append(p.Status.Steps, v1alpha1.PlanStep{Index: int32(i), State: state}) //nolint:gosec // few
	}
	return p
}

// opened are the assessments that a look at a plan creates, with how long each leaves its target alone.
func opened(t *testing.T, creates func() error, objects ...client.Object) (map[string]time.Duration, error) {
	t.Helper()
	c := fakeclient.NewBuilder(kinds()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := creates(); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
	}).Build()
	_, failed := (&Opener{Client: c}).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "nightly-1"}})
	var list v1alpha1.EffectivenessAssessmentList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]time.Duration{}
	for i := range list.Items {
		found[list.Items[i].Name] = durationOf(list.Items[i].Spec.Windows.Stabilization, 0)
		if owner := metav1.GetControllerOf(&list.Items[i]); list.Items[i].UID == "" && (owner == nil || owner.UID != "plan") {
			t.Errorf("%s is owned by %v", list.Items[i].Name, owner)
		}
	}
	return found, failed
}

func TestWhichAssessmentsBegin(t *testing.T) {
	policy := func(uid types.UID) *v1alpha1.RemediationPolicy {
		return &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: uid}, Spec: v1alpha1.RemediationPolicySpec{
			Effectiveness: v1alpha1.RemediationEffectiveness{Stabilization: &metav1.Duration{Duration: time.Minute}},
		}}
	}
	well := func() error { return nil }
	failing := func(err error) func() error { return func() error { return err } }
	terminating := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: "NamespaceTerminating"}},
	}}}
	leaving := planEnded(v1alpha1.StepVerified)
	leaving.DeletionTimestamp, leaving.Finalizers = at(0), []string{"x"}
	damaged := planEnded(v1alpha1.StepVerified)
	damaged.Status.Steps[0].Index = 7
	begun := written()
	tests := map[string]struct {
		objects []client.Object
		creates func() error
		want    map[string]time.Duration
		failed  error
	}{
		"each step that has ended": {
			objects: []client.Object{planEnded(v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced, v1alpha1.StepApplied, v1alpha1.StepPlanned, "Odd"), policy("policy")},
			creates: well, want: map[string]time.Duration{"nightly-1-0": time.Minute, "nightly-1-1": time.Minute, "nightly-1-2": time.Minute, "nightly-1-3": time.Minute},
		},
		"the policy is gone":             {[]client.Object{planEnded(v1alpha1.StepVerified)}, well, map[string]time.Duration{"nightly-1-0": 5 * time.Minute}, nil},
		"another policy has its name":    {[]client.Object{planEnded(v1alpha1.StepVerified), policy("new")}, well, map[string]time.Duration{"nightly-1-0": 5 * time.Minute}, nil},
		"the plan is gone":               {nil, well, map[string]time.Duration{}, nil},
		"the plan is being deleted":      {[]client.Object{leaving}, well, map[string]time.Duration{}, nil},
		"a step without a target":        {[]client.Object{damaged}, well, map[string]time.Duration{}, nil},
		"an assessment that has begun":   {[]client.Object{planEnded(v1alpha1.StepVerified), begun}, failing(errLost), map[string]time.Duration{"nightly-1-0": 5 * time.Minute}, nil},
		"the cache does not have it yet": {[]client.Object{planEnded(v1alpha1.StepVerified)}, failing(apierrors.NewAlreadyExists(v1alpha1.GroupVersion.WithResource("effectivenessassessments").GroupResource(), "x")), map[string]time.Duration{}, nil},
		"the namespace is being deleted": {[]client.Object{planEnded(v1alpha1.StepVerified)}, failing(terminating), map[string]time.Duration{}, nil},
		"the API server does not answer": {[]client.Object{planEnded(v1alpha1.StepVerified)}, failing(errLost), map[string]time.Duration{}, errLost},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := opened(t, tc.creates, tc.objects...)
			if !errors.Is(err, tc.failed) {
				t.Fatalf("the error is %v, want %v", err, tc.failed)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the assessments differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichChangesAreNews(t *testing.T) {
	update := func(before, after client.Object) event.UpdateEvent {
		return event.UpdateEvent{ObjectOld: before, ObjectNew: after}
	}
	observes := func(o v1alpha1.ObservedState) *v1alpha1.Baseline {
		return &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{Observed: o}}
	}
	state := v1alpha1.ObservedState{UID: "web", Hash: "a", FullHash: "b", ResourceVersion: "1"}
	changed := func(change func(*v1alpha1.ObservedState)) *v1alpha1.Baseline {
		next := state
		change(&next)
		return observes(next)
	}
	tests := map[string]struct {
		got, want bool
	}{
		"a plan of which a step has ended":      {stepsEnded().Update(update(planEnded(v1alpha1.StepApplied), planEnded(v1alpha1.StepVerified))), true},
		"a plan whose steps go on":              {stepsEnded().Update(update(planEnded(v1alpha1.StepPlanned), planEnded(v1alpha1.StepApplied))), false},
		"a plan that has ended, at the start":   {stepsEnded().Create(event.CreateEvent{Object: planEnded(v1alpha1.StepVerified)}), true},
		"a plan that has not begun":             {stepsEnded().Create(event.CreateEvent{Object: planEnded(v1alpha1.StepPlanned)}), false},
		"a plan that is deleted":                {stepsEnded().Delete(event.DeleteEvent{Object: planEnded(v1alpha1.StepVerified)}), false},
		"a Baseline of another version":         {observesAnother().Update(update(observes(state), changed(func(o *v1alpha1.ObservedState) { o.ResourceVersion = "2" }))), false},
		"a Baseline with another hash":          {observesAnother().Update(update(observes(state), changed(func(o *v1alpha1.ObservedState) { o.Hash = "c" }))), true},
		"a Baseline that judged another state":  {observesAnother().Update(update(observes(state), changed(func(o *v1alpha1.ObservedState) { o.FullHash = "c" }))), true},
		"a Baseline of another object":          {observesAnother().Update(update(observes(state), changed(func(o *v1alpha1.ObservedState) { o.UID = "new" }))), true},
		"an assessment that has ended is found": {len(indexBaseline(ended())) > 0, false},
		"an assessment that goes on is found":   {len(indexBaseline(written())) > 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("it is news: %t, want %t", tc.got, tc.want)
			}
		})
	}
}

func ended() *v1alpha1.EffectivenessAssessment {
	a := written()
	a.Status.Phase = v1alpha1.AssessmentCompleted
	return a
}
