// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// standbyMade is the creation of the first standby.
func (p *past) standbyMade(t *testing.T) int {
	return p.where(t, func(c apiserver.Commit) bool {
		return c.User == Executor && c.Resource.Resource == "deployments" && labelOf(c.After, v1alpha1.LabelStandby) != nil
	})
}

// repaired is the write of the target.
func (p *past) repaired(t *testing.T) int {
	return p.where(t, func(c apiserver.Commit) bool {
		return c.User == Executor && c.Resource.Resource == "deployments" && c.Name == "web"
	})
}

// Every promise about a standby can be broken, and the judge says which.
func TestTheJudgeNamesTheBrokenPromiseOfAStandby(t *testing.T) {
	Prepare()
	tests := map[string]struct {
		promise string
		forge   func(*testing.T, *past)
	}{
		"a write before the standby serves": {"I36", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.repaired(t)), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[0].Standby.Phase = v1alpha1.StandbyReturning })
		}},
		"a write without a standby": {"I36", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.repaired(t)), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[0].Standby = nil })
		}},
		"a write while the requests are with the target": {"I36", func(t *testing.T, p *past) {
			for i := range p.commits[:p.repaired(t)] {
				if c := &p.commits[i]; c.Resource.Resource == "abreleases" {
					c.After = changed(c.After, func(o apiserver.Object) {
						specOf(o)["trafficSplit"].(map[string]any)["percentages"] = map[string]any{"target": int64(100), "standby": int64(0)}
					})
				}
			}
		}},
		"a standby of no step": {"I9", func(t *testing.T, p *past) {
			c := &p.commits[p.standbyMade(t)]
			c.After = changed(c.After, func(o apiserver.Object) {
				metadata(o)["labels"].(map[string]any)[v1alpha1.LabelStandby] = "another.0.1"
			})
		}},
		"a standby that an executor changes": {"I36", func(t *testing.T, p *past) {
			i := p.standbyMade(t)
			again := p.commits[i]
			again.Before = again.After
			p.commits = slices.Insert(p.commits, i+1, again)
		}},
		"a standby that is made after its end": {"I36", func(t *testing.T, p *past) { p.commits = append(p.commits, p.commits[p.standbyMade(t)]) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := scenario{batches: [][]int32{{0}}}
				c.mesh, c.standbys = true, true
				p := quiet(c)
				if before := newJudge(p.w, p.commits, true); len(before.broken) > 0 || before.seen["effect beside a standby"] != 1 || before.seen["standby that is gone at the end"] != 1 {
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
