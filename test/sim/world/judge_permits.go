// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// permit is what a step needs for its write, as the API server has had it since the ledger of the
// Environment granted its place. The executor reads each of them live between the grant and the intent. So for each
// there must have been a moment at which it let the step through.
type permit struct {
	policy, health, wish, calm, alone, free, served bool
}

// permits are judged by the states of others at each moment.
type permits struct {
	policy    *v1alpha1.RemediationPolicy
	baselines map[string]*v1alpha1.Baseline
	// guard is nil before it is stored.
	guard *v1alpha1.ClusterSpecGuard
	// runs are the targets that a run of a release has.
	runs map[string]bool
	// ready are the workloads that have an endpoint, and whether it is ready.
	ready map[string]bool
	// granted steps that have no intent yet, and steps with an intent that another executor has
	// taken over, by their identity.
	granted, intended map[string]*permit
	// safety and health are all settings that the policy has had.
	safety []v1alpha1.RemediationSafety
	health []time.Duration
}

// others looks at a write of what lets steps through.
func (j *judge) others(c apiserver.Commit) {
	switch c.Resource.Resource {
	case "remediationpolicies":
		j.permits.policy = nil
		if c.After != nil {
			j.permits.policy = typedOf[v1alpha1.RemediationPolicy](j.w, c.After)
			j.permits.note(&j.permits.policy.Spec)
		}
	case "baselines":
		delete(j.permits.baselines, c.Name)
		if c.After != nil {
			j.permits.baselines[c.Name] = typedOf[v1alpha1.Baseline](j.w, c.After)
		}
	case "clusterspecguards":
		j.permits.guard = nil
		if c.After != nil {
			j.permits.guard = typedOf[v1alpha1.ClusterSpecGuard](j.w, c.After)
		}
	case "endpointslices":
		j.endpoints(c)
	case "abreleases":
		j.release(c)
	case "remediationledgers":
	default:
		return
	}
	for _, name := range planNames(j.plans) {
		p := j.plans[name]
		for i := range p.Status.Steps {
			id := stepID(string(p.UID), int32(i)) //nolint:gosec // few
			for _, granted := range []*permit{j.permits.granted[id], j.permits.intended[id]} {
				if granted != nil {
					j.permit(granted, p, i)
				}
			}
		}
	}
}

// note keeps the settings by which limits are judged: a policy that changes may loosen them.
func (p *permits) note(spec *v1alpha1.RemediationPolicySpec) {
	p.safety = append(p.safety, spec.Safety)
	if d := spec.Health.Stabilization; d != nil {
		p.health = append(p.health, d.Duration)
	}
}

// permit adds what lets a step through at this moment.
func (j *judge) permit(granted *permit, p *v1alpha1.RemediationPlan, step int) {
	policy := j.permits.policy
	same := policy != nil && policy.Spec.Mode == v1alpha1.PolicyModeActive && planner.Digest(&policy.Spec) == p.Spec.Plan.Policy.Digest
	granted.policy = granted.policy || same && !j.halted()
	granted.health = granted.health || policy != nil && enoughHealthy(policy)
	granted.wish = granted.wish || j.wished(p, step)
	granted.calm = granted.calm || !j.frozen(&p.Spec.Plan.Targets[step])
	granted.served = granted.served || !j.w.quarantines() || j.servable(&p.Spec.Plan.Targets[step])
	granted.free = granted.free || !j.permits.runs[p.Spec.Plan.Targets[step].Name]
	granted.alone = granted.alone || !j.contended(&p.Spec.Plan.Targets[step])
}

// contended says that writers fight over a target. No writers fight over what is gone: there the
// assessor takes the contention back.
func (j *judge) contended(t *v1alpha1.PlanTarget) bool {
	b := j.permits.baselines[t.BaselineName]
	return t.UID != "" && b != nil && b.Status.Contention != nil
}

// frozen says that the guard sees a mass drift that the drift of a target belongs to.
func (j *judge) frozen(t *v1alpha1.PlanTarget) bool {
	guard := j.permits.guard
	if guard == nil || guard.Status.MassDrift == nil {
		return guard != nil && v1alpha1.IsDegradedFor(guard.Status.Conditions, v1alpha1.ReasonMassDrift)
	}
	mass := guard.Status.MassDrift
	return mass.EverythingStartTime != nil ||
		slices.ContainsFunc(mass.Namespaces, func(n v1alpha1.FrozenNamespace) bool { return n.Name == namespace }) ||
		slices.ContainsFunc(mass.Causes, func(c v1alpha1.FrozenCause) bool { return slices.Contains(t.Paths, c.Path) })
}

// halted says that a person has halted everything in one of the ledgers.
func (j *judge) halted() bool {
	for _, name := range ledgerNames {
		if l := j.ledgers[name]; l != nil && l.Spec.Halt != nil {
			return true
		}
	}
	return false
}

// enoughHealthy counts by itself: three quarters of the others, or what the policy asks for.
func enoughHealthy(policy *v1alpha1.RemediationPolicy) bool {
	if policy.Status.Digest != planner.Digest(&policy.Spec) {
		return true
	}
	healthy, all := policy.Status.Targets.Healthy, policy.Status.Targets.Healthy+policy.Status.Targets.Unhealthy
	return healthy*100 >= all*max(75, policy.Spec.Safety.MinHealthyPercent)
}

