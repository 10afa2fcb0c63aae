// SPDX-License-Identifier: Apache-2.0

package world

import (
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// quarantine looks at a write of a Baseline that begins or ends a quarantine.
func (j *judge) quarantine(c apiserver.Commit) {
	before, next := j.quarantineIn(c.Before), j.quarantineIn(c.After)
	switch {
	case before == nil && next == nil, before != nil && next != nil && before.Token == next.Token:
	case next == nil:
		j.quarantineEnds(c, before)
	default:
		j.quarantineBegins(c, next)
	}
	if c.User == Executor && c.Before != nil && c.After != nil {
		if typedOf[v1alpha1.Baseline](j.w, c.After).Status.Fences > typedOf[v1alpha1.Baseline](j.w, c.Before).Status.Fences {
			j.seen["fence of a Baseline"]++
		}
	}
}

func (j *judge) quarantineIn(o apiserver.Object) *v1alpha1.Quarantine {
	if o == nil {
		return nil
	}
	return typedOf[v1alpha1.Baseline](j.w, o).Status.Quarantine
}

// quarantineBegins: the promises about the effect of a step hold for a quarantine, too. The
// Baseline stands for the target (I3).
func (j *judge) quarantineBegins(c apiserver.Commit, q *v1alpha1.Quarantine) {
	plan, step := j.byToken(q.Token)
	if plan == nil || c.User != Executor {
		j.breaks("I32", c.Revision, "%s begins a quarantine of %s that belongs to no plan: %+v", c.User, c.Name, q)
		return
	}
	e := effect{c, plan, step}
	j.seen["effect"]++
	j.seen["effect Quarantine"]++
	j.once(e)
	j.intended(e)
	j.overDrift(e)
	j.within(e)
	j.inHours(e)
	j.notEnded(e)
	j.granted(e)
	j.beside(e)
	j.effects = append(j.effects, e)
}

// byToken is the step that a quarantine names.
func (j *judge) byToken(token string) (*v1alpha1.RemediationPlan, int32) {
	for _, name := range planNames(j.plans) {
		p := j.plans[name]
		for i := range p.Spec.Plan.Targets {
			if protocol.Token(p, int32(i)) == token { //nolint:gosec // few
				return p, int32(i) //nolint:gosec // few
			}
		}
	}
	return nil, 0
}

// overDrift: I3 for a quarantine. The Baseline is of the version that the intent names, and tells
// of the drift that the plan is about.
func (j *judge) overDrift(e effect) {
	intent, planned := e.status().Intent, &e.plan.Spec.Plan.Targets[e.step]
	b := typedOf[v1alpha1.Baseline](j.w, e.Before)
	switch {
	case intent == nil:
	case b.ResourceVersion != intent.ResourceVersion:
		j.breaks("I3", e.Revision, "it writes version %s of Baseline %s; the intent names %s", b.ResourceVersion, e.Name, intent.ResourceVersion)
	case b.Status.State != v1alpha1.StateDrifted || b.Status.Observed.Hash != planned.DriftedHash || b.Status.Observed.UID != planned.UID:
		j.breaks("I3", e.Revision, "the drift of Baseline %s is not the one of the plan: it is %s, with %+v", e.Name, b.Status.State, b.Status.Observed)
	}
}

// quarantineEnds: I32. The assessor alone ends a quarantine, and leaves its token.
func (j *judge) quarantineEnds(c apiserver.Commit, q *v1alpha1.Quarantine) {
	if c.After == nil {
		j.seen["quarantine of a Baseline that is deleted"]++
		return
	}
	ended := typedOf[v1alpha1.Baseline](j.w, c.After).Status.EndedQuarantine
	if c.User != Assessor || ended == nil || ended.Token != q.Token {
		j.breaks("I32", c.Revision, "%s ends the quarantine of %s, and leaves %+v", c.User, c.Name, ended)
		return
	}
	j.seen["quarantine that ended: "+string(ended.Reason)]++
}

// remains: I33. At the end no quarantine stands over an object that is as authorized, gone or
// another one. In a namespace that is being deleted an assessor can store nothing new.
func (j *judge) remains(ended bool) {
	if !j.w.quarantines() || !ended || j.w.terminating() {
		return
	}
	for _, t := range j.w.targets {
		b := j.permits.baselines[t.baseline]
		if b == nil || b.Status.Quarantine == nil {
			continue
		}
		hash, uid := j.lastHash(t), metadata(j.w.Server.Look(t.gvk.Group, t.resource, namespace, t.name))["uid"]
		switch {
		case b.Status.State == v1alpha1.StateUnknown: // what was authorized is lost: no data is never a finding
			j.seen["quarantine under a state that is not known"]++
		case hash == specguard.HashAbsent:
			j.breaks("I33", 0, "%s is gone, and in quarantine", t.name)
		case uid != b.Status.Quarantine.UID:
			j.breaks("I33", 0, "%s is another object than the one that was put into quarantine", t.name)
		case b.Spec.Authorized != nil && b.Spec.Authorized.Hash == hash:
			j.breaks("I33", 0, "%s is as authorized, and in quarantine", t.name)
		default:
			j.seen["quarantine that stands over a drift"]++
		}
	}
}

// endpoints notes which workloads have endpoints, and which of these are ready.
func (j *judge) endpoints(c apiserver.Commit) {
	j.permits.ready = map[string]bool{}
	if c.After == nil {
		return
	}
	for _, e := range typedOf[discoveryv1.EndpointSlice](j.w, c.After).Endpoints {
		j.permits.ready[strings.TrimSuffix(e.TargetRef.Name, "-1-x")] = *e.Conditions.Ready
	}
}

// servable says that a mesh sends a target requests, and that other workloads would go on to
// serve: those that are ready and not in quarantine.
func (j *judge) servable(t *v1alpha1.PlanTarget) bool {
	if !j.w.mesh || !j.permits.ready[t.Name] {
		return false
	}
	for workload, ready := range j.permits.ready {
		if ready && workload != t.Name && !j.isQuarantined(workload) {
			return true
		}
	}
	return false
}

func (j *judge) isQuarantined(workload string) bool {
	target := j.w.target(workload)
	if target == nil {
		return false
	}
	b := j.permits.baselines[target.baseline]
	return b != nil && b.Status.Quarantine != nil
}
