// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// putsBack: L6. Once everything has come to rest, each target of a planner is as authorized, or
// there is a lasting reason to leave it alone, which the judge finds by itself.
func (j *judge) putsBack(ended bool) {
	if !j.w.plansItself || !ended {
		return
	}
	if j.seen[chainStops] > 0 {
		return // the plans that have the drifts wait for a person, too
	}
	for _, t := range j.w.targets {
		hash, b := j.lastHash(t), j.permits.baselines[t.baseline]
		if b == nil || b.Spec.Authorized != nil && b.Spec.Authorized.Hash == hash {
			j.seen["target that ends as authorized"]++
			continue
		}
		why := j.lasting(t, b, hash)
		if why != "" {
			j.seen["drift that is left alone: "+why]++
			continue
		}
		waits := ""
		if j.permits.policy != nil {
			waits = j.permits.policy.Status.WaitingFor
		}
		j.breaks("L6", 0, "%s is not as authorized, its Baseline is %s, and there is no lasting reason; the policy waits for %q", t.name, b.Status.State, waits)
	}
}

// lastHash is the guarded hash of a target at the end.
func (j *judge) lastHash(t *target) string {
	for _, c := range slices.Backward(j.history) {
		if ofTarget(c) && c.Resource.Resource == t.resource && c.Name == t.name {
			if c.After == nil {
				return specguard.HashAbsent
			}
			return j.w.hashOf(t, specOf(c.After))
		}
	}
	return specguard.HashAbsent
}

// lasting is why a drift is left alone for good; empty when nothing says so.
func (j *judge) lasting(t *target, b *v1alpha1.Baseline, hash string) string {
	for _, ask := range []func() string{
		func() string { return j.policyLeaves(t, b) },
		func() string { return j.othersLeave(b) },
		func() string { return j.plansLeave(b, hash) },
		func() string { return j.actionLeaves(t, b, hash) },
	} {
		if why := ask(); why != "" {
			return why
		}
	}
	return ""
}

// policyLeaves is why the policy is not about a drift.
func (j *judge) policyLeaves(t *target, b *v1alpha1.Baseline) string {
	policy := j.permits.policy
	if policy == nil || policy.Spec.Mode != v1alpha1.PolicyModeActive {
		return "the policy does not act"
	}
	spec := &policy.Spec
	kind := func(r v1alpha1.GuardedResource) bool { return r.Kind == t.gvk.Kind }
	switch {
	case spec.Selector != nil && spec.Selector.MatchLabels["app"] != "web":
		return "the policy selects other labels"
	case spec.Selector != nil && b.Status.State == v1alpha1.StateMissing:
		return "the labels of what is gone are not known"
	case len(spec.Resources) > 0 && !slices.ContainsFunc(spec.Resources, kind):
		return "the policy selects other kinds"
	case spec.Action == v1alpha1.ActionNotifyOnly:
		return "the policy only notifies"
	case b.Status.Severity != nil && severity.CompareLevels(b.Status.Severity.Level, spec.MinimumSeverity) < 0:
		return "the drift is not severe enough"
	case spec.MaximumDriftAge != nil && b.Status.FirstSeenTime != nil && time.Since(b.Status.FirstSeenTime.Time) > spec.MaximumDriftAge.Duration:
		return "the drift is too old"
	}
	return ""
}

// othersLeave is why a drift is left to people.
func (j *judge) othersLeave(b *v1alpha1.Baseline) string {
	switch {
	case j.w.terminating():
		return "the namespace is being deleted"
	case b.Spec.Authorized == nil:
		return "nothing is authorized"
	case b.Status.State == v1alpha1.StateUnknown:
		return "the body that was authorized is lost"
	case b.Status.State == v1alpha1.StateRetired:
		return "that the object is gone is accepted"
	}
	return ""
}

// plansLeave is why plans of before leave a drift alone.
func (j *judge) plansLeave(b *v1alpha1.Baseline, hash string) string {
	tried := 0
	for _, p := range j.endedFor(planner.Digest(&j.permits.policy.Spec), b.Name) {
		i := targetIn(p, b.Name)
		t := &p.Spec.Plan.Targets[i]
		if t.DriftedHash != hash || b.Status.FirstSeenTime == nil || !t.FirstSeenTime.Equal(b.Status.FirstSeenTime) {
			continue
		}
		switch {
		case achieves(p, i):
			return "a plan has done it"
		case p.Status.Phase == v1alpha1.PlanCanceled && p.Spec.Control.Verb == v1alpha1.PlanCancel:
			return "a person canceled a plan for it"
		case wasTried(p, i):
			tried++
		}
	}
	if tried >= 3 {
		return "three plans did not put it back"
	}
	return ""
}

// endedByOthers are reasons of steps that say that nothing was tried.
var endedByOthers = []v1alpha1.StepReason{
	v1alpha1.ReasonStopped, v1alpha1.ReasonClaimed, v1alpha1.ReasonDeadlineExceeded, v1alpha1.ReasonPolicyChanged,
	v1alpha1.ReasonAboveMaximumAge, v1alpha1.ReasonBlastRadius, v1alpha1.ReasonBelowSeverity,
}

// wasTried says that a step ended for a reason that would end the next one, too.
func wasTried(p *v1alpha1.RemediationPlan, step int) bool {
	s := stepOf(p, step)
	if s.State == v1alpha1.StepSkipped {
		return !slices.Contains(endedByOthers, s.Reason)
	}
	return p.Status.Phase != v1alpha1.PlanSuperseded && p.Status.Phase != v1alpha1.PlanCanceled
}

// actionLeaves is why the action of the policy does nothing about a drift.
func (j *judge) actionLeaves(t *target, b *v1alpha1.Baseline, hash string) string {
	gone, spec := b.Status.State == v1alpha1.StateMissing, &j.permits.policy.Spec
	replicas := func(f v1alpha1.Finding) bool { return strings.HasSuffix(f.Path, "/replicas") }
	switch {
	case spec.Action == v1alpha1.ActionRollback && (b.Status.LastReady == nil || b.Status.LastReady.Hash == hash):
		return "it is as it was when it was last ready"
	case spec.Action == v1alpha1.ActionScale && (gone || !slices.ContainsFunc(b.Status.Findings, replicas)):
		return "its replicas have not changed"
	case spec.Action == v1alpha1.ActionScale && j.bodyLost(t, b):
		return "the number of replicas that was authorized is lost"
	case spec.Action == v1alpha1.ActionRestart && gone:
		return "an object that is gone cannot be restarted"
	case gone && spec.Exceptions.Recreate != v1alpha1.Allowed:
		return "what is gone is not made again"
	case gone && !slices.ContainsFunc(b.Status.Findings, blamed):
		return "it is not known who deleted it"
	}
	return ""
}

// bodyLost says that the authorized body of a target is gone or damaged.
func (j *judge) bodyLost(t *target, b *v1alpha1.Baseline) bool {
	_, lost := j.w.authorizedBody(b, t)
	return lost != ""
}

// blamed says of a finding that somebody deleted an object who may not.
func blamed(f v1alpha1.Finding) bool {
	return f.Class == v1alpha1.ClassObjectMissing && f.Actor.User != "" && f.Actor.Class == v1alpha1.ActorUntrusted
}
