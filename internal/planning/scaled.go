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

// scaled fills in what the object is with the authorized number of replicas, hashed as the executor
// hashes it after the write. It fills in neither when the number did not drift.
func (g *gatherer) scaled(ctx context.Context, s *subject, rules specguard.Rules, d *planner.Drift) error {
	authorized := s.baseline.Spec.Authorized
	drifts := func(f v1alpha1.Finding) bool { return f.Path == replicas }
	if authorized == nil || s.known() == v1alpha1.StateUnknown || !slices.ContainsFunc(s.baseline.Status.Findings, drifts) {
		return nil
	}
	want, err := g.src.Body(ctx, s.baseline.Namespace, authorized.Revision)
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, ErrDamaged):
		d.BodyLost = true
		return nil
	case err != nil:
		return err
	}
	body, err := s.object.Body()
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", s.key, err)
	}
	standard := &repair.Standard{
		GVK: canon.GVK(s.key.GroupVersionKind), Rules: rules, Masks: s.baseline.Status.Masks, Authorized: want, Desired: want,
	}
	target := &v1alpha1.PlanTarget{Action: v1alpha1.ActionScale}
	written, err := repair.Write(body, target, standard, repair.Marks{})
	if err != nil {
		return fmt.Errorf("scaling %s: %w", s.key, err)
	}
	hash, err := standard.Hash(written, target)
	if err != nil {
		return fmt.Errorf("scaling %s: %w", s.key, err)
	}
	d.Scaled = &planner.Repair{Revision: authorized.Revision, RevisionHash: authorized.Hash, DesiredHash: hash}
	return nil
}
