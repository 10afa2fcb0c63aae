// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// bodies are Deployments by their revisions.
type bodies map[string]any

// Body implements Bodies.
func (b bodies) Body(_ context.Context, _, revision string) ([]byte, error) {
	if b[revision] == nil {
		return nil, errLost
	}
	return json.Marshal(b[revision])
}

// What cannot be read is unknown, and the reason says why.
func TestWhatIsUnknownOfATarget(t *testing.T) {
	unserved := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404, Details: &metav1.StatusDetails{}}}
	tests := map[string]struct {
		happens func(*world)
		why     string
	}{
		"the API server does not answer": {func(w *world) { w.readFails = errLost }, "the answer is lost"},
		"the kind is not served":         {func(w *world) { w.readFails = unserved }, "reading the target"},
		"the Baseline is gone": {func(w *world) {
			b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps.web"}}
			if err := w.client.Delete(w.t.Context(), b); err != nil {
				w.t.Fatal(err)
			}
		}, "reading the Baseline"},
		"the Baseline speaks of an earlier state": {func(w *world) { w.target = deployment("shop:2") }, "does not speak of this state yet"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := written()
			w := newWorld(t, a)
			tc.happens(w)
			if s := w.r.Targets.look(t.Context(), a); s.Read || !strings.Contains(s.Why, tc.why) {
				t.Errorf("it was read: %t; %q, want %q in it", s.Read, s.Why, tc.why)
			}
		})
	}
}

// A rollback under masks is held against what the plan desired, and not against what is authorized.
func TestTheHashOfARollbackUnderMasks(t *testing.T) {
	desired, authorized := deployment("shop:1"), deployment("shop:2")
	plan := planWith(func(p *v1alpha1.PlanTarget) {
		p.Action, p.Revision, p.DesiredHash = v1alpha1.ActionRollback, "ready", hashOf(desired)
	})
	all := bodies{"ready": desired, "now": authorized}
	known := func() *guards.Snapshot { return &guards.Snapshot{} }
	tests := map[string]struct {
		plan     client.Object
		bodies   bodies
		snapshot func() *guards.Snapshot
		want     string
		why      string
	}{
		"it is as the plan desired":    {plan, all, known, hashOf(desired), ""},
		"the plan is gone":             {nil, all, known, "", "reading the plan"},
		"the guards are not known":     {plan, all, func() *guards.Snapshot { return nil }, "", "the guards are not known"},
		"the desired state is gone":    {plan, bodies{"now": authorized}, known, "", "reading the desired body"},
		"the authorized state is gone": {plan, bodies{"ready": desired}, known, "", "reading the authorized body"},
		"another plan has its name":    {func() client.Object { p := plan.DeepCopy(); p.UID = "another"; return p }(), all, known, "", "another plan has its name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := written(func(s *v1alpha1.EffectivenessAssessmentSpec) { s.Action = v1alpha1.AssessedRollback })
			var objects []client.Object
			if tc.plan != nil {
				objects = append(objects, tc.plan.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // it is one
			}
			w := newWorld(t, a, objects...)
			w.target.Spec.Replicas = new(int32(7))
			w.judge()
			w.mask("/spec/replicas", authorized)
			w.r.Targets.Bodies, w.r.Targets.Snapshot = tc.bodies, tc.snapshot
			s := w.r.Targets.look(t.Context(), a)
			if s.Hash != tc.want || s.Read != (tc.why == "") || !strings.Contains(s.Why, tc.why) {
				t.Errorf("the hash is %q (read: %t, %q), want %q and %q", s.Hash, s.Read, s.Why, tc.want, tc.why)
			}
		})
	}
}

