// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// The uids of the objects that the fixtures name.
const (
	PolicyUID = "0c7f4a52-1f3e-4a0b-9d58-3f1d5d2c9a01"
	planUID   = "5d0c8f0e-7a61-4a7c-8f0d-64f1c1b7e002"
)

// Pl1 returns a hash that consists of one digit.
func Pl1(digit string) string { return "pl1:sha256:" + strings.Repeat(digit, 64) }

// PlanOf is a new plan for Deployments; change alters it.
func PlanOf(name string, change ...func(*v1alpha1.RemediationPlan)) *v1alpha1.RemediationPlan {
	p := &v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Generation: 1, CreationTimestamp: Before(10 * time.Minute),
		},
		Spec: v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{
			Policy:          v1alpha1.PlanPolicy{Name: "production", UID: PolicyUID, Generation: 3, Digest: "sha256:" + strings.Repeat("b", 64)},
			EnvironmentName: "production", Trigger: v1alpha1.TriggerImmediate, Strategy: v1alpha1.StrategyRolling,
			InitiatedBy: "system:auto", Requester: "alice", CorrelationID: "c-1", DeadlineTime: Before(-24 * time.Hour),
		}},
	}
	withTarget(p, "web", v1alpha1.SeverityHigh)
	withTarget(p, "cart", v1alpha1.SeverityMedium)
	for _, c := range change {
		c(p)
	}
	return p
}

// withTarget adds one to a plan, in a batch of its own.
func withTarget(p *v1alpha1.RemediationPlan, name string, level v1alpha1.SeverityLevel) {
	plan := &p.Spec.Plan
	index := int32(len(plan.Targets))
	plan.Targets = append(plan.Targets, v1alpha1.PlanTarget{
		BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
		BaselineName:   specguard.BaselineName("deployments", "apps", name), UID: "uid-of-" + name,
		DriftedHash: Pl1("d"), DesiredHash: Pl1("a"), Revision: "deployments.apps." + name + "-3", RevisionHash: Pl1("a"),
		Paths: []string{"/spec/template/spec/containers/[name=app]/image"}, Action: v1alpha1.ActionReconcile,
		Severity: v1alpha1.Severity{Level: level, Score: 71}, DriftType: v1alpha1.DriftImage,
		FirstSeenTime: Before(time.Hour), Actors: []string{"bob"},
	})
	plan.Batches = append(plan.Batches, v1alpha1.PlanBatch{
		Order: index, Steps: []int32{index}, RequiresHealthCheck: v1alpha1.Enabled, DelayAfter: &metav1.Duration{Duration: time.Minute},
	})
}

// InPhase is a plan that an executor has looked at since its last change.
func InPhase(phase v1alpha1.PlanPhase) func(*v1alpha1.RemediationPlan) {
	return func(p *v1alpha1.RemediationPlan) {
		s := &p.Status
		s.Phase, s.Holder, s.Epoch, s.ObservedGeneration = phase, "executor-0", 2, p.Generation
		s.Counts.Total = int32(len(p.Spec.Plan.Targets))
		if protocol.Final(p.Status.Phase) {
			s.StartTime, s.CompletionTime = new(Before(5*time.Minute)), new(Before(4*time.Minute))
		}
	}
}

// Deferred has a plan wait, for the reason why, until a time or without an end.
func Deferred(why string, until *metav1.Time) func(*v1alpha1.RemediationPlan) {
	return func(p *v1alpha1.RemediationPlan) {
		InPhase(v1alpha1.PlanDeferred)(p)
		p.Status.DeferralReason, p.Status.ResumeTime = why, until
	}
}

// Asked has a person ask verb of a plan.
func Asked(verb v1alpha1.PlanVerb, by, reason string) func(*v1alpha1.RemediationPlan) {
	return func(p *v1alpha1.RemediationPlan) {
		p.Spec.Control = v1alpha1.PlanControl{Verb: verb, RequestedBy: by, Reason: reason}
	}
}

