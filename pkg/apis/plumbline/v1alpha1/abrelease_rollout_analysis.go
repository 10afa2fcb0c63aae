// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HealthVerdict of the judge about a stage.
// +kubebuilder:validation:Enum=Fail;BothBad;Pass;Undecided;NoData
type HealthVerdict string

// Rate is a percentage as a decimal number, such as "0.31".
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern=`^[0-9]{1,3}([.][0-9]{1,6})?$`
type Rate string

// VariationHealth is the health of a variation in the stage under way.
type VariationHealth struct {
	// variation names the variation.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// healthy says whether healthPercentage reaches the threshold of the stage.
	// +required
	Healthy Toggle `json:"healthy,omitempty"`
	// healthPercentage is the lower bound of the success rate, in percent.
	// +required
	HealthPercentage Rate `json:"healthPercentage,omitempty"`
	// successRate is the success rate of the requests, in percent.
	// +required
	SuccessRate Rate `json:"successRate,omitempty"`
	// errorRate is the error rate of the requests, in percent.
	// +required
	ErrorRate Rate `json:"errorRate,omitempty"`
	// errorRateLow is the lower 95 % bound of the error rate, in percent.
	// +required
	ErrorRateLow Rate `json:"errorRateLow,omitempty"`
	// errorRateHigh is the upper 95 % bound of the error rate, in percent.
	// +required
	ErrorRateHigh Rate `json:"errorRateHigh,omitempty"`
	// latencyP50Milliseconds is the median of the latency; 0 if it is not known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LatencyP50Milliseconds int64 `json:"latencyP50Milliseconds"`
	// latencyP99Milliseconds is the 99th percentile of the latency; 0 if it is not known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LatencyP99Milliseconds int64 `json:"latencyP99Milliseconds"`
	// slowRate are the requests that are slower than slowerThanMilliseconds, in percent.
	// +optional
	SlowRate Rate `json:"slowRate,omitempty"`
	// samples are the requests that are over.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Samples int64 `json:"samples"`
	// cells are the counts of ten seconds, one port and one replica of the discovery server each.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Cells int64 `json:"cells"`
}

// HealthComparison compares the canary with the active variation by one metric.
type HealthComparison struct {
	// eValue is the payment of the bet that the canary is worse, for a stake of 1; a higher one than 999999999 is shown as that.
	// +required
	EValue Decimal `json:"eValue,omitempty"`
	// failsAt is the eValue from which on the canary fails.
	// +required
	FailsAt Decimal `json:"failsAt,omitempty"`
	// dispersion says by how much more the failures vary than independent ones, at least 1.
	// +required
	Dispersion Decimal `json:"dispersion,omitempty"`
	// ratio is the most likely ratio of the canary's rate to that of the active variation in the stage; empty if it is not known.
	// +optional
	Ratio Decimal `json:"ratio,omitempty"`
	// ratioLow is the lower 95 % bound of the ratio; empty without a bound.
	// +optional
	RatioLow Decimal `json:"ratioLow,omitempty"`
	// ratioHigh is the upper 95 % bound of the ratio; empty without a bound.
	// +optional
	RatioHigh Decimal `json:"ratioHigh,omitempty"`
}

// HealthResult is the opinion of the judge about a stage, with its numbers.
type HealthResult struct {
	// verdict is that of the judge about the stage.
	// +optional
	Verdict HealthVerdict `json:"verdict,omitempty"`
	// reason is the reason of the verdict, in one word.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`
	// message is about the verdict, for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// evaluationTime is when.
	// +optional
	EvaluationTime *metav1.Time `json:"evaluationTime,omitempty"`
	// errors compares the failures of the whole run; the ratio is that of the stage.
	// +optional
	Errors *HealthComparison `json:"errors,omitempty"`
	// latency compares the slow requests of the whole run; the ratio is that of the stage.
	// +optional
	Latency *HealthComparison `json:"latency,omitempty"`
	// slowerThanMilliseconds is the latency above which a request is slow; 0 while latency is not judged.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SlowerThanMilliseconds int64 `json:"slowerThanMilliseconds"`
	// gaps counts the proxies and replicas of the discovery server of which some counts of the run were lost.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Gaps int64 `json:"gaps"`
	// variations are the health of both.
	// +optional
	// +listType=map
	// +listMapKey=variation
	// +kubebuilder:validation:MaxItems=2
	Variations []VariationHealth `json:"variations,omitempty"`
}

// StageHealth is the last opinion of the judge about a stage.
type StageHealth struct {
	// stage is the number of the stage.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Stage        int32 `json:"stage,omitempty"`
	HealthResult `json:",inline"`
}

// RolloutAnalysis holds the judge's counts of a run.
type RolloutAnalysis struct {
	// run is the run that it is about.
	// +required
	// +kubebuilder:validation:Minimum=1
	Run int64 `json:"run,omitempty"`
	// restarts counts measurements of the run that began again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts"`
	// stage is the stage that the sequences belong to.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	Stage int32 `json:"stage"`
	// sequences are the sequences of the splits with the percentage of the stage.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Sequences []int64 `json:"sequences,omitempty"`
	// checkpoint is the state of the judge, for the next process that leads.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Checkpoint   string `json:"checkpoint,omitempty"`
	HealthResult `json:",inline"`
	// stages are the stages of the run before the one under way, with the last opinion of the
	// judge about each. The run keeps them at its end.
	// +optional
	// +listType=map
	// +listMapKey=stage
	// +kubebuilder:validation:MaxItems=16
	Stages []StageHealth `json:"stages,omitempty"`
}