// A ConfigMap has no generation that would tell a change of the object from one of what its guards ignore.
func TestPathsThatGuardsIgnoreSinceTheWriteAreNoDrift(t *testing.T) {
	ignoring := func(paths ...string) *specguard.GuardSet {
		spec := v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}, Ignore: paths}
		guard, errs := specguard.Compile(specguard.GuardRef{Namespace: "shop", Name: "web"}, spec, nil, time.Time{})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return specguard.NewGuardSet([]*specguard.Guard{guard}, nil, specguard.System{})
	}
	desired := deployment("shop:1")
	scaled := func(image string) *appsv1.Deployment {
		d := deployment(image)
		d.Spec.Replicas = new(int32(7))
		return d
	}
	tests := map[string]struct {
		live       *appsv1.Deployment
		generation int64
		action     v1alpha1.RemediationAction
		bodies     bodies
		want       effect.Integrity
	}{
		"the path that is ignored has another value":  {scaled("shop:1"), 0, v1alpha1.ActionReconcile, bodies{"now": desired}, effect.SpecUnchanged},
		"another path is changed":                     {scaled("evil:1"), 0, v1alpha1.ActionReconcile, bodies{"now": desired}, effect.SpecDrifted},
		"a kind with a generation tells it by itself": {scaled("shop:1"), 8, v1alpha1.ActionReconcile, bodies{"now": desired}, effect.SpecDrifted},
		"a restart writes no body":                    {scaled("shop:1"), 0, v1alpha1.ActionRestart, bodies{"now": desired}, effect.SpecDrifted},
		"the desired state is gone":                   {scaled("shop:1"), 0, v1alpha1.ActionReconcile, nil, effect.IntegrityUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plan := planWith(func(p *v1alpha1.PlanTarget) { p.Revision, p.DesiredHash = "now", hashOf(desired) })
			a := written(func(s *v1alpha1.EffectivenessAssessmentSpec) {
				s.Action, s.PostGeneration = v1alpha1.AssessedAction(tc.action), 0
			})
			w := newWorld(t, a, plan)
			w.target = tc.live
			w.target.Generation = tc.generation
			set := ignoring("/spec/replicas")
			w.r.Targets.Bodies, w.r.Targets.Snapshot = tc.bodies, func() *guards.Snapshot { return &guards.Snapshot{Set: set} }
			w.judge()
			w.observes(set)
			s := w.r.Targets.look(t.Context(), a)
			if got := effect.Compare(effect.ReadStored(a).Written, s.Live); got != tc.want {
				t.Errorf("it is %s, want %s: %s", got, tc.want, s.Why)
			}
		})
	}
}

// observes has the Baseline speak of the target by the rules of guards.
func (w *world) observes(set *specguard.GuardSet) {
	w.t.Helper()
	object := decode(w.target)
	body, err := object.Body()
	if err != nil {
		w.t.Fatal(err)
	}
	gvk := canon.GVK(deployments)
	hash, err := specguard.GuardedHash(body, gvk, set.Rules(specguard.Query{Namespace: "shop", GVK: gvk, Labels: []map[string]string{object.Labels}, Now: noon}))
	if err != nil {
		w.t.Fatal(err)
	}
	b := &v1alpha1.Baseline{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "deployments.apps.web"}, b); err != nil {
		w.t.Fatal(err)
	}
	b.Status.Observed.Hash = string(hash)
	if err := w.client.Status().Update(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

// mask has the Baseline expect any value at a path, beside an authorized state.
func (w *world) mask(path string, authorized any) {
	w.t.Helper()
	b := &v1alpha1.Baseline{}
	key := client.ObjectKey{Namespace: "shop", Name: "deployments.apps.web"}
	if err := w.client.Get(w.t.Context(), key, b); err != nil {
		w.t.Fatal(err)
	}
	b.Spec.Authorized = &v1alpha1.AuthorizedState{Revision: "now"}
	status := b.Status.DeepCopy()
	status.Masks = []v1alpha1.Mask{{Path: path}}
	err := w.client.Update(w.t.Context(), b)
	b.Status = *status
	if err = errors.Join(err, w.client.Status().Update(w.t.Context(), b)); err != nil {
		w.t.Fatal(err)
	}
}
