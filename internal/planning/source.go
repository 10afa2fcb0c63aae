// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/internal/environment"
	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// ErrNotReady says that not enough is known yet to plan anything.
var ErrNotReady = errors.New("the guards are not read yet")

// ErrDamaged says that the content of a BaselineRevision is no body.
var ErrDamaged = errors.New("the stored body is damaged")

// ErrChanged says that an object is another one than a moment ago.
var ErrChanged = errors.New("the object changes at this moment")

// Source reads the dependencies of a plan.
type Source interface {
	// World reads the facts about all objects. The error wraps [ErrNotReady] when it
	// is too early to ask. The content of a World is shared and must not be changed.
	World(ctx context.Context, now time.Time) (*World, error)
	// Object returns the known facts of an object; nil when it is absent. An error means
	// that the object is unknown.
	Object(ctx context.Context, key kube.Key) (*kube.Object, error)
	// Content is an object of Object with its content and labels, where Object has them
	// not. It is an error when the object has changed since.
	Content(ctx context.Context, key kube.Key, object *kube.Object) (*kube.Object, error)
	// Body is the body that a BaselineRevision holds; the error may wrap
	// [ErrDamaged].
	Body(ctx context.Context, namespace, revision string) ([]byte, error)
	// Revision is one authorized state, without its body; nil when it is absent.
	Revision(ctx context.Context, namespace, name string) (*v1alpha1.BaselineRevisionSpec, error)
	// Plan is one plan, read live; nil when it is absent.
	Plan(ctx context.Context, namespace, name string) (*v1alpha1.RemediationPlan, error)
}

// World has the facts that are read once, and are the same for every object.
type World struct {
	Baselines []v1alpha1.Baseline
	// Plans of all policies.
	Plans        []v1alpha1.RemediationPlan
	Environments []v1alpha1.Environment
	// Releases are empty where the installation has no rollouts.
	Releases []v1alpha1.ABRelease
	// Assessments of the effect of plans.
	Assessments []v1alpha1.EffectivenessAssessment
	// BeginsAssessments says that an assessment begins soon after each step that has ended.
	BeginsAssessments bool
	Guards            *guards.Snapshot
	Defaults          *guarddefaults.Active

	owners environment.Assignment
	states map[specguard.GuardRef]guardState
}

// complete computes the facts that follow from the read ones.
func (w *World) complete(specGuards []v1alpha1.SpecGuard, clusterGuards []v1alpha1.ClusterSpecGuard, now time.Time) {
	w.owners = assign(w.Environments, w.Guards)
	tallies := guards.Tallies(w.Baselines)
	w.states = make(map[specguard.GuardRef]guardState, len(specGuards)+len(clusterGuards))
	for i := range specGuards {
		g := &specGuards[i]
		ref := specguard.GuardRef{Namespace: g.Namespace, Name: g.Name}
		w.states[ref] = stateOf(&g.Spec, &g.Status, tallies[ref], now)
	}
	for i := range clusterGuards {
		g := &clusterGuards[i]
		ref := specguard.GuardRef{Name: g.Name}
		w.states[ref] = stateOf(&g.Spec.GuardSpec, &g.Status, tallies[ref], now)
	}
}

// assign assigns the namespaces that exist to Environments.
func assign(all []v1alpha1.Environment, known *guards.Snapshot) environment.Assignment {
	namespaces := make(map[string]labels.Set, len(known.Namespaces))
	for name, n := range known.Namespaces {
		namespaces[name] = n.Labels
	}
	environments := make([]*v1alpha1.Environment, len(all))
	for i := range all {
		environments[i] = &all[i]
	}
	return environment.Assign(environments, namespaces)
}

// Environment finds an Environment by its name; nil without one.
func (w *World) Environment(name string) *v1alpha1.Environment {
	for i := range w.Environments {
		if w.Environments[i].Name == name {
			return &w.Environments[i]
		}
	}
	return nil
}

// Of returns the Environment of a namespace; nil without one.
func (w *World) Of(namespace string) *v1alpha1.Environment { return w.owners.Of(namespace) }
