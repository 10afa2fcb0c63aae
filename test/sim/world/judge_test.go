// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// past is what was stored in a run that nothing disturbed: two targets are put
// back, one after the other. A test forges it.
type past struct {
	w       *World
	commits []apiserver.Commit
}

func quiet(c scenario) *past {
	s := schedule.New(3)
	c.action, c.deadline, c.kind = cmp.Or(c.action, v1alpha1.ActionReconcile), 4*time.Hour, &deployments
	c.still = 25
	c.limits = v1alpha1.RemediationSafety{
		MaxConcurrent: 1, MaxPerHour: 5, MaxPerDay: 20, Cooldown: &metav1.Duration{},
		CircuitBreaker: v1alpha1.CircuitBreakerSettings{FailureThreshold: 3, OpenDuration: &metav1.Duration{Duration: time.Minute}},
	}
	w := newWorld(s, c, Mutant{})
	s.Spawn("executor-a", w.executor(0, jump{}))
	s.Spawn("deployment-controller", w.controller)
	if c.planner {
		s.Spawn("planner", w.planner(c.ahead))
	}
	if c.planner || w.quarantines() {
		s.Spawn("assessor-that-judges", w.assess)
	}
	if c.standbys {
		s.Spawn("controllers-of-standbys", w.serveStandbys)
	}
	s.Run(5000, w.ended)
	s.Stop()
	return &past{w, slices.Clone(w.Server.History())}
}

// where finds a commit.
func (p *past) where(t *testing.T, is func(apiserver.Commit) bool) int {
	t.Helper()
	i := slices.IndexFunc(p.commits, is)
	if i < 0 {
		t.Fatal("there is no such commit")
	}
	return i
}

// effectOf is the first effect on a target.
func (p *past) effectOf(t *testing.T, name string) int {
	return p.where(t, func(c apiserver.Commit) bool {
		return c.User == Executor && c.Resource.Resource == "deployments" && c.Name == name
	})
}

// forge changes the plan as a commit left it.
func (p *past) forge(i int, change func(*v1alpha1.RemediationPlan)) {
	plan := typed[v1alpha1.RemediationPlan](p.commits[i].After)
	change(plan)
	p.commits[i].After = object(plan)
}

func (p *past) forgeLedger(i int, change func(*v1alpha1.RemediationLedger)) {
	l := typed[v1alpha1.RemediationLedger](p.commits[i].After)
	change(l)
	p.commits[i].After = object(l)
}

// planBefore is the last write of the plan before a commit.
func (p *past) planBefore(i int) int {
	for ; i >= 0; i-- {
		if p.commits[i].Resource.Resource == "remediationplans" && p.commits[i].Subresource == "status" {
			return i
		}
	}
	return 0
}

// inState is the first write after which a step has a state.
func (p *past) inState(t *testing.T, step int, state v1alpha1.StepState) int {
	return p.where(t, func(c apiserver.Commit) bool {
		if c.Resource.Resource != "remediationplans" || c.Subresource != "status" {
			return false
		}
		steps := typed[v1alpha1.RemediationPlan](c.After).Status.Steps
		return len(steps) > step && steps[step].State == state
	})
}

// grantOf is the write of the ledger of the Environment that grants a step its place.
func (p *past) grantOf(t *testing.T, step int32) int {
	return p.where(t, func(c apiserver.Commit) bool {
		return c.Resource.Resource == "remediationledgers" && c.Name == environment && c.After != nil &&
			slices.ContainsFunc(typed[v1alpha1.RemediationLedger](c.After).Status.Entries, func(e v1alpha1.LedgerEntry) bool { return e.Step == step })
	})
}

// ledgers are the writes of the Environment's ledger.
func (p *past) ledgers() []int {
	var all []int
	for i, c := range p.commits {
		if c.Resource.Resource == "remediationledgers" && c.Name == environment && c.Subresource == "status" {
			all = append(all, i)
		}
	}
	return all
}

func (p *past) last() int { return p.planBefore(len(p.commits) - 1) }

