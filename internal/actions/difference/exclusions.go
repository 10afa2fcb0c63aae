// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// exclusions are the differences that are none.
type exclusions struct {
	ignored []canon.Path
	masks   []v1alpha1.Mask
	// unread says which guards could not be read.
	unread []string
}

// readExclusions asks the guards that select the object what they ignore. A guard
// that cannot be read excludes nothing here, and the user is told.
func readExclusions(ctx context.Context, c Cluster, b *v1alpha1.Baseline, live *LiveObject) (exclusions, error) {
	x := exclusions{masks: b.Status.Masks}
	var guards []*specguard.Guard
	for _, ref := range b.Status.Guards {
		guard, err := readGuard(ctx, c, b.Namespace, ref)
		switch {
		case apierrors.IsForbidden(err):
			x.unread = append(x.unread, fmt.Sprintf("%s cannot be read (forbidden): fields that it ignores show as differences", ref))
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
		GVK:       canon.GVK(wording.KindOf(b)),
		Labels:    []map[string]string{live.Metadata.Labels},
		Kept:      &b.Status,
		Now:       c.Now(),
	})
	x.ignored = rules.Excluded()
	return x, nil
}

// readGuard reads a guard by its name in Baseline status. Its namespaceSelector is
// left out: it is known to select this namespace.
func readGuard(ctx context.Context, c client.Reader, namespace, ref string) (*specguard.Guard, error) {
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
