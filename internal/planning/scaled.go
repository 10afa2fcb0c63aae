// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// replicas is the only path that a Scale puts back.
const replicas = "/spec/replicas"

// scaled is what the object is with the authorized number of replicas, hashed as
// the executor hashes it after the write; nil when the number did not drift.
func (g *gatherer) scaled(ctx context.Context, s *subject, rules specguard.Rules) (*planner.Repair, error) {
	authorized := s.baseline.Spec.Authorized
	drifts := func(f v1alpha1.Finding) bool { return f.Path == replicas }
	if authorized == nil || s.known() == v1alpha1.StateUnknown || !slices.ContainsFunc(s.baseline.Status.Findings, drifts) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	want, err := g.src.Body(ctx, s.baseline.Namespace, authorized.Revision)
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, ErrDamaged):
		return nil, nil //nolint:nilnil // without the body nobody can say
	case err != nil:
		return nil, err
	}
	body, err := s.object.Body()
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", s.key, err)
	}
	standard := &repair.Standard{
		GVK: canon.GVK(s.key.GroupVersionKind), Rules: rules, Masks: s.baseline.Status.Masks, Authorized: want, Desired: want,
	}
	target := &v1alpha1.PlanTarget{Action: v1alpha1.ActionScale}
	written, err := repair.Write(body, target, standard, repair.Marks{})
	if err != nil {
		return nil, fmt.Errorf("scaling %s: %w", s.key, err)
	}
	hash, err := standard.Hash(written, target)
	if err != nil {
		return nil, fmt.Errorf("scaling %s: %w", s.key, err)
	}
	return &planner.Repair{Revision: authorized.Revision, RevisionHash: authorized.Hash, DesiredHash: hash}, nil
}
