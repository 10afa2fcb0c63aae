// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// request returns what a person asks for, before anything is known of its targets.
func (g *gatherer) request() *planner.Request {
	if g.Request == nil {
		return nil
	}
	r := &planner.Request{Namespace: g.Request.Namespace, Name: g.Request.Name, UID: string(g.Request.UID)}
	for _, t := range g.Request.Spec.Targets {
		r.Targets = append(r.Targets, planner.Chosen{Baseline: t.BaselineName, DriftedHash: t.DriftedHash, Revision: t.Revision})
	}
	return r
}

// chosen returns the target of the request that is about a Baseline; nil when none is.
func (g *gatherer) chosen(b *v1alpha1.Baseline) *planner.Chosen {
	r := g.out.Input.Request
	if r == nil || r.Namespace != b.Namespace {
		return nil
	}
	for i := range r.Targets {
		if r.Targets[i].Baseline == b.Name {
			return &r.Targets[i]
		}
	}
	return nil
}

// stands notes how the object of a Baseline stands under the policy.
func (g *gatherer) stands(b *v1alpha1.Baseline, as planner.Standing) {
	c := g.chosen(b)
	if c == nil {
		return
	}
	c.Standing, c.Target = as, b.Spec.Target
	if owner := g.world.Of(b.Namespace); owner != nil {
		c.Environment = owner.Name
	}
}

// chosenState is the authorized state that the request chose for a rollback; nil when it
// chose none, or what it names is no kept state of the Baseline.
func (g *gatherer) chosenState(ctx context.Context, b *v1alpha1.Baseline) (*planner.Repair, error) {
	c := g.chosen(b)
	if c == nil || c.Revision == "" {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	state, err := g.src.Revision(ctx, b.Namespace, c.Revision)
	if err != nil || state == nil || state.BaselineName != b.Name {
		return nil, err
	}
	return &planner.Repair{Revision: c.Revision, RevisionHash: state.Hash, DesiredHash: state.Hash}, nil
}