// wished says that the state that a step leads to is the authorized one, and that no person
// has accepted what drifted.
func (j *judge) wished(p *v1alpha1.RemediationPlan, step int) bool {
	t := &p.Spec.Plan.Targets[step]
	b := j.permits.baselines[t.BaselineName]
	switch {
	case b == nil || b.Spec.Authorized == nil:
		return false
	case b.Spec.Accept != nil && b.Spec.Accept.Hash == t.DriftedHash:
		return false
	case t.Action == v1alpha1.ActionRollback:
		return b.Status.LastReady != nil && b.Status.LastReady.Hash == t.RevisionHash
	}
	return b.Spec.Authorized.Hash == t.RevisionHash
}

// permitted: I14, I15, I17, I24, I25, I31 and I34, for the steps that a status grants, or gives an intent.
func (j *judge) permitted(c apiserver.Commit, before, next *v1alpha1.RemediationPlan) {
	for i := range next.Status.Steps {
		was, is := stateOf(before, i), next.Status.Steps[i].State
		id := stepID(string(next.UID), int32(i)) //nolint:gosec // few
		switch {
		case is == v1alpha1.StepIntent && unbegan(was):
			j.hadPermits(c, next, i, j.permits.granted[id])
			delete(j.permits.granted, id)
		case is == v1alpha1.StepReserved, is == v1alpha1.StepPlanned && was == is: // it may have its place
		default:
			j.unpermitted(id)
			delete(j.permits.granted, id)
		}
	}
}

// unbegan says that a step has written nothing, and intends nothing.
func unbegan(state v1alpha1.StepState) bool {
	return state == v1alpha1.StepPlanned || state == v1alpha1.StepReserved
}

// placed begins the permits of the steps to which the ledger of the Environment has granted a place, and ends
// those of places that are given back. The status may tell of a grant later, with the intent.
func (j *judge) placed(before, next *v1alpha1.RemediationLedger) {
	for i := range next.Status.Entries {
		entry := &next.Status.Entries[i]
		was := find(before, entry)
		step := j.stepOf(entry)
		if step == nil || !unbegan(step.State) || entry.CompletionTime != nil || was != nil && was.Epoch == entry.Epoch {
			continue
		}
		granted := &permit{}
		j.permit(granted, j.plans[entry.PlanName], int(entry.Step))
		j.permits.granted[stepID(entry.PlanUID, entry.Step)] = granted
	}
	for i := range before.Status.Entries {
		if entry := &before.Status.Entries[i]; find(next, entry) == nil { // the step is deferred
			id := stepID(entry.PlanUID, entry.Step)
			j.unpermitted(id)
			delete(j.permits.granted, id)
		}
	}
}

// unpermitted counts the steps that ended because nothing let them through.
func (j *judge) unpermitted(id string) {
	granted := j.permits.granted[id]
	if granted == nil {
		return
	}
	for what, had := range map[string]bool{"policy": granted.policy, "health": granted.health, "wish": granted.wish, "mass drift": granted.calm, "fight": granted.alone, "release": granted.free, "mesh": granted.served} {
		if !had {
			j.seen["granted step that its "+what+" stopped"]++
		}
	}
}

func stateOf(p *v1alpha1.RemediationPlan, step int) v1alpha1.StepState {
	if step >= len(p.Status.Steps) {
		return ""
	}
	return p.Status.Steps[step].State
}

func (j *judge) hadPermits(c apiserver.Commit, p *v1alpha1.RemediationPlan, step int, had *permit) {
	switch {
	case had == nil:
		return
	case !had.policy:
		j.breaks("I14", c.Revision, "step %d of %s has an intent, and its policy was changed, halted or gone since the step was granted", step, p.Name)
	case !had.health:
		j.breaks("I17", c.Revision, "step %d of %s has an intent, and too few others were healthy since the step was granted", step, p.Name)
	case !had.alone:
		j.breaks("I24", c.Revision, "step %d of %s has an intent, and writers fought over its target since the step was granted", step, p.Name)
	case !had.calm:
		j.breaks("I25", c.Revision, "step %d of %s has an intent, and its guard saw a mass drift since the step was granted", step, p.Name)
	case !had.free:
		j.breaks("I31", c.Revision, "step %d of %s has an intent, and a run of a release had its target since the step was granted", step, p.Name)
	case !had.served:
		j.breaks("I34", c.Revision, "step %d of %s has an intent, and its target had the last ready endpoint, or none, since the step was granted", step, p.Name)
	case !had.wish:
		j.breaks("I15", c.Revision, "step %d of %s has an intent, and a person accepted the drift, or another state was authorized, before the step was granted", step, p.Name)
	}
}

// loosest limits are those that the policy has had, each at its loosest.
func (j *judge) loosest() v1alpha1.RemediationSafety {
	out := j.w.policy.Spec.Safety
	for _, s := range j.permits.safety {
		out.MaxConcurrent, out.MaxPerHour, out.MaxPerDay = max(out.MaxConcurrent, s.MaxConcurrent), max(out.MaxPerHour, s.MaxPerHour), max(out.MaxPerDay, s.MaxPerDay)
		if s.Cooldown == nil || out.Cooldown != nil && s.Cooldown.Duration < out.Cooldown.Duration {
			out.Cooldown = s.Cooldown
		}
		if d := s.CircuitBreaker.OpenDuration; d != nil && d.Duration < out.CircuitBreaker.OpenDuration.Duration {
			out.CircuitBreaker.OpenDuration = d
		}
	}
	return out
}
