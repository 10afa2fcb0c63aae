// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// SeverityLevel ranks drift.
// +kubebuilder:validation:Enum=Info;Low;Medium;High;Critical
type SeverityLevel string

// The severity levels, from mild to severe.
const (
	// SeverityInfo: cosmetic.
	SeverityInfo SeverityLevel = "Info"
	// SeverityLow: can wait.
	SeverityLow SeverityLevel = "Low"
	// SeverityMedium: changes the behavior of the object.
	SeverityMedium SeverityLevel = "Medium"
	// SeverityHigh: touches security or the executed program.
	SeverityHigh SeverityLevel = "High"
	// SeverityCritical: something essential is gone or replaced.
	SeverityCritical SeverityLevel = "Critical"
)

// The factors of a severity score.
const (
	FactorDriftType              = "DriftType"
	FactorDriftAge               = "DriftAge"
	FactorEnvironmentCriticality = "EnvironmentCriticality"
	FactorComponentCriticality   = "ComponentCriticality"
	FactorBlastRadius            = "BlastRadius"
)

// The urgencies of a drift.
const (
	// UrgencyImmediate: the score is 90 or more.
	UrgencyImmediate = "Immediate"
	// UrgencyNormal: it is less.
	UrgencyNormal = "Normal"
)

// SeverityFactor is one weighted part of a severity score.
type SeverityFactor struct {
	// name is the name of the factor.
	// +required
	// +kubebuilder:validation:Enum=DriftType;DriftAge;EnvironmentCriticality;ComponentCriticality;BlastRadius
	Name string `json:"name,omitempty"`
	// score is the score of the factor, 0 to 100.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Score int32 `json:"score"`
	// weight is the weight of the factor in percent.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight,omitempty"`
}

// Severity is how much a drift matters, with its reasons.
type Severity struct {
	// level is the higher of the score's band and the floor of the finding's class.
	// +required
	Level SeverityLevel `json:"level,omitempty"`
	// score is 0 to 100: the weighted mean of the factors, rounded down.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Score int32 `json:"score"`
	// factors are the factors that make up the score.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=5
	Factors []SeverityFactor `json:"factors,omitempty"`
	// floor is the lowest level the finding's class allows here.
	// +optional
	Floor SeverityLevel `json:"floor,omitempty"`
	// first is the level at first detection.
	// +optional
	First SeverityLevel `json:"first,omitempty"`
	// firstScore is the score at first detection; absent when it is not known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	FirstScore *int32 `json:"firstScore,omitempty"`
	// urgency is Immediate when the score is 90 or more.
	// +optional
	// +kubebuilder:validation:Enum=Immediate;Normal
	Urgency string `json:"urgency,omitempty"`
}
