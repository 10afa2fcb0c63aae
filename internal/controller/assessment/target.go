// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Sight is what one look at a target has found.
type Sight struct {
	effect.Live
	// Object is the target without its status, and Raw the whole of it; nil if it is not there, or was not read.
	Object *kube.Object
	Raw    []byte
	// Why says why the answer does not count; empty if it does.
	Why string
}

// Getter reads an object past every cache; *exec.RESTTargets does.
type Getter interface {
	Get(ctx context.Context, ref exec.Reference) ([]byte, error)
}

// Bodies reads what BaselineRevisions hold.
type Bodies interface {
	Body(ctx context.Context, namespace, revision string) ([]byte, error)
}

// Targets looks at targets.
type Targets struct {
	Live   Getter
	Bodies Bodies
	// Cached has Baselines and plans.
	Cached client.Reader
	// Snapshot of the guards, nil before the first.
	Snapshot func() *guards.Snapshot
	Clock    clock.PassiveClock
}

// errNotJudged says that the Baseline does not speak of the state that was read. The change of an expected
// writer has no mask until the Baseline does, and would look like one of a stranger.
var errNotJudged = errors.New("the Baseline does not speak of this state yet")

// look reads the target of an assessment. What cannot be read, or is not judged yet, is unknown.
func (t *Targets) look(ctx context.Context, a *v1alpha1.EffectivenessAssessment) Sight {
	gvk := canon.ParseGVK(a.Spec.Target.APIVersion, a.Spec.Target.Kind)
	s := seeObject(ctx, t.Live, exec.Reference{GVK: gvk, Namespace: a.Namespace, Name: a.Spec.Target.Name})
	if s.Object == nil {
		return s
	}
	if s.Read = s.UID != a.Spec.Target.UID; s.Read {
		return s // another object: no hash is needed to tell
	}
	hash, err := t.hash(ctx, a, s.Object)
	if err != nil {
		s.Why = err.Error()
		return s
	}
	s.Read, s.Hash = true, hash
	return s
}

// seeObject reads an object. The answer counts if the object is not there; of one that is there, the hash is the
// caller's to find.
func seeObject(ctx context.Context, live Getter, ref exec.Reference) Sight {
	raw, err := live.Get(ctx, ref)
	switch {
	case apierrors.IsNotFound(err) && !kube.IsUnserved(err):
		return Sight{Live: effect.Live{Read: true, Gone: true}}
	case err != nil:
		return unread(fmt.Errorf("reading the target: %w", err))
	}
	object, err := kube.Decode(raw, schema.GroupVersionKind(ref.GVK))
	if err != nil {
		return unread(fmt.Errorf("decoding the target: %w", err))
	}
	s := Sight{Object: object, Raw: raw}
	s.Body = effect.Body{UID: string(object.UID), Generation: object.Generation}
	return s
}

func unread(err error) Sight { return Sight{Why: err.Error()} }

// hash returns the guarded hash of the target, as its Baseline has it. A rollback under masks is held against
// what the plan desired, which need not be authorized.
func (t *Targets) hash(ctx context.Context, a *v1alpha1.EffectivenessAssessment, object *kube.Object) (string, error) {
	b := &v1alpha1.Baseline{}
	if err := t.Cached.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.Target.BaselineName}, b); err != nil {
		return "", fmt.Errorf("reading the Baseline of the target: %w", err)
	}
	switch {
	case object.Unreadable != nil:
		return "", fmt.Errorf("hashing the target: %w", object.Unreadable)
	case b.Status.Observed.UID != string(object.UID), b.Status.Observed.FullHash != string(object.FullHash):
		return "", errNotJudged
	case a.Spec.Action == v1alpha1.AssessedRollback && len(b.Status.Masks) > 0:
		return t.hashRollback(ctx, a, object, b)
	}
	if live := b.Status.Observed.Hash; object.Generation > 0 || a.Spec.PostHash == "" || live == a.Spec.PostHash {
		return live, nil
	}
	return t.hashByOtherRules(ctx, a, object, b)
}