// Every promise can be broken, and the judge says which.
func TestTheJudgeNamesTheBrokenPromise(t *testing.T) {
	Prepare()
	tests := map[string]struct {
		promise string
		forge   func(*testing.T, *past)
	}{
		"a step that writes twice": {"I1", func(t *testing.T, p *past) {
			i := p.effectOf(t, "web")
			p.commits = slices.Insert(p.commits, i+1, p.commits[i])
		}},
		"a write before its intent": {"I2", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.effectOf(t, "web")), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[0].Intent = nil })
		}},
		"a write over another object": {"I3", func(t *testing.T, p *past) {
			i := p.effectOf(t, "web")
			p.commits[i].Before = changed(p.commits[i].Before, func(o apiserver.Object) { metadata(o)["uid"] = "another" })
		}},
		"a write over other content": {"I3", func(t *testing.T, p *past) {
			i := p.effectOf(t, "web")
			p.commits[i].Before = changed(p.commits[i].Before, func(o apiserver.Object) { o["spec"] = deploymentSpec(imageElsewise, 7) })
		}},
		"more effects in an hour than the policy allows": {"I4", func(_ *testing.T, p *past) { p.tighten(func(s *v1alpha1.RemediationSafety) { s.MaxPerHour = 1 }) }},
		"more effects in a day than the policy allows":   {"I4", func(_ *testing.T, p *past) { p.tighten(func(s *v1alpha1.RemediationSafety) { s.MaxPerDay = 1 }) }},
		"an effect within the cooldown": {"I4", func(_ *testing.T, p *past) {
			p.tighten(func(s *v1alpha1.RemediationSafety) { s.Cooldown = &metav1.Duration{Duration: time.Hour} })
		}},
		"more steps at once than the policy allows": {"I4", func(_ *testing.T, p *past) { p.tighten(func(s *v1alpha1.RemediationSafety) { s.MaxConcurrent = 0 }) }},
		"a ledger that was written over": {"I4", func(_ *testing.T, p *past) {
			p.forgeLedger(p.ledgers()[3], func(l *v1alpha1.RemediationLedger) { l.Status.Sequence = 1 })
		}},
		"a ledger that forgets": {"I4", func(_ *testing.T, p *past) {
			all := p.ledgers()
			p.forgeLedger(all[len(all)-1], func(l *v1alpha1.RemediationLedger) { l.Status.Entries = nil })
		}},
		"a write after the plan was canceled": {"I5", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.effectOf(t, "web")), func(plan *v1alpha1.RemediationPlan) { plan.Status.Phase = v1alpha1.PlanCanceled })
		}},
		"a write while the plan is paused": {"I5", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.effectOf(t, "web")), func(plan *v1alpha1.RemediationPlan) { plan.Status.Phase = v1alpha1.PlanPaused })
		}},
		"a write after its step was fenced": {"I5", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.effectOf(t, "web")), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[0].State = v1alpha1.StepFenced })
		}},
		"a status from an executor that does not hold the plan": {"I6", func(t *testing.T, p *past) { p.commits[p.inState(t, 0, v1alpha1.StepIntent)].Client = "executor-b-1" }},
		"a takeover without an epoch": {"I6", func(t *testing.T, p *past) {
			i := p.inState(t, 0, v1alpha1.StepIntent)
			p.commits[i].Client = "executor-b-1"
			p.forge(i, func(plan *v1alpha1.RemediationPlan) { plan.Status.Holder = "executor-b-1" })
		}},
		"a step that goes back": {"I7", func(t *testing.T, p *past) {
			p.forge(p.inState(t, 0, v1alpha1.StepApplied), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[0].State = v1alpha1.StepReserved })
		}},
		"a plan that ended and goes on": {"I7", func(t *testing.T, p *past) {
			p.forge(p.inState(t, 0, v1alpha1.StepVerified), func(plan *v1alpha1.RemediationPlan) { plan.Status.Phase = v1alpha1.PlanFailed })
		}},
		"a grant while the breaker is open": {"I8", func(t *testing.T, p *past) { p.breaker(t, v1alpha1.BreakerOpen) }},
		"a grant beside the probe":          {"I8", func(t *testing.T, p *past) { p.breaker(t, v1alpha1.BreakerHalfOpen) }},
		"a breaker that closes without a verdict": {"I35", func(_ *testing.T, p *past) {
			p.w.verdicts = true
			long := metav1.NewTime(p.w.epoch.Add(-time.Hour))
			p.forgeLedger(p.ledgers()[1], func(l *v1alpha1.RemediationLedger) {
				l.Status.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: string(p.w.policyUID), State: v1alpha1.BreakerHalfOpen, LastOpenTime: &long, Probe: &v1alpha1.StepReference{PlanUID: "another"}}}
			})
		}},
		"a write of something else": {"I9", func(t *testing.T, p *past) {
			p.commits[p.effectOf(t, "web")].Name = "database"
		}},
		"a removal": {"I9", func(t *testing.T, p *past) { p.commits[p.effectOf(t, "web")].After = nil }},
		"an object that was made and not to be made": {"I10", func(t *testing.T, p *past) { p.commits[p.effectOf(t, "web")].Before = nil }},
		"a write that no ledger has granted": {"I11", func(_ *testing.T, p *past) {
			for _, i := range p.ledgers() {
				p.forgeLedger(i, func(l *v1alpha1.RemediationLedger) { l.Status.Entries = nil })
			}
		}},
		"a write outside of the hours": {"I16", func(_ *testing.T, p *past) {
			p.w.hours = &hours{opens: time.Hour, closes: 2 * time.Hour, again: 3 * time.Hour, ends: 4 * time.Hour}
		}},
		"a write that was sent before the hours, and held by nobody": {"I16", func(t *testing.T, p *past) {
			c := &p.commits[p.effectOf(t, "web")]
			opens := c.At.Sub(p.w.midnight) + 2*tolerance
			p.w.hours = &hours{opens: opens, closes: opens + time.Hour, again: 3 * time.Hour, ends: 4 * time.Hour}
		}},
		"two plans with one target": {"I12", func(t *testing.T, p *past) {
			i := p.inState(t, 0, v1alpha1.StepApplied)
			other := p.commits[i]
			other.Name = "other"
			other.After = changed(other.After, func(o apiserver.Object) { metadata(o)["name"], metadata(o)["uid"] = "other", "other" })
			p.commits = slices.Insert(p.commits, i, other, other)
		}},
		"a record that is gone": {"I13", func(_ *testing.T, p *past) { p.w.evidence.Remove(p.w.evidence.Names()[1]) }},
		"the last record is cut off": {"I13", func(_ *testing.T, p *past) {
			names := p.w.evidence.Names()
			p.w.evidence.Remove(names[len(names)-1])
		}},
		"a record that was altered": {"I13", func(t *testing.T, p *past) {
			name := p.w.evidence.Names()[1]
			data, err := p.w.evidence.Read(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			p.w.evidence.Put(name, []byte(strings.Replace(string(data), "payload\":\"e", "payload\":\"f", 1)))
		}},
		"a record of a write that was not": {"I13", func(t *testing.T, p *past) {
			i := p.effectOf(t, "web")
			p.commits = slices.Delete(p.commits, i, i+1)
		}},
		"a record of a decision that never was": {"I13", func(_ *testing.T, p *past) {
			for i := range p.commits {
				if after := p.commits[i].After; after != nil && p.commits[i].Resource.Resource == "remediationplans" {
					p.commits[i].After = changed(after, func(o apiserver.Object) {
						if status, ok := o["status"].(map[string]any); ok && status["phase"] == "Created" {
							status["phase"] = "Scheduled"
						}
					})
				}
			}
		}},
		"a record of another version": {"I13", func(t *testing.T, p *past) { p.commits[p.effectOf(t, "web")].Revision++ }},
		"a step that wrote and says that it did not": {"I13", func(_ *testing.T, p *past) {
			p.forge(p.last(), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[0].State = v1alpha1.StepSkipped })
		}},
		"a plan that does not end": {"L1", func(_ *testing.T, p *past) {
			p.forge(p.last(), func(plan *v1alpha1.RemediationPlan) { plan.Status.Phase = v1alpha1.PlanRunning })
		}},
		"a target that is verified and not as desired": {"L1", func(t *testing.T, p *past) {
			i := p.effectOf(t, "web")
			p.commits[i].After = changed(p.commits[i].After, func(o apiserver.Object) { o["spec"] = deploymentSpec(imageElsewise, 2) })
		}},
		"an intent that stays in the open": {"L2", func(_ *testing.T, p *past) {
			p.forge(p.last(), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[1].State = v1alpha1.StepIntent })
		}},
		"a step that nobody has settled": {"L2", func(_ *testing.T, p *past) {
			p.forge(p.last(), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[1].Settled = "" })
		}},
		"a place in the ledger that nobody gives back": {"L2", func(_ *testing.T, p *past) {
			all := p.ledgers()
			p.forgeLedger(all[len(all)-1], func(l *v1alpha1.RemediationLedger) { l.Status.Entries[0].CompletionTime = nil })
		}},
		"an end that was told to nobody": {"L4", func(_ *testing.T, p *past) { p.w.announced.Clear() }},
		"a target that is written again and again": {"L3", func(t *testing.T, p *past) {
			i := p.effectOf(t, "web")
			p.commits = slices.Insert(p.commits, i+1, p.commits[i], p.commits[i])
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quiet(scenario{batches: [][]int32{{0}, {1}}})
				if before := newJudge(p.w, p.commits, true); len(before.broken) > 0 || before.seen["effect"] != 2 {
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

func changed(o apiserver.Object, how func(apiserver.Object)) apiserver.Object {
	next := object(o)
	how(next)
	return next
}

// breaker puts a breaker into the ledger as it was before the second grant.
func (p *past) breaker(t *testing.T, state v1alpha1.BreakerState) {
	t.Helper()
	all := p.ledgers()
	grant := slices.IndexFunc(all, func(i int) bool {
		return len(typed[v1alpha1.RemediationLedger](p.commits[i].After).Status.Entries) == 2
	})
	if grant < 1 {
		t.Fatal("there is no second grant")
	}
	opened := metav1.NewTime(p.commits[all[grant]].At)
	p.forgeLedger(all[grant-1], func(l *v1alpha1.RemediationLedger) {
		l.Status.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: string(p.w.policyUID), State: state, LastOpenTime: &opened}}
	})
}

// The records of a quiet run are as many as there are decisions and steps: a judge
// that is given nothing to judge finds nothing.
func TestAQuietRunLeavesItsRecords(t *testing.T) {
	Prepare()
	synctest.Test(t, func(t *testing.T) {
		p := quiet(scenario{batches: [][]int32{{0}, {1}}})
		j := newJudge(p.w, p.commits, true)
		report, records := j.verified()
		kinds := map[evidence.Kind]int{}
		for _, r := range records {
			kinds[r.Kind]++
		}
		if report == nil || len(report.Problems) > 0 || kinds[evidence.KindStep] != 2 || kinds[evidence.KindPlanFinished] != 1 {
			t.Errorf("got the records %v", kinds)
		}
	})
}
