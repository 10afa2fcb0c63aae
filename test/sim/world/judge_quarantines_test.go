// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// quarantined is the first write that begins a quarantine.
func (p *past) quarantined(t *testing.T) int { return p.where(t, beginsQuarantine) }

// forgeBaseline changes a Baseline as a commit left it.
func (p *past) forgeBaseline(i int, change func(*v1alpha1.Baseline)) {
	b := typed[v1alpha1.Baseline](p.commits[i].After)
	change(b)
	p.commits[i].After = object(b)
}

// Every promise about a quarantine can be broken, and the judge says which.
func TestTheJudgeNamesTheBrokenPromiseOfAQuarantine(t *testing.T) {
	Prepare()
	tests := map[string]struct {
		promise string
		forge   func(*testing.T, *past)
	}{
		"a quarantine that begins twice": {"I1", func(t *testing.T, p *past) {
			i := p.quarantined(t)
			p.commits = slices.Insert(p.commits, i+1, p.commits[i])
		}},
		"a quarantine without an intent": {"I2", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.quarantined(t)), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[0].Intent = nil })
		}},
		"a quarantine over another version": {"I3", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.quarantined(t)), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[0].Intent.ResourceVersion = "1" })
		}},
		"a quarantine over another drift": {"I3", func(t *testing.T, p *past) {
			i := p.quarantined(t)
			p.commits[i].Before = changed(p.commits[i].Before, func(o apiserver.Object) {
				o["status"].(map[string]any)["observed"].(map[string]any)["hash"] = "another"
			})
		}},
		"a quarantine of a canceled plan": {"I5", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.quarantined(t)), func(plan *v1alpha1.RemediationPlan) { plan.Status.Phase = v1alpha1.PlanCanceled })
		}},
		"a quarantine of no plan": {"I32", func(t *testing.T, p *past) {
			p.forgeBaseline(p.quarantined(t), func(b *v1alpha1.Baseline) { b.Status.Quarantine.Token = "of-nothing" })
		}},
		"a person who begins a quarantine": {"I32", func(t *testing.T, p *past) { p.commits[p.quarantined(t)].User = "mallory" }},
		"an executor that ends a quarantine": {"I32", func(t *testing.T, p *past) {
			p.afterwards(t, func(b *v1alpha1.Baseline) {
				b.Status.EndedQuarantine = &v1alpha1.EndedQuarantine{Token: b.Status.Quarantine.Token, EndTime: metav1.Now(), Reason: v1alpha1.QuarantineInSync}
				b.Status.Quarantine = nil
			})
		}},
		"a quarantine of another object at the end": {"I33", func(t *testing.T, p *past) {
			p.afterwards(t, func(b *v1alpha1.Baseline) { b.Status.Quarantine.UID = "another" })
		}},
		"a quarantine of what is authorized at the end": {"I33", func(t *testing.T, p *past) {
			p.afterwards(t, func(b *v1alpha1.Baseline) { b.Spec.Authorized.Hash = b.Status.Observed.Hash })
		}},
		"a quarantine of the last ready endpoint": {"I34", func(t *testing.T, p *past) {
			p.insert(t, 1+p.where(t, func(c apiserver.Commit) bool { return c.Resource.Resource == "endpointslices" }), "endpointslices", func(o apiserver.Object) {
				o["endpoints"] = object(struct{ Endpoints any }{endpointsOf([]backend{{"web", true}, {bystander, false}})})["Endpoints"]
			})
		}},
		"a quarantine where no mesh is": {"I34", func(_ *testing.T, p *past) { p.w.mesh = false }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := scenario{action: v1alpha1.ActionQuarantine, batches: [][]int32{{0}}}
				c.mesh = true
				p := quiet(c)
				if before := newJudge(p.w, p.commits, true); len(before.broken) > 0 || before.seen["effect Quarantine"] != 1 || before.seen["quarantine that stands over a drift"] != 1 {
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

// afterwards appends a write of the Baseline, by the executor that has written the quarantine.
func (p *past) afterwards(t *testing.T, change func(*v1alpha1.Baseline)) {
	t.Helper()
	last := p.commits[p.quarantined(t)]
	for _, c := range p.commits {
		if c.Resource.Resource == "baselines" && c.Name == last.Name {
			last = c
		}
	}
	last.User, last.Before = Executor, last.After
	p.commits = append(p.commits, last)
	p.forgeBaseline(len(p.commits)-1, change)
}

// I31 can be broken before the intent, and by the executor that takes an intent over.
func TestTheJudgeNamesAWriteBesideARunOfARelease(t *testing.T) {
	Prepare()
	begin := func(t *testing.T, p *past, before int) {
		t.Helper()
		p.insert(t, before, "abreleases", func(o apiserver.Object) { o["status"] = runOf("Running")["status"] })
	}
	tests := map[string]func(*testing.T, *past){
		"a run that begins before the grant": func(t *testing.T, p *past) { begin(t, p, p.grantOf(t, 0)) },
		"a run that begins before a takeover": func(t *testing.T, p *past) {
			i := p.inState(t, 0, v1alpha1.StepIntent)
			takeover := p.commits[i]
			takeover.Client = "executor-b-1"
			takeover.After = changed(takeover.After, func(o apiserver.Object) { o["status"].(map[string]any)["holder"] = takeover.Client })
			p.commits = slices.Insert(p.commits, i+1, takeover)
			begin(t, p, i+1)
			p.commits[p.effectOf(t, "web")].Client = takeover.Client
		},
	}
	for name, forge := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := scenario{batches: [][]int32{{0}}}
				c.releases = true
				p := quiet(c)
				if before := newJudge(p.w, p.commits, true); len(before.broken) > 0 || before.seen["effect"] != 1 {
					t.Fatalf("the run itself: %v, %v", before.broken, before.seen)
				}
				forge(t, p)
				got := newJudge(p.w, p.commits, true).broken
				if !slices.ContainsFunc(got, func(b Breach) bool { return b.Promise == "I31" }) {
					t.Errorf("got %v, want I31", got)
				}
			})
		})
	}
}
