// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// liveObject is an object as the server has it now.
type liveObject struct {
	body     []byte
	metadata metav1.PartialObjectMetadata
}

func (l *liveObject) report() *liveReport {
	return &liveReport{
		UID:             string(l.metadata.UID),
		Generation:      l.metadata.Generation,
		ResourceVersion: l.metadata.ResourceVersion,
		Writer:          l.metadata.Annotations[v1alpha1.AnnotationWriter],
	}
}

// liveOf reads the object of a Baseline in the apiVersion in which it is
// guarded, or nil when there is none.
func (c *cluster) liveOf(ctx context.Context, t target, b *v1alpha1.Baseline) (*liveObject, error) {
	kind := targetKind(b)
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("reading %s as %s: %w", t, b.Spec.Target.APIVersion, err)
	}
	live := &liveObject{}
	live.body, err = c.live(ctx, mapping, b.Namespace, b.Spec.Target.Name)
	if actions.IsAbsent(err) {
		return nil, nil //nolint:nilnil // absent is one of the three results of a read
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(live.body, &live.metadata); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t, err)
	}
	return live, nil
}

// exclusions asks the guards that select the object what they ignore. A guard
// that cannot be read excludes nothing here, and the user is told.
func (a *app) exclusions(ctx context.Context, c *cluster, b *v1alpha1.Baseline, live *liveObject) (exclusions, error) {
	x := exclusions{masks: b.Status.Masks}
	var guards []*specguard.Guard
	for _, ref := range b.Status.Guards {
		guard, err := c.guard(ctx, b.Namespace, ref)
		switch {
		case apierrors.IsForbidden(err):
			a.warn("%s cannot be read (forbidden): fields that it ignores show as differences", ref)
			return x, nil
		case actions.IsAbsent(err):
			continue // no longer there: it ignores nothing any more
		case err != nil:
			return x, fmt.Errorf("reading %s: %w", ref, err)
		}
		guards = append(guards, guard)
	}
	rules := specguard.NewGuardSet(guards, nil, specguard.System{}).Rules(specguard.Query{
		Namespace: b.Namespace,
		GVK:       canon.GVK(targetKind(b)),
		Labels:    []map[string]string{live.metadata.Labels},
		Kept:      &b.Status,
		Now:       a.now(),
	})
	x.ignored = rules.Excluded()
	return x, nil
}

// guard reads a guard by its name in Baseline status. Its namespaceSelector is
// left out: it is known to select this namespace.
func (c *cluster) guard(ctx context.Context, namespace, ref string) (*specguard.Guard, error) {
	kind, name, _ := strings.Cut(ref, "/")
	var spec v1alpha1.GuardSpec
	var meta metav1.ObjectMeta
	if kind == "SpecGuard" {
		guard := &v1alpha1.SpecGuard{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, guard); err != nil {
			return nil, err
		}
		spec, meta = guard.Spec, guard.ObjectMeta
	} else {
		guard := &v1alpha1.ClusterSpecGuard{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, guard); err != nil {
			return nil, err
		}
		spec, meta, namespace = guard.Spec.GuardSpec, guard.ObjectMeta, ""
	}
	compiled, problems := specguard.Compile(specguard.GuardRef{Namespace: namespace, Name: name}, spec, nil, meta.CreationTimestamp.Time)
	if len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	return compiled.WithUID(meta.UID), nil
}
