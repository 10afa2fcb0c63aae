// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// plannerMutants take out what keeps a planner from making plans.
func plannerMutants() []Mutant {
	return []Mutant{
		{Name: "plans under way are read from a cache", Breaks: "I27", think: func(p *leader) { p.reconciler.Live = p.informers }, in: plannedWorld(func(c *scenario) {
			c.peers, c.still, c.limits.MaxConcurrent = 9, 3, 2
			c.hire(eager("foreign", "mallory", (*person).changes), eager("second-foreign", "mallory", (*person).changes), eager("third-foreign", "mallory", (*person).changes))
		})},
		{Name: "plans are made at any rate", Breaks: "I28", think: sees(func(list client.ObjectList) {
			eachPlan(list, func(p *v1alpha1.RemediationPlan) {
				p.CreationTimestamp = metav1.NewTime(p.CreationTimestamp.Add(-time.Hour))
			})
		}), in: plannedWorld(func(c *scenario) {
			c.hire(eager("frantic-editor", requester, (*person).editsOften), eager("second-frantic-editor", requester, (*person).editsOften))
			c.chances, c.messages, c.peers, c.drifted, c.still = schedule.Chances{}, 2500, 0, 1, 100
		})},
		{Name: "plans without success are forgotten", Breaks: "I29", think: sees(func(list client.ObjectList) {
			eachPlan(list, func(p *v1alpha1.RemediationPlan) {
				if p.Status.CompletionTime != nil {
					p.Status.CompletionTime = &metav1.Time{Time: p.Status.CompletionTime.Add(-time.Hour)}
				}
			})
		}), in: plannedWorld(func(c *scenario) { c.hire(eager("halter", "alice", (*person).haltsLedger)) })},
		{Name: "a planner reads Baselines once", Breaks: "I30", think: frozenBaselines(), patience: 3000, in: plannedWorld(func(c *scenario) {
			c.hire(eager("acceptor", "alice", (*person).accepts), eager("authorizer", "assessor", (*person).authorizes), eager("second-authorizer", "assessor", (*person).authorizes))
		})},
		{Name: "what changes by time alone is not looked at", Breaks: "L6", think: func(p *leader) { p.deaf = true }, in: plannedWorld(func(c *scenario) { c.authorizedFor = 0 })},
	}
}

// plannedWorld is a world with a planner and little else, but for what a mutant needs.
func plannedWorld(more func(*scenario)) func(*scenario) {
	return func(c *scenario) {
		c.meddlers = nil
		c.planFrom(rand.New(rand.NewPCG(0, 3))) //nolint:gosec // to be had again
		c.action, c.kind, c.drifted, c.peers, c.limits.MaxTargets, c.authorizedFor, c.messages = v1alpha1.ActionReconcile, &deployments, 2, 2, 10, time.Hour, 300
		more(c)
	}
}

// sees has a planner see lists that were changed.
func sees(change func(client.ObjectList)) func(p *leader) {
	return func(p *leader) {
		p.reconciler.Live = lister{p.reconciler.Live, change}
		if cache, ok := p.reconciler.Source.(*planning.FromCache); ok {
			cache.Cache = lister{cache.Cache, change}
		}
	}
}

// lister changes what was listed.
type lister struct {
	client.Reader
	change func(client.ObjectList)
}

// List implements client.Reader.
func (l lister) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := l.Reader.List(ctx, list, opts...); err != nil {
		return err //nolint:wrapcheck // it stands for the reader
	}
	l.change(list)
	return nil
}

func eachPlan(list client.ObjectList, change func(*v1alpha1.RemediationPlan)) {
	if plans, ok := list.(*v1alpha1.RemediationPlanList); ok {
		for i := range plans.Items {
			change(&plans.Items[i])
		}
	}
}

// frozenBaselines has each planner see of a Baseline what it saw drifted first.
func frozenBaselines() func(p *leader) {
	return func(p *leader) {
		first := map[string]v1alpha1.Baseline{}
		sees(func(list client.ObjectList) {
			baselines, ok := list.(*v1alpha1.BaselineList)
			if !ok {
				return
			}
			for i := range baselines.Items {
				b := &baselines.Items[i]
				if seen, known := first[b.Name]; known {
					*b = seen
				} else if b.Status.State == v1alpha1.StateDrifted && b.Status.Observed.FullHash != "" {
					first[b.Name] = *b
				}
			}
		})(p)
	}
}

// editsOften changes the policy again and again; each change ends the plans of before.
func (p *person) editsOften() {
	for i := range 120 {
		safety := map[string]any{"maxPerDay": 20 + i}
		if p.ask(http.MethodPatch, policyPath, mergePatch, apiserver.Object{"spec": map[string]any{"safety": safety}}) != nil {
			p.w.count("edit of a policy")
		}
		p.Sleep(time.Duration(p.Rand().Int64N(int64(time.Second))))
		if p.w.calm.Load() {
			return
		}
	}
}
