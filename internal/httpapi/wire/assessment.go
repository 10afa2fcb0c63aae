// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Assessment is an EffectivenessAssessment: whether a write helped.
type Assessment struct {
	Object
	Plan          *v1alpha1.AssessedStep          `json:"plan,omitempty" kind:"-"`
	Policy        v1alpha1.AssessedPolicy         `json:"policy"`
	CorrelationID string                          `json:"correlationId"`
	RequestedBy   string                          `json:"requestedBy,omitempty"`
	Action        Word[v1alpha1.AssessedAction]   `json:"action"`
	Target        AssessedTarget                  `json:"target"`
	Execution     Word[v1alpha1.Execution]        `json:"execution"`
	WrittenAt     *time.Time                      `json:"writtenAt" kind:"WrittenTime"`
	Phase         Word[v1alpha1.AssessmentPhase]  `json:"phase,omitempty"`
	Verdict       Word[v1alpha1.EffectVerdict]    `json:"verdict,omitempty"`
	Score         *int32                          `json:"score"`
	Integrity     Word[v1alpha1.SpecIntegrity]    `json:"integrity,omitempty"`
	AlertDecay    Word[v1alpha1.AlertDecay]       `json:"alertDecay,omitempty"`
	Reason        Word[v1alpha1.AssessmentReason] `json:"reason,omitempty"`
	Message       string                          `json:"message,omitempty"`
	Components    []AssessedComponent             `json:"components"`
	SideEffects   []string                        `json:"sideEffects,omitempty"`
	CompletedAt   *time.Time                      `json:"completedAt" kind:"CompletionTime"`
	Conditions    []Condition                     `json:"conditions,omitempty"`
}

// AssessedTarget is the object that was written.
type AssessedTarget struct {
	APIVersion   string `json:"apiVersion"`
	Kind         string `json:"kind"`
	Name         string `json:"name"`
	BaselineName string `json:"baselineName"`
	UID          string `json:"uid,omitempty"`
}

// AssessedComponent is one component of an effect.
type AssessedComponent struct {
	Name    Word[v1alpha1.EffectComponent] `json:"name"`
	State   Word[v1alpha1.ComponentState]  `json:"state"`
	Score   *int32                         `json:"score,omitempty"`
	Effect  Word[v1alpha1.ComponentEffect] `json:"effect,omitempty"`
	Message string                         `json:"message,omitempty"`
	Health  *v1alpha1.MeasuredHealth       `json:"health,omitempty"`
	Alerts  *v1alpha1.MeasuredAlerts       `json:"alerts,omitempty"`
	Metrics []v1alpha1.MeasuredMetric      `json:"metrics,omitempty"`
}

// AssessmentOf shows an assessment.
func AssessmentOf(a *v1alpha1.EffectivenessAssessment) Assessment {
	out := Assessment{Object: objectOf(&a.ObjectMeta), Plan: a.Spec.Subject.Plan, Components: []AssessedComponent{}}
	show(&out, &a.Spec)
	show(&out, &a.Status)
	return out
}
