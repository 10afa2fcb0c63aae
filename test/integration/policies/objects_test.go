// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

func deployment(name string) *appsv1.Deployment { return guarded.Workload(tenant, name, "shop:1", 1) }

func baseline(name string) *v1alpha1.Baseline {
	return &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tenant},
		Spec: v1alpha1.BaselineSpec{
			Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Authorized: &v1alpha1.AuthorizedState{
				Hash: "pl1:sha256:aa", Revision: name + "-1", Number: 1, By: "ci",
				AuthorizationTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), Origin: v1alpha1.OriginCreated,
			},
		},
	}
}

func revision(name, of string) *v1alpha1.BaselineRevision {
	return &v1alpha1.BaselineRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tenant},
		Spec: v1alpha1.BaselineRevisionSpec{
			BaselineName: of, Number: 1, Hash: "pl1:sha256:aa", By: "ci",
			AuthorizationTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
			Encoding:          v1alpha1.BodyEncodingZstd, Body: []byte("body"), Size: 4,
		},
	}
}

// remediationPolicy only watches, and nobody asked for it.
func remediationPolicy(name string) *v1alpha1.RemediationPolicy {
	return &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RemediationPolicySpec{
			EnvironmentName: "production", Mode: v1alpha1.PolicyModeObserveOnly,
			Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile,
		},
	}
}

// remediationPlan puts the image of one Deployment back, with somebody's right.
func remediationPlan(name, requester string) *v1alpha1.RemediationPlan {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return &v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tenant},
		Spec: v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{
			Policy:          v1alpha1.PlanPolicy{Name: "production", UID: "p", Generation: 1, Digest: "sha256:aa"},
			EnvironmentName: "production", Trigger: v1alpha1.TriggerImmediate, Strategy: v1alpha1.StrategyRolling,
			InitiatedBy: requester, Requester: requester, CorrelationID: "c", DeadlineTime: at,
			Targets: []v1alpha1.PlanTarget{{
				BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
				BaselineName:   "deployments.apps." + name, UID: "u", DriftedHash: "pl1:sha256:bb", DesiredHash: "pl1:sha256:aa",
				Revision: name + "-1", RevisionHash: "pl1:sha256:aa", Paths: []string{"/spec/replicas"}, Action: v1alpha1.ActionReconcile,
				Severity: v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 70}, DriftType: v1alpha1.DriftScale, FirstSeenTime: at,
			}},
			Batches: []v1alpha1.PlanBatch{{Steps: []int32{0}, RequiresHealthCheck: v1alpha1.Enabled}},
		}},
	}
}

func remediationRequest(name, by string) *v1alpha1.RemediationRequest {
	return &v1alpha1.RemediationRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tenant},
		Spec: v1alpha1.RemediationRequestSpec{
			PolicyName: "production", RequestedBy: by,
			Targets: []v1alpha1.RequestedTarget{{BaselineName: "deployments.apps." + name, DriftedHash: "pl1:sha256:bb"}},
		},
	}
}

// assessmentNamed is the assessment of a step that wrote.
func assessmentNamed(name string) *v1alpha1.EffectivenessAssessment {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	window := &metav1.Duration{Duration: time.Minute}
	return &v1alpha1.EffectivenessAssessment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tenant},
		Spec: v1alpha1.EffectivenessAssessmentSpec{
			Subject: v1alpha1.AssessmentSubject{Plan: &v1alpha1.AssessedStep{Name: "p", UID: "p"}}, Policy: v1alpha1.AssessedPolicy{Name: "production", UID: "q"},
			CorrelationID: "c", RequestedBy: "ann", Action: v1alpha1.AssessedAction(v1alpha1.ActionReconcile),
			Target: v1alpha1.AssessedTarget{
				BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, BaselineName: "deployments.apps." + name, UID: "u",
			},
			Signal: v1alpha1.AssessedSignal{Kind: "Deployment", Name: name}, DriftTime: at, Execution: v1alpha1.ExecutionDone, WrittenTime: &at,
			Windows: v1alpha1.AssessmentWindows{Stabilization: window, Validity: window},
		},
	}
}

func remediationLedger(name string) *v1alpha1.RemediationLedger {
	return &v1alpha1.RemediationLedger{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: rendered.Namespace},
		Spec:       v1alpha1.RemediationLedgerSpec{Scope: "Environment"},
	}
}

func environment(name string) *v1alpha1.Environment {
	return &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.EnvironmentSpec{
			Criticality:       v1alpha1.CriticalityProduction,
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": name}},
		},
	}
}