// hashRollback hashes the target by the function of the plan.
func (t *Targets) hashRollback(ctx context.Context, a *v1alpha1.EffectivenessAssessment, object *kube.Object, b *v1alpha1.Baseline) (string, error) {
	standard, target, err := t.standard(ctx, a, object, b)
	if err != nil {
		return "", err
	}
	body, err := object.Body()
	if err != nil {
		return "", fmt.Errorf("reading the body of the target: %w", err)
	}
	return standard.Hash(body, target)
}

// hashByOtherRules tells an object of a kind without a generation that was changed from one whose guards ignore
// other paths than at the write: what was written is hashed by the rules of now, and if that is the hash of the
// object, the object is as it was written.
func (t *Targets) hashByOtherRules(ctx context.Context, a *v1alpha1.EffectivenessAssessment, object *kube.Object, b *v1alpha1.Baseline) (string, error) {
	live := b.Status.Observed.Hash
	if a.Spec.Action != v1alpha1.AssessedRollback && a.Spec.Action != v1alpha1.AssessedAction(v1alpha1.ActionReconcile) {
		return live, nil // it did not write a body that is stored
	}
	standard, target, err := t.standard(ctx, a, object, b)
	if err != nil {
		return "", err
	}
	if a.Spec.PostHash != target.DesiredHash {
		return live, nil
	}
	desired, err := specguard.GuardedHash(standard.Desired, standard.GVK, standard.Rules)
	if err != nil {
		return "", fmt.Errorf("hashing the desired body: %w", err)
	}
	if string(desired) == live {
		return a.Spec.PostHash, nil
	}
	return live, nil
}

// standard returns what the plan measures the target by, and the target of the plan.
func (t *Targets) standard(ctx context.Context, a *v1alpha1.EffectivenessAssessment, object *kube.Object, b *v1alpha1.Baseline) (*repair.Standard, *v1alpha1.PlanTarget, error) {
	target, err := t.planTarget(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	snapshot := t.Snapshot()
	if snapshot == nil {
		return nil, nil, fmt.Errorf("hashing the target: %w", errGuardsUnknown)
	}
	gvk := canon.ParseGVK(target.APIVersion, target.Kind)
	standard := &repair.Standard{GVK: gvk, Masks: b.Status.Masks, Rules: snapshot.Set.Rules(specguard.Query{
		Namespace: a.Namespace, Name: target.Name, NamespaceLabels: snapshot.Namespaces[a.Namespace].Labels, GVK: gvk,
		Kept: &b.Status, Labels: []map[string]string{object.Labels}, Now: t.Clock.Now(),
	})}
	if standard.Desired, err = t.Bodies.Body(ctx, a.Namespace, target.Revision); err != nil {
		return nil, nil, fmt.Errorf("reading the desired body: %w", err)
	}
	if authorized := b.Spec.Authorized; authorized != nil {
		if standard.Authorized, err = t.Bodies.Body(ctx, a.Namespace, authorized.Revision); err != nil {
			return nil, nil, fmt.Errorf("reading the authorized body: %w", err)
		}
	}
	return standard, target, nil
}

var (
	errGuardsUnknown = errors.New("the guards are not known yet")
	errPlanReplaced  = errors.New("another plan has its name")
)

// planTarget returns the target as the plan has it.
func (t *Targets) planTarget(ctx context.Context, a *v1alpha1.EffectivenessAssessment) (*v1alpha1.PlanTarget, error) {
	of, plan := a.Spec.Subject.Plan, &v1alpha1.RemediationPlan{}
	if err := t.Cached.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: of.Name}, plan); err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	if string(plan.UID) != of.UID || int(of.Step) >= len(plan.Spec.Plan.Targets) {
		return nil, fmt.Errorf("reading plan %s: %w", of.Name, errPlanReplaced)
	}
	return &plan.Spec.Plan.Targets[of.Step], nil
}
