// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MatchOperator says how a matcher compares a label of an alert.
// +kubebuilder:validation:Enum=Equals;NotEquals;Matches;NotMatches
// +kubebuilder:validation:MaxLength=16
type MatchOperator string

// The operators. The last two take a regular expression, which matches the whole value.
const (
	MatchEquals     MatchOperator = "Equals"
	MatchNotEquals  MatchOperator = "NotEquals"
	MatchMatches    MatchOperator = "Matches"
	MatchNotMatches MatchOperator = "NotMatches"
)

// AlertMatcher selects alerts by one label.
type AlertMatcher struct {
	// label is the label of the alert.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	Label string `json:"label,omitempty"`
	// operator is the operator by which the label is compared.
	// +optional
	// +default="Equals"
	Operator MatchOperator `json:"operator,omitempty"`
	// value is the value that the label is compared with. $(namespace), $(kind) and $(name)
	// stand for those of the target.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^$]|[$][^(]|[$][(](namespace|kind|name)[)])*[$]?$')",message="there are the placeholders $(namespace), $(kind) and $(name)"
	Value string `json:"value,omitempty"`
}

// EffectAlerts say which alerts are about a target.
type EffectAlerts struct {
	// matchers are the matchers that an alert must match, each of them.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Matchers []AlertMatcher `json:"matchers,omitempty"`
}

// EffectObjective says which direction of a metric is good.
// +kubebuilder:validation:Enum=LowerIsBetter;HigherIsBetter
// +kubebuilder:validation:MaxLength=16
type EffectObjective string

// The objectives.
const (
	ObjectiveLower  EffectObjective = "LowerIsBetter"
	ObjectiveHigher EffectObjective = "HigherIsBetter"
)

// EffectQuery is a metric of a target.
type EffectQuery struct {
	// name is the name of the metric, unique in the policy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// query is the query in PromQL. $(namespace), $(kind) and $(name) stand for those of the
	// target. $(pods) stands for a vector of 1 for each of its pods, with the labels namespace
	// and pod, and $(range) for the range of a rate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^$]|[$][^(]|[$][(](namespace|kind|name|pods|range)[)])*[$]?$')",message="there are the placeholders $(namespace), $(kind), $(name), $(pods) and $(range)"
	Query string `json:"query,omitempty"`
	// objective says which direction is good.
	// +required
	Objective EffectObjective `json:"objective,omitempty"`
	// floor is the value below which the metric has no meaning, such as "0.001" for a share of
	// errors. Changes are measured against the larger of floor and median.
	// +required
	// +kubebuilder:validation:XValidation:rule="double(self) > 0.0",message="a floor is positive"
	Floor Decimal `json:"floor,omitempty"`
}

// EffectMetrics say which metrics are about a target.
type EffectMetrics struct {
	// queries are the queries of the metrics. If unset, those of
	// docs/reference/effectiveness.md.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Queries []EffectQuery `json:"queries,omitempty"`
}
