// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/environment"
	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/readiness/expression"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// Guards reads what the guards say.
type Guards struct {
	Mapper meta.RESTMapper
	// Excluded namespaces are never guarded.
	Excluded []string
	System   specguard.System
	Clock    clock.PassiveClock

	rules expression.Cache
}

// Read implements exec.Guards. The lists are read beside each other.
func (g *Guards) Read(ctx context.Context, from client.Reader) (exec.GuardView, error) {
	v := &view{clock: g.Clock, rules: &g.rules}
	var defaults v1alpha1.GuardDefaultsList
	var environments v1alpha1.EnvironmentList
	var group errgroup.Group
	group.Go(func() (err error) {
		v.snapshot, err = guards.Read(ctx, from, g.Mapper, g.Excluded, g.System, g.Clock.Now())
		return err
	})
	group.Go(func() error { return from.List(ctx, &defaults) })
	group.Go(func() error { return from.List(ctx, &environments) })
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("reading the guards: %w", err)
	}
	v.defaults = guarddefaults.NewActive(defaults.Items, guarddefaults.NamesOf(environments.Items))
	v.noteConditions()
	v.assign(environments.Items)
	return v, nil
}

// view is what the guards said at one moment.
type view struct {
	clock        clock.PassiveClock
	snapshot     *guards.Snapshot
	defaults     *guarddefaults.Active
	rules        *expression.Cache
	environments environment.Assignment
	// frozen is the mass drift of each guard.
	frozen    map[specguard.GuardRef]specguard.Freeze
	suspended map[specguard.GuardRef]bool
}

func (v *view) noteConditions() {
	v.frozen, v.suspended = map[specguard.GuardRef]specguard.Freeze{}, map[specguard.GuardRef]bool{}
	for i := range v.snapshot.Guards {
		g := &v.snapshot.Guards[i]
		v.note(specguard.GuardRef{Namespace: g.Namespace, Name: g.Name}, &g.Spec, &g.Status)
	}
	for i := range v.snapshot.ClusterGuards {
		g := &v.snapshot.ClusterGuards[i]
		v.note(specguard.GuardRef{Name: g.Name}, &g.Spec.GuardSpec, &g.Status)
	}
}

// assign finds which Environment each namespace belongs to.
func (v *view) assign(environments []v1alpha1.Environment) {
	var all []*v1alpha1.Environment
	for i := range environments {
		all = append(all, &environments[i])
	}
	namespaces := map[string]labels.Set{}
	for name, namespace := range v.snapshot.Namespaces {
		namespaces[name] = namespace.Labels
	}
	v.environments = environment.Assign(all, namespaces)
}

func (v *view) note(ref specguard.GuardRef, spec *v1alpha1.GuardSpec, status *v1alpha1.GuardStatus) {
	v.frozen[ref] = specguard.FreezeOf(status)
	v.suspended[ref] = spec.Suspend != nil && spec.Suspend.EndTime.After(v.clock.Now())
}

// Rules implements exec.GuardView.
func (v *view) Rules(namespace string, target *v1alpha1.PlanTarget, own map[string]string, kept *v1alpha1.BaselineStatus) specguard.Rules {
	query := v.query(namespace, target)
	query.Kept = kept
	if own != nil {
		query.Labels = append(query.Labels, own)
	}
	return v.snapshot.Set.Rules(query)
}

func (v *view) query(namespace string, target *v1alpha1.PlanTarget) specguard.Query {
	return specguard.Query{
		Namespace: namespace, NamespaceLabels: v.snapshot.Namespaces[namespace].Labels,
		Name: target.Name, GVK: canon.ParseGVK(target.APIVersion, target.Kind), Now: v.clock.Now(),
	}
}

// Frozen implements exec.GuardView. A freeze of a guard counts for all objects of its
// kinds, whatever their labels are.
func (v *view) Frozen(namespace string, target *v1alpha1.PlanTarget) string {
	query := v.query(namespace, target)
	query.LabelsUnknown = true
	users := target.Actors
	if len(users) >= planner.MaxActors {
		users = nil // some did not fit
	}
	for _, name := range v.snapshot.Set.Rules(query).Guards() {
		if v.frozen[specguard.ParseGuardRef(name, namespace)].MayHoldObject(namespace, target.Paths, users) {
			return name
		}
	}
	return ""
}

// Holds implements exec.GuardView.
func (v *view) Holds(namespace string, b *v1alpha1.Baseline, rules specguard.Rules, annotations map[string]string) string {
	for _, name := range specguard.DecidingOnRepair(b.Status.Guards) {
		if v.suspended[specguard.ParseGuardRef(name, namespace)] {
			return name + " is suspended"
		}
	}
	settings := v.defaults.Resolve(v.Environment(namespace), resync.Hierarchy{
		Annotations: annotations, GVK: canon.ParseGVK(b.Spec.Target.APIVersion, b.Spec.Target.Kind), Guards: rules.Checks(),
	})
	if settings.Management.Value != v1alpha1.Managed {
		return "managementPolicy is Unmanaged"
	}
	return ""
}

// Readiness implements exec.GuardView. A rule that cannot be compiled fails for every object.
func (v *view) Readiness(namespace string, target *v1alpha1.PlanTarget) *readiness.Rule {
	rule, source := v.defaults.Readiness(v.Environment(namespace), canon.ParseGVK(target.APIVersion, target.Kind))
	if rule == nil {
		return nil
	}
	return &readiness.Rule{Source: source, Holds: func(object []byte) (bool, error) {
		program, err := v.rules.Compile(rule.Expression)
		if err != nil {
			return false, err
		}
		return program.Holds(object)
	}}
}

// Environment implements exec.GuardView.
func (v *view) Environment(namespace string) string {
	if e := v.environments.Of(namespace); e != nil {
		return e.Name
	}
	return ""
}

// Terminating implements exec.GuardView.
func (v *view) Terminating(namespace string) bool {
	n, there := v.snapshot.Namespaces[namespace]
	return !there || n.Terminating
}
