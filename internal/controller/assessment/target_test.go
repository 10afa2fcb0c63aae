// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
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
			a := written(func(s *v1alpha1.EffectivenessAssessmentSpec) { s.Action = v1alpha1.ActionRollback })
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
