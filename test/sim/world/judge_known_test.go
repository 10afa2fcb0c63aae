// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// breaches are the promises that a judge finds broken.
func (p *past) breaches() []string {
	broken := map[string]bool{}
	for _, b := range newJudge(p.w, p.commits, true).broken {
		broken[b.Promise] = true
	}
	return slices.Sorted(maps.Keys(broken))
}

// deliverTwice has a creation delivered a second time, after a user has deleted the object.
func (p *past) deliverTwice(t *testing.T, by string) (second int) {
	t.Helper()
	i := p.effectOf(t, "web")
	deleted, again := p.commits[i], p.commits[i]
	deleted.User, deleted.Client, deleted.Method, deleted.Before, deleted.After = by, by, "DELETE", p.commits[i].After, nil
	deleted.Revision, again.Revision = deleted.Revision+1, again.Revision+2
	for k := i + 1; k < len(p.commits); k++ {
		p.commits[k].Revision += 2
	}
	p.commits = slices.Insert(p.commits, i+1, deleted, again)
	return i + 2
}

func TestTheJudgeKnowsTheSecondCopyOfACreationAlone(t *testing.T) {
	Prepare()
	tests := map[string]struct {
		forge func(*testing.T, *past)
		want  []string
	}{
		"two copies of one request": {func(t *testing.T, p *past) { p.deliverTwice(t, "mallory") }, nil},
		"two requests": {func(t *testing.T, p *past) {
			c := &p.commits[p.deliverTwice(t, "mallory")]
			c.Sent = c.Sent.Add(time.Millisecond)
		}, []string{"I1"}},
		"two processes": {func(t *testing.T, p *past) { p.commits[p.deliverTwice(t, "mallory")].Client = "executor-b-1" }, []string{"I1"}},
		"an update": {func(t *testing.T, p *past) {
			c := &p.commits[p.deliverTwice(t, "mallory")]
			c.Method = "PUT"
		}, []string{"I1"}},
		"an executor that deletes what it made": {func(t *testing.T, p *past) { p.deliverTwice(t, Executor) }, []string{"I1", "I9"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quiet(scenario{batches: [][]int32{{0}}, gone: true})
				if before := p.breaches(); len(before) > 0 {
					t.Fatalf("the run itself breaks %v", before)
				}
				test.forge(t, p)
				for _, promise := range []string{"I1", "I9"} {
					if got := slices.Contains(p.breaches(), promise); got != slices.Contains(test.want, promise) {
						t.Errorf("broken are %v, want %v", p.breaches(), test.want)
					}
				}
			})
		})
	}
}

func TestTheJudgeKnowsAnOvertakenDecisionAlone(t *testing.T) {
	Prepare()
	later := func(p *past) { // than the last decision
		p.forge(p.last(), func(plan *v1alpha1.RemediationPlan) { plan.Status.Decision.Sequence = 0 })
	}
	tests := map[string]struct {
		died  bool
		forge func(*past)
		want  bool
	}{
		"a process that died, and told after the last decision": {true, later, false},
		"a process that lives": {false, later, true},
		"a process that died, and told before the last decision": {true, func(*past) {}, true},
		"a plan that has not ended": {true, func(p *past) {
			later(p)
			p.forge(p.last(), func(plan *v1alpha1.RemediationPlan) { plan.Status.Phase = v1alpha1.PlanRunning })
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quiet(scenario{batches: [][]int32{{0}}})
				for i := range p.commits { // the plan never was Created, as its first record tells
					if c := &p.commits[i]; c.After != nil && c.Resource.Resource == "remediationplans" {
						c.After = changed(c.After, func(o apiserver.Object) {
							if status, ok := o["status"].(map[string]any); ok && status["phase"] == "Created" {
								status["phase"] = "Scheduled"
							}
						})
					}
				}
				p.w.recordings.all[evidence.Name(string(p.w.policyUID), 1)] = recording{died: test.died}
				test.forge(p)
				if got := slices.Contains(p.breaches(), "I13"); got != test.want {
					t.Errorf("broken are %v", p.breaches())
				}
			})
		})
	}
}
