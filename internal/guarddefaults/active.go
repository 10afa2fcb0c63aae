// SPDX-License-Identifier: Apache-2.0

package guarddefaults

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// Active are the GuardDefaults that count at one moment; immutable. A nil Active
// says nothing about anything.
type Active struct {
	// Epoch grows with every change; it is 0 in what [NewActive] and [Read] return.
	Epoch int64

	installWide  *v1alpha1.GuardDefaults
	environments map[string]*v1alpha1.GuardDefaults
}

// NewActive picks those that are in force, see [Rank].
func NewActive(defaults []v1alpha1.GuardDefaults, environments sets.Set[string]) *Active {
	f := &Active{environments: map[string]*v1alpha1.GuardDefaults{}}
	verdicts := Rank(defaults, environments)
	for i := range defaults {
		d := &defaults[i]
		switch {
		case !verdicts[d.Name].Active:
		case d.Spec.EnvironmentName == "":
			f.installWide = d
		default:
			f.environments[d.Spec.EnvironmentName] = d
		}
	}
	return f
}

// Read finds which GuardDefaults are in force, as reader has them; who decides on
// a write hands in one that reads live. It fails when any of it cannot be read.
func Read(ctx context.Context, reader client.Reader) (*Active, error) {
	var defaults v1alpha1.GuardDefaultsList
	if err := reader.List(ctx, &defaults); err != nil {
		return nil, fmt.Errorf("listing guard defaults: %w", err)
	}
	var environments v1alpha1.EnvironmentList
	if err := reader.List(ctx, &environments); err != nil {
		return nil, fmt.Errorf("listing environments: %w", err)
	}
	return NewActive(defaults.Items, NamesOf(environments.Items)), nil
}

// NamesOf returns the names of Environments.
func NamesOf(environments []v1alpha1.Environment) sets.Set[string] {
	names := sets.New[string]()
	for i := range environments {
		names.Insert(environments[i].Name)
	}
	return names
}

// InstallWide are the defaults of the installation, nil if there are none.
func (f *Active) InstallWide() *v1alpha1.GuardDefaults {
	if f == nil {
		return nil
	}
	return f.installWide
}

// Environment are the defaults of an Environment, nil if it has none of its own.
func (f *Active) Environment(name string) *v1alpha1.GuardDefaults {
	if f == nil {
		return nil
	}
	return f.environments[name]
}

// Environments names those that have defaults of their own, sorted.
func (f *Active) Environments() []string {
	if f == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.environments))
}

// Resolve finds what holds for the checks and repairs of an object of an
// Environment, which is empty for an object without one. Of h the caller fills in
// all but the GuardDefaults.
func (f *Active) Resolve(environment string, h resync.Hierarchy) resync.Settings {
	h.Environment, h.InstallWide = f.Environment(environment), f.InstallWide()
	return resync.Resolve(h)
}

// Readiness finds the readiness rule for a kind: of the Environment, which is empty for an
// object without one, else of the installation. The rule is nil when there is none; source
// names the GuardDefaults that have it.
func (f *Active) Readiness(environment string, gvk canon.GVK) (rule *v1alpha1.ReadinessRule, source string) {
	for _, d := range []*v1alpha1.GuardDefaults{f.Environment(environment), f.InstallWide()} {
		if d == nil {
			continue
		}
		for i := range d.Spec.Readiness {
			if r := &d.Spec.Readiness[i]; r.APIGroup == gvk.Group && r.Kind == gvk.Kind {
				return r, "GuardDefaults/" + d.Name
			}
		}
	}
	return nil, ""
}

// Threshold is the share of all objects that may be checked or repaired at once: of the
// Environment, if its GuardDefaults say one; else of the installation, whose name is empty;
// else the fallback.
func (f *Active) Threshold(environment string, fallback resync.Percent) resync.Percent {
	for _, d := range []*v1alpha1.GuardDefaults{f.Environment(environment), f.InstallWide()} {
		if d == nil || d.Spec.DriftThreshold == "" {
			continue
		}
		// The API refuses what is no percentage; what is stored anyway does not count.
		if threshold, err := resync.ParseThreshold(d.Spec.DriftThreshold); err == nil {
			return threshold
		}
	}
	return fallback
}

// MatchesSpecs tells whether the same GuardDefaults, with the same specs, are in force in
// both; neither is nil.
func (f *Active) MatchesSpecs(g *Active) bool {
	return sameDefaults(f.installWide, g.installWide) && maps.EqualFunc(f.environments, g.environments, sameDefaults)
}

func sameDefaults(a, b *v1alpha1.GuardDefaults) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.Generation == b.Generation
}
