// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelValue of a label.
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// PodSelector selects pods by their labels, as the LabelSelector of Kubernetes does, with
// bounds. The API server rejects rules about unbounded lists.
//
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) || has(self.matchExpressions)",message="an empty selector selects every pod of the namespace; say which"
type PodSelector struct {
	// matchLabels are labels that a pod must have, all of them.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && size(k) <= 317)",message="a label key has 1 to 317 characters"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`
	// matchExpressions are more that must hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	MatchExpressions []PodSelectorRequirement `json:"matchExpressions,omitempty"`
}

// PodSelectorRequirement is about one label.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == has(self.values)",message="In and NotIn need values, Exists and DoesNotExist take no values",fieldPath=".values"
type PodSelectorRequirement struct {
	// key is the key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`
	// operator is the operator that relates the label to the values.
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator,omitempty"`
	// values are the values of the label.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Values []LabelValue `json:"values,omitempty"`
}

// LabelSelector is the same for the code that evaluates it; nil of nil.
func (s *PodSelector) LabelSelector() *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	out := &metav1.LabelSelector{}
	for k, v := range s.MatchLabels {
		metav1.AddLabelToSelector(out, k, string(v))
	}
	for _, e := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: e.Operator, Values: convert[string](e.Values),
		})
	}
	return out
}

// PodSelectorOf is the other way round.
func PodSelectorOf(s *metav1.LabelSelector) *PodSelector {
	if s == nil {
		return nil
	}
	out := &PodSelector{}
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if out.MatchLabels == nil {
			out.MatchLabels = map[string]LabelValue{}
		}
		out.MatchLabels[k] = LabelValue(s.MatchLabels[k])
	}
	for _, e := range s.MatchExpressions {
		out.MatchExpressions = append(out.MatchExpressions, PodSelectorRequirement{
			Key: e.Key, Operator: e.Operator, Values: convert[LabelValue](e.Values),
		})
	}
	return out
}

func convert[To, From ~string](values []From) (out []To) {
	for _, v := range values {
		out = append(out, To(v))
	}
	return out
}
