// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// tighten gives the policy other limits from the beginning.
func (p *past) tighten(how func(*v1alpha1.RemediationSafety)) {
	how(&p.w.policy.Spec.Safety)
	for i := range p.commits {
		if p.commits[i].Resource.Resource == "remediationpolicies" {
			policy := typed[v1alpha1.RemediationPolicy](p.commits[i].After)
			how(&policy.Spec.Safety)
			p.commits[i].After = object(policy)
		}
	}
}

// insert puts a write of an object before a commit: the first write of a kind, changed. Later writes of
// the object keep the change.
func (p *past) insert(t *testing.T, at int, resource string, how func(apiserver.Object)) {
	t.Helper()
	c := p.commits[p.where(t, func(c apiserver.Commit) bool { return c.Resource.Resource == resource })]
	c.User, c.Client, c.At = "alice", "alice", p.commits[at].At
	c.Before, c.After = c.After, changed(c.After, how)
	for i := at; i < len(p.commits); i++ {
		if later := &p.commits[i]; later.Resource == c.Resource && later.Name == c.Name && later.After != nil {
			later.After = changed(later.After, how)
		}
	}
	p.commits = slices.Insert(p.commits, at, c)
}

func TestTheJudgeNamesTheBrokenPromiseOfAStep(t *testing.T) {
	Prepare()
	before := func(t *testing.T, p *past, how func(*v1alpha1.RemediationPlanStatus)) {
		t.Helper()
		p.forge(p.planBefore(p.grantOf(t, 1)), func(plan *v1alpha1.RemediationPlan) { how(&plan.Status) })
	}
	tests := map[string]struct {
		promise string
		forge   func(*testing.T, *past)
	}{
		"a policy that was changed before the grant": {"I14", func(t *testing.T, p *past) {
			p.insert(t, p.grantOf(t, 1), "remediationpolicies", func(o apiserver.Object) { specOf(o)["minimumSeverity"] = "Critical" })
		}},
		"a policy that was halted before the grant": {"I14", func(t *testing.T, p *past) {
			p.insert(t, p.grantOf(t, 1), "remediationpolicies", func(o apiserver.Object) { specOf(o)["mode"] = "Halted" })
		}},
		"a ledger that was halted before the grant": {"I14", func(t *testing.T, p *past) {
			p.insert(t, p.grantOf(t, 1), "remediationledgers", func(o apiserver.Object) {
				o["spec"] = map[string]any{"halt": map[string]any{"requestedBy": "alice", "reason": "stop"}}
			})
		}},
		"an accept before the grant": {"I15", func(t *testing.T, p *past) {
			p.insert(t, p.grantOf(t, 0), "baselines", func(o apiserver.Object) {
				specOf(o)["accept"] = map[string]any{"hash": p.w.targets[0].driftedHash, "requestedBy": "alice"}
			})
		}},
		"an authorization before the grant": {"I15", func(t *testing.T, p *past) {
			p.insert(t, p.grantOf(t, 0), "baselines", func(o apiserver.Object) {
				specOf(o)["authorized"] = object(p.w.another(p.w.targets[0]))
			})
		}},
		"a fight before the grant": {"I24", func(t *testing.T, p *past) {
			p.insert(t, p.grantOf(t, 0), "baselines", func(o apiserver.Object) {
				o["status"].(map[string]any)["contention"] = map[string]any{"startTime": "2026-01-01T00:00:00Z", "with": []any{"bot"}}
			})
		}},
		"a mass drift before the grant": {"I25", func(t *testing.T, p *past) {
			p.insert(t, p.grantOf(t, 1), "clusterspecguards", func(o apiserver.Object) {
				o["status"] = map[string]any{"massDrift": map[string]any{"namespaces": []any{map[string]any{"name": namespace, "startTime": "2026-01-01T00:00:00Z"}}}}
			})
		}},
		"too few healthy others before the grant": {"I17", func(t *testing.T, p *past) {
			p.insert(t, p.grantOf(t, 1), "remediationpolicies", func(o apiserver.Object) { o["status"] = healthOf(o, 1, 3)["status"] })
		}},
		"a step after a failure": {"I18", func(t *testing.T, p *past) {
			before(t, p, func(s *v1alpha1.RemediationPlanStatus) { s.Steps[0].State = v1alpha1.StepFailed })
		}},
		"a batch before the end of the one before": {"I18", func(t *testing.T, p *past) {
			before(t, p, func(s *v1alpha1.RemediationPlanStatus) { s.Steps[0].CompletionTime = nil })
		}},
		"a batch before the end of the pause": {"I18", func(t *testing.T, p *past) {
			p.forge(p.inState(t, 1, v1alpha1.StepIntent), func(plan *v1alpha1.RemediationPlan) {
				plan.Spec.Plan.Batches[0].DelayAfter = &metav1.Duration{Duration: time.Hour}
			})
		}},
		"a write that leads elsewhere than its dry run": {"I19", func(t *testing.T, p *past) {
			i := p.effectOf(t, "web")
			p.commits[i].After = changed(p.commits[i].After, func(o apiserver.Object) { o["spec"] = deploymentSpec(imageElsewise, 2) })
		}},
		"a success that counts as a failure": {"I20", func(t *testing.T, p *past) {
			p.forgeLedger(p.settled(t, 1), func(l *v1alpha1.RemediationLedger) {
				l.Status.Entries[len(l.Status.Entries)-1].Outcome = v1alpha1.LedgerFailed
				l.Status.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: string(p.w.policyUID), State: v1alpha1.BreakerClosed, Failures: 1}}
			})
		}},
		"a failure that does not count": {"I20", func(t *testing.T, p *past) {
			p.failLast(t, func(*v1alpha1.RemediationLedger) {})
		}},
		"failures that do not open the breaker": {"I20", func(t *testing.T, p *past) {
			p.failLast(t, func(l *v1alpha1.RemediationLedger) {
				l.Status.Entries[len(l.Status.Entries)-1].FailureThreshold = 1
				l.Status.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: string(p.w.policyUID), State: v1alpha1.BreakerClosed, Failures: 1}}
			})
		}},
		"a place that a step gives back that wrote": {"I20", func(t *testing.T, p *past) {
			p.forgeLedger(p.settled(t, 1), func(l *v1alpha1.RemediationLedger) { l.Status.Entries = l.Status.Entries[:1] })
		}},
		"a place and a target of a plan that waits": {"I21", func(t *testing.T, p *past) {
			p.forge(p.inState(t, 0, v1alpha1.StepIntent), func(plan *v1alpha1.RemediationPlan) {
				s := &plan.Status
				s.Phase, s.DeferralReason, s.StartTime = v1alpha1.PlanDeferred, "the window is closed", nil
				s.Steps[0].State, s.Steps[0].StartTime = v1alpha1.StepPlanned, nil
			})
		}},
		"a target that a plan holds that has ended": {"I21", func(t *testing.T, p *past) {
			p.commits = slices.DeleteFunc(p.commits, func(c apiserver.Commit) bool {
				return c.Resource.Resource == "baselines" && c.User == Executor && typed[v1alpha1.Baseline](c.After).Status.PlanName == ""
			})
		}},
		"a target that is verified and not healthy": {"I22", func(t *testing.T, p *past) {
			p.forge(p.planBefore(p.inState(t, 0, v1alpha1.StepVerified)-1), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[0].HealthyTime = nil })
		}},
		"a record that the store forgot, and no head tells of": {"I26", func(t *testing.T, p *past) {
			names := slices.DeleteFunc(p.w.evidence.Names(), func(name string) bool { _, _, isRecord := evidence.ParseName(name); return !isRecord })
			p.w.forget(names[len(names)-1])
			if len(p.w.forgotten) != 1 {
				t.Fatalf("the store forgot %d records, want 1", len(p.w.forgotten))
			}
			all := p.ledgers()
			p.commits = append(p.commits, p.commits[all[len(all)-1]])
			p.forgeLedger(len(p.commits)-1, func(l *v1alpha1.RemediationLedger) {
				l.Status.Sequence++
				l.Status.Chains[0].Sequence--
				l.Status.Chains[0].Digest = ""
			})
		}},
		"an end that no record tells": {"I23", func(_ *testing.T, p *past) {
			other := p.commits[p.last()]
			other.Name, other.Subresource = "other", ""
			other.After = changed(other.After, func(o apiserver.Object) { metadata(o)["name"], metadata(o)["uid"] = "other", "other" })
			p.commits = append(p.commits, other)
		}},
		"an end that its record tells otherwise": {"I23", func(_ *testing.T, p *past) {
			p.forge(p.last(), func(plan *v1alpha1.RemediationPlan) { plan.Status.Phase = v1alpha1.PlanFailed })
		}},
		"a cancellation that nothing follows": {"L5", func(t *testing.T, p *past) {
			i := p.inState(t, 0, v1alpha1.StepIntent)
			canceled := p.commits[i]
			canceled.Subresource = ""
			canceled.After = changed(canceled.After, func(o apiserver.Object) { specOf(o)["control"] = map[string]any{"verb": "Cancel"} })
			p.commits = slices.Insert(p.commits, i+1, canceled)
			for k := i + 2; k < len(p.commits); k++ {
				p.commits[k].At = p.commits[k].At.Add(time.Hour)
				if p.commits[k].Resource.Resource == "remediationplans" {
					p.commits[k].After = changed(p.commits[k].After, func(o apiserver.Object) { specOf(o)["control"] = map[string]any{"verb": "Cancel"} })
				}
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quiet(scenario{batches: [][]int32{{0}, {1}}})
				test.forge(t, p)
				got := newJudge(p.w, p.commits, true).broken
				if !slices.ContainsFunc(got, func(b Breach) bool { return b.Promise == test.promise }) {
					t.Errorf("got %v, want %s", got, test.promise)
				}
			})
		})
	}
}

// failLast has the last step of the plan fail, in the plan and in the ledger.
func (p *past) failLast(t *testing.T, how func(*v1alpha1.RemediationLedger)) {
	t.Helper()
	at := p.settled(t, 1)
	p.forge(p.planBefore(at), func(plan *v1alpha1.RemediationPlan) { plan.Status.Steps[1].State = v1alpha1.StepFailed })
	p.forgeLedger(at, func(l *v1alpha1.RemediationLedger) {
		l.Status.Entries[len(l.Status.Entries)-1].Outcome = v1alpha1.LedgerFailed
		how(l)
	})
}

// settled is the first write of the Environment's ledger after which a step has ended there.
func (p *past) settled(t *testing.T, step int) int {
	t.Helper()
	return p.where(t, func(c apiserver.Commit) bool {
		if c.Resource.Resource != "remediationledgers" || c.Name != environment || c.After == nil {
			return false
		}
		entries := typed[v1alpha1.RemediationLedger](c.After).Status.Entries
		return len(entries) > step && entries[step].CompletionTime != nil
	})
}
