// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// FieldManager names the assessor in managedFields.
const FieldManager = "plumbline-assessor"

func inNamespace(namespace string) client.ListOption { return client.InNamespace(namespace) }

// carryOut writes what was decided. The order is the one that heals after a
// crash between any two writes: the body, then what names it, then what is seen.
func (r *Reconciler) carryOut(ctx context.Context, s *subject, d *decision) error {
	if d.remove {
		return r.removeBaseline(ctx, s, d)
	}
	if d.state.Drift == "" {
		return nil // never seen, and nothing decided yet
	}
	steps := []func(context.Context, *subject, *decision) error{
		r.createBaseline,
		r.storeRevisions,
		r.writeSpec,
		r.writeStatus,
	}
	for _, step := range steps {
		if err := step(ctx, s, d); err != nil {
			return err
		}
	}
	r.trim(ctx, s, d)
	return nil
}

// createBaseline makes the Baseline of an object seen for the first time. It
// says nothing yet: a Baseline without a state was never looked at, so a crash
// right here starts anew.
func (r *Reconciler) createBaseline(ctx context.Context, s *subject, _ *decision) error {
	if s.baseline != nil {
		return nil
	}
	b := &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.key.Namespace,
			Name:      s.name(),
			Labels:    map[string]string{v1alpha1.LabelTargetKind: s.key.Kind},
			// No owner: a Baseline must outlive its object to tell that it is gone.
		},
		Spec: v1alpha1.BaselineSpec{Target: s.target()},
	}
	if err := r.Client.Create(ctx, b, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("creating the baseline: %w", err)
	}
	s.baseline = b
	return nil
}

// writeSpec moves the authorized state, and answers a request to accept.
func (r *Reconciler) writeSpec(ctx context.Context, s *subject, d *decision) error {
	next := s.baseline.DeepCopy()
	next.Spec.Authorized = d.state.Authorized.DeepCopy()
	if d.clearAccept {
		next.Spec.Accept = nil
	}
	if d.clearLift {
		next.Spec.Lift = nil
	}
	if equality.Semantic.DeepEqual(next.Spec, s.baseline.Spec) {
		return nil
	}
	// An update is a PUT with the resourceVersion it was decided on.
	err := r.Client.Update(ctx, next, client.FieldOwner(FieldManager))
	if refusalReason(err) == v1alpha1.ReasonStatusTooLarge {
		err = r.updateBare(ctx, next)
	}
	if err != nil {
		return fmt.Errorf("writing the authorized state: %w", err)
	}
	s.baseline = next
	// As it is stored: times lose what is smaller than a second.
	d.state.Authorized = next.Spec.Authorized.DeepCopy()
	return nil
}

// writeStatus tells what is seen, unless it is what is told already.
func (r *Reconciler) writeStatus(ctx context.Context, s *subject, d *decision) error {
	next := s.baseline.DeepCopy()
	d.state.WriteStatus(&next.Status)
	s.endQuarantine(d, &next.Status)
	next.Status.ObservedGeneration = next.Generation
	next.Status.Guards = s.selecting
	r.setSeverity(s, d, &next.Status)
	s.rememberReady(&next.Status)
	r.writeConditions(s, d, next)
	r.setChecks(s, &next.Status)
	bounded := specguard.BoundStatus(&next.Status)
	if err := asStored(&next.Status); err != nil {
		return err
	}
	if bounded && sameStatus(&next.Status, &s.baseline.Status) {
		return nil
	}
	if err := r.putStatus(ctx, s, next); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	before := s.baseline.Status.LastReady
	s.baseline = next
	r.Metrics.noteQuarantine(s.key, next)
	d.state.Drift = next.Status.State // Unknown if that is all that could be written
	r.dropFormerReady(ctx, s, before)
	return nil
}

// writeConditions sets each condition that a Baseline has.
func (r *Reconciler) writeConditions(s *subject, d *decision, b *v1alpha1.Baseline) {
	setConditions(b, d.state.BodyLost, s.now)
	setAcceptanceAllowed(b, d, s.now)
	r.setRecreatable(s, b)
}

// sameStatus compares all but the resourceVersion, which controllers move by
// writing the object's own status.
func sameStatus(a, b *v1alpha1.BaselineStatus) bool {
	c := a.DeepCopy()
	c.Observed.ResourceVersion = b.Observed.ResourceVersion
	// In a selection an empty map is another thing than none.
	return equality.Semantic.DeepEqual(c, b) && reflect.DeepEqual(a.Selection, b.Selection)
}

// asStored gives a status the form it has once stored, so that times do not
// differ by what is smaller than a second.
func asStored(status *v1alpha1.BaselineStatus) error {
	raw, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encoding the status: %w", err)
	}
	*status = v1alpha1.BaselineStatus{}
	if err := json.Unmarshal(raw, status); err != nil {
		return fmt.Errorf("decoding the status: %w", err)
	}
	return nil
}

func (r *Reconciler) removeBaseline(ctx context.Context, s *subject, d *decision) error {
	d.removed = true
	if s.baseline == nil {
		return nil
	}
	if err := r.Client.Delete(ctx, s.baseline, exactly(s.baseline)...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the baseline: %w", err)
	}
	return nil
}
