// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Views tell what the watch knows of guarded objects; *kube.Tracker does.
type Views interface {
	View(key kube.Key) kube.View
}

// FromCache is the assessor's Source.
type FromCache struct {
	// Cache has Plumbline's kinds.
	Cache client.Reader
	// Live reads past it: bodies, and plans that the cache may not have yet.
	Live client.Reader
	// Snapshot of the guards, nil before the first.
	Snapshot func() *guards.Snapshot
	Objects  Views
	// Read reads an object past all caches; nil when the object is absent.
	Read func(ctx context.Context, key kube.Key) (*kube.Object, error)
	// Rollouts says that the installation has rollouts, and Cache has ABReleases.
	Rollouts bool
	// Effectiveness says that the installation assesses effects, and Cache has EffectivenessAssessments.
	Effectiveness bool
}

// World implements Source.
func (s *FromCache) World(ctx context.Context, now time.Time) (*World, error) {
	w := &World{Guards: s.Snapshot()}
	if w.Guards == nil {
		return nil, ErrNotReady
	}
	// Nothing of it is changed, and a copy of ten thousand Baselines would cost
	// more than all that is done with them.
	if err := readWorld(ctx, s.Cache, w, now, client.UnsafeDisableDeepCopy); err != nil {
		return w, err
	}
	if s.Rollouts {
		if err := readReleases(ctx, s.Cache, w, client.UnsafeDisableDeepCopy); err != nil {
			return w, err
		}
	}
	if s.Effectiveness {
		w.BeginsAssessments = true
		return w, readAssessments(ctx, s.Cache, w, client.UnsafeDisableDeepCopy)
	}
	return w, nil
}

// Object implements Source.
func (s *FromCache) Object(_ context.Context, key kube.Key) (*kube.Object, error) {
	view := s.Objects.View(key)
	return view.Current, view.Unknown
}

// Content implements Source. The watch keeps not all of each object.
func (s *FromCache) Content(ctx context.Context, key kube.Key, object *kube.Object) (*kube.Object, error) {
	live, err := s.Read(ctx, key)
	if err != nil {
		return nil, err
	}
	if whole := object.Complete(live); whole != nil {
		return whole, nil
	}
	return nil, fmt.Errorf("reading %s: %w", key, ErrChanged)
}

// Body implements Source.
func (s *FromCache) Body(ctx context.Context, namespace, revision string) ([]byte, error) {
	return body(ctx, s.Live, namespace, revision)
}

// Revision implements Source.
func (s *FromCache) Revision(ctx context.Context, namespace, name string) (*v1alpha1.BaselineRevisionSpec, error) {
	return revision(ctx, s.Live, namespace, name)
}

// Plan implements Source.
func (s *FromCache) Plan(ctx context.Context, namespace, name string) (*v1alpha1.RemediationPlan, error) {
	return plan(ctx, s.Live, namespace, name)
}

// readReleases reads the releases whose runs may hold an object.
func readReleases(ctx context.Context, reader client.Reader, w *World, options ...client.ListOption) error {
	var releases v1alpha1.ABReleaseList
	if err := reader.List(ctx, &releases, options...); err != nil {
		return fmt.Errorf("listing ABReleases: %w", err)
	}
	w.Releases = releases.Items
	return nil
}

// readAssessments reads the assessments that may hold an object.
func readAssessments(ctx context.Context, reader client.Reader, w *World, options ...client.ListOption) error {
	var assessments v1alpha1.EffectivenessAssessmentList
	if err := reader.List(ctx, &assessments, options...); err != nil {
		return fmt.Errorf("listing EffectivenessAssessments: %w", err)
	}
	w.Assessments = assessments.Items
	return nil
}

// readWorld reads all but the guards' snapshot, the releases and the assessments.
func readWorld(ctx context.Context, reader client.Reader, w *World, now time.Time, options ...client.ListOption) error {
	var (
		baselines     v1alpha1.BaselineList
		plans         v1alpha1.RemediationPlanList
		environments  v1alpha1.EnvironmentList
		guards        v1alpha1.SpecGuardList
		clusterGuards v1alpha1.ClusterSpecGuardList
	)
	for what, list := range map[string]client.ObjectList{
		"baselines": &baselines, "plans": &plans, "environments": &environments, "guards": &guards, "cluster guards": &clusterGuards,
	} {
		if err := reader.List(ctx, list, options...); err != nil {
			return fmt.Errorf("listing %s: %w", what, err)
		}
	}
	w.Baselines, w.Plans, w.Environments = baselines.Items, plans.Items, environments.Items
	var err error
	if w.Defaults, err = guarddefaults.Read(ctx, reader); err != nil {
		return err
	}
	w.complete(guards.Items, clusterGuards.Items, now)
	return nil
}
