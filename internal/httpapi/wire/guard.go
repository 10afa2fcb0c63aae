// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Guard is a SpecGuard, or a ClusterSpecGuard, which has no namespace.
type Guard struct {
	Object
	Mode                 Word[v1alpha1.GuardMode]            `json:"mode,omitempty"`
	Resources            []v1alpha1.GuardedResource          `json:"resources"`
	Categories           []Word[v1alpha1.ResourceCategory]   `json:"categories,omitempty"`
	Selector             *metav1.LabelSelector               `json:"selector,omitempty"`
	NamespaceSelector    *metav1.LabelSelector               `json:"namespaceSelector,omitempty"`
	TrustedWriters       v1alpha1.Writers                    `json:"trustedWriters"`
	AcceptBy             *v1alpha1.Writers                   `json:"acceptBy,omitempty"`
	Exceptions           Word[v1alpha1.GuardExceptions]      `json:"exceptions,omitempty"`
	ExpectedWriters      []v1alpha1.ExpectedWriter           `json:"expectedWriters,omitempty"`
	Ignore               []string                            `json:"ignore,omitempty"`
	ResyncPeriod         *Duration                           `json:"resyncPeriod,omitempty"`
	ManagementPolicy     Word[v1alpha1.ManagementPolicy]     `json:"managementPolicy,omitempty"`
	ObjectOverride       Word[v1alpha1.ObjectOverride]       `json:"objectOverride,omitempty"`
	AuthenticatedDeletes Word[v1alpha1.AuthenticatedDeletes] `json:"authenticatedDeletes,omitempty"`
	Suspend              *Suspension                         `json:"suspend,omitempty"`
	Objects              int32                               `json:"objects"`
	Drifted              int32                               `json:"drifted"`
	Unknown              int32                               `json:"unknown"`
	MassDrift            bool                                `json:"massDrift" kind:"-" doc:"So much drifts at once that automatic repair leaves it alone."`
	Conditions           []Condition                         `json:"conditions,omitempty"`
}

// Suspension stops a guard for a while.
type Suspension struct {
	Reason string    `json:"reason"`
	EndsAt time.Time `json:"endsAt" kind:"EndTime"`
}

// GuardOf shows a guard of a namespace.
func GuardOf(g *v1alpha1.SpecGuard) Guard { return guardOf(&g.ObjectMeta, &g.Spec, &g.Status) }

// ClusterGuardOf shows a guard of the whole cluster.
func ClusterGuardOf(g *v1alpha1.ClusterSpecGuard) Guard {
	return guardOf(&g.ObjectMeta, &g.Spec, &g.Status)
}

// guardOf shows a guard; spec is one of the two specs.
func guardOf(meta *metav1.ObjectMeta, spec any, status *v1alpha1.GuardStatus) Guard {
	out := Guard{Object: objectOf(meta), MassDrift: status.MassDrift != nil}
	show(&out, spec)
	show(&out, status)
	if out.Resources == nil {
		out.Resources = []v1alpha1.GuardedResource{}
	}
	return out
}
