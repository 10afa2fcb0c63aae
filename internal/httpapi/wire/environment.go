// SPDX-License-Identifier: Apache-2.0

package wire

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Environment says how much a set of namespaces matters.
type Environment struct {
	Object
	Criticality          Word[v1alpha1.Criticality]       `json:"criticality"`
	Namespaces           int32                            `json:"namespaces"`
	NamespaceSelector    metav1.LabelSelector             `json:"namespaceSelector"`
	ComponentCriticality []v1alpha1.ComponentCriticality  `json:"componentCriticality,omitempty"`
	Dependencies         []v1alpha1.ComponentDependencies `json:"dependencies,omitempty"`
	Caps                 *EnvironmentCaps                 `json:"caps,omitempty"`
	Conditions           []Condition                      `json:"conditions,omitempty"`
}

// EnvironmentCaps bound all policies of an Environment together; an absent bound is none.
type EnvironmentCaps struct {
	MaxConcurrentRemediations *int32 `json:"maxConcurrentRemediations,omitempty" kind:"MaxConcurrent"`
	MaxRemediationsPerHour    *int32 `json:"maxRemediationsPerHour,omitempty" kind:"MaxPerHour"`
	MaxRemediationsPerDay     *int32 `json:"maxRemediationsPerDay,omitempty" kind:"MaxPerDay"`
}

// EnvironmentOf shows an Environment.
func EnvironmentOf(e *v1alpha1.Environment) Environment {
	out := Environment{Object: objectOf(&e.ObjectMeta)}
	show(&out, &e.Spec)
	show(&out, &e.Status)
	return out
}
