// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "plumbline.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Environment{}, &EnvironmentList{},
		&GuardDefaults{}, &GuardDefaultsList{},
		&ClusterSpecGuard{}, &ClusterSpecGuardList{},
		&SpecGuard{}, &SpecGuardList{},
		&SpecGuardException{}, &SpecGuardExceptionList{},
		&Baseline{}, &BaselineList{},
		&BaselineRevision{}, &BaselineRevisionList{},
		&RemediationPolicy{}, &RemediationPolicyList{},
		&RemediationLedger{}, &RemediationLedgerList{},
		&RemediationPlan{}, &RemediationPlanList{},
		&EffectivenessAssessment{}, &EffectivenessAssessmentList{},
		&RemediationRequest{}, &RemediationRequestList{},
		&ABRelease{}, &ABReleaseList{}, &RolloutStrategy{}, &RolloutStrategyList{},
		&ReleaseWork{}, &ReleaseWorkList{}, &TrafficRouter{}, &TrafficRouterList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