// Eventful has a step in every kind of end, and everything else that is shown.
func Eventful(p *v1alpha1.RemediationPlan) {
	InPhase(v1alpha1.PlanSealing)(p)
	withTarget(p, "gone", v1alpha1.SeverityCritical)
	p.Spec.Plan.Targets[2].Paths, p.Spec.Plan.Targets[2].Actors = nil, nil
	p.Spec.Plan.ScheduledTime = new(Before(8 * time.Minute))
	p.Spec.Plan.LeftOut = []v1alpha1.LeftOut{{BaselineName: "deployments.apps.db", Reason: "BlastRadius", Message: "one operation has at most 3 targets, and they are taken"}}
	p.Spec.Plan.LeftOutTotal, p.Spec.Plan.DriftReportID = 7, "4b1d0f5e9c2a7d3386f0a1c5e2b49d70"
	p.Status.EndingAs, p.Status.EndedBy, p.Status.EndedReason = v1alpha1.PlanCanceled, "carol", "INC-9 goes first"
	p.Status.StartTime = new(Before(5 * time.Minute))
	p.Status.Counts = v1alpha1.PlanCounts{Total: 3, Succeeded: 1, Failed: 1}
	p.Status.Steps = []v1alpha1.PlanStep{
		{
			Index: 0, State: v1alpha1.StepVerified, Settled: v1alpha1.Enabled,
			StartTime: new(Before(5 * time.Minute)), CompletionTime: new(Before(4 * time.Minute)),
			Result:   &v1alpha1.StepResult{ResourceVersion: "1001", Hash: Pl1("a"), Origin: v1alpha1.ResultResponse, RecordTime: Before(4 * time.Minute)},
			Evidence: &v1alpha1.StepEvidence{Sequence: 12, Digest: "sha256:" + strings.Repeat("e", 64)},
			Logs:     []string{"2026-03-01T11:55:00Z granted", "2026-03-01T11:56:00Z Verified : as it should be"},
		},
		{Index: 1, State: v1alpha1.StepFailed, Reason: v1alpha1.ReasonUnhealthy, Message: "it did not become ready in 10m0s", StartTime: new(Before(4 * time.Minute)), CompletionTime: new(Before(3*time.Minute + 30*time.Second))},
	}
}

// PolicyOf is a policy that the assessor has looked at; change alters it.
func PolicyOf(name string, change ...func(*v1alpha1.RemediationPolicy)) *v1alpha1.RemediationPolicy {
	p := &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: PolicyUID, Generation: 3, CreationTimestamp: Before(48 * time.Hour)},
		Spec: v1alpha1.RemediationPolicySpec{
			EnvironmentName: "production", Mode: v1alpha1.PolicyModeObserveOnly, Trigger: v1alpha1.TriggerImmediate,
			Action: v1alpha1.ActionReconcile, Strategy: v1alpha1.StrategyRolling, MinimumSeverity: v1alpha1.SeverityHigh,
			Safety: v1alpha1.RemediationSafety{MaxConcurrent: 1, MaxPerHour: 10, MaxPerDay: 50},
		},
		Status: v1alpha1.RemediationPolicyStatus{
			ObservedGeneration: 3, Targets: v1alpha1.PolicyTargets{Selected: 12, Drifted: 3, Eligible: 2},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Observing"}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// ActiveBy sets a policy active in the name of user.
func ActiveBy(user string, groups ...string) func(*v1alpha1.RemediationPolicy) {
	return func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Mode, p.Spec.RequestedBy, p.Spec.RequestedByGroups = v1alpha1.PolicyModeActive, user, groups
	}
}

// ActsAs has a policy act as a ServiceAccount.
func ActsAs(account string) func(*v1alpha1.RemediationPolicy) {
	return func(p *v1alpha1.RemediationPolicy) { p.Spec.ServiceAccountName = account }
}

// LedgerFor returns the ledger of an Environment or of the cluster; change alters it.
func LedgerFor(name, scope string, change ...func(*v1alpha1.RemediationLedger)) *v1alpha1.RemediationLedger {
	l := &v1alpha1.RemediationLedger{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1alpha1.RemediationLedgerSpec{Scope: scope},
	}
	for _, c := range change {
		c(l)
	}
	return l
}

// ObjectsOf returns objects of one kind as objects of any kind.
func ObjectsOf[T client.Object](objects ...T) []client.Object {
	out := make([]client.Object, len(objects))
	for i := range objects {
		out[i] = objects[i]
	}
	return out
}
