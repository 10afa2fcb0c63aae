// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// made is the creation of the first plan of a planner.
func (p *past) made(t *testing.T) int {
	t.Helper()
	return p.where(t, func(c apiserver.Commit) bool {
		return c.Resource.Resource == "remediationplans" && c.Before == nil && c.User == Assessor
	})
}

// again inserts the creation of another plan behind a commit, as a copy of the first one.
func (p *past) again(t *testing.T, behind int, name string, change func(*v1alpha1.RemediationPlan)) {
	t.Helper()
	c := p.commits[p.made(t)]
	plan := typed[v1alpha1.RemediationPlan](c.After)
	plan.Name, plan.UID = name, types.UID("uid-of-"+name)
	if change != nil {
		change(plan)
	}
	c.Name, c.At, c.After = name, p.commits[behind].At, object(plan)
	p.commits = slices.Insert(p.commits, behind+1, c)
}

// Every promise about a planner can be broken, and the judge says which.
func TestTheJudgeNamesTheBrokenPromiseOfAPlanner(t *testing.T) {
	Prepare()
	tests := map[string]struct {
		promise string
		forge   func(*testing.T, *past)
	}{
		"a second plan for a target of a plan that has not ended": {"I27", func(t *testing.T, p *past) { p.again(t, p.made(t), "again", nil) }},
		"a twenty-first plan within a minute": {"I28", func(t *testing.T, p *past) {
			for i := range mostPlans {
				p.again(t, p.made(t), fmt.Sprint("again-", i), func(plan *v1alpha1.RemediationPlan) { plan.Spec.Plan.Targets[0].BaselineName = fmt.Sprint("other-", i) })
			}
		}},
		"a plan right after three plans without success": {"I29", func(t *testing.T, p *past) {
			first := p.made(t)
			ended := metav1.NewTime(p.commits[first].At)
			for i := range 3 {
				p.again(t, first-1, fmt.Sprint("again-", i), func(plan *v1alpha1.RemediationPlan) {
					plan.Status.Phase, plan.Status.CompletionTime = v1alpha1.PlanFailed, &ended
				})
				first++
			}
		}},
		"a plan for a drift that was seen accepted": {"I30", func(t *testing.T, p *past) {
			first := p.made(t)
			drifted := typed[v1alpha1.RemediationPlan](p.commits[first].After).Spec.Plan.Targets[0].DriftedHash
			p.forgeBaselines(first, func(b *v1alpha1.Baseline) {
				b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: drifted, RequestedBy: "alice"}
			})
		}},
		"a plan to a state that was seen authorized no more": {"I30", func(t *testing.T, p *past) {
			p.forgeBaselines(p.made(t), func(b *v1alpha1.Baseline) { b.Spec.Authorized.Hash = "another" })
		}},
		"a drift that is left alone for no reason": {"L6", func(t *testing.T, p *past) {
			i := p.effectOf(t, "web")
			c := p.commits[i]
			c.User, c.At = "mallory", p.commits[len(p.commits)-1].At.Add(time.Second)
			c.Before, c.After = c.After, c.Before
			p.commits = append(p.commits, c)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := scenario{}
				c.planner, c.drifted, c.peers, c.authorizedFor = true, 1, 1, time.Hour
				p := quiet(c)
				if before := newJudge(p.w, p.commits, true); len(before.broken) > 0 || before.seen["plan that a planner makes"] != 1 || before.seen["effect"] != 1 {
					t.Fatalf("the run itself: %v, %v", before.broken, before.seen)
				}
				test.forge(t, p)
				got := newJudge(p.w, p.commits, true).broken
				if !slices.ContainsFunc(got, func(b Breach) bool { return b.Promise == test.promise }) {
					t.Errorf("got %v, want %s", got, test.promise)
				}
			})
		})
	}
}

// forgeBaselines changes all Baselines that were stored before a commit.
func (p *past) forgeBaselines(before int, change func(*v1alpha1.Baseline)) {
	for i := range before {
		if p.commits[i].Resource.Resource == "baselines" {
			b := typed[v1alpha1.Baseline](p.commits[i].After)
			change(b)
			p.commits[i].After = object(b)
		}
	}
}
