// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VariationName names a variation within its release.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type VariationName string

// VariationWorkload names the owner of the pods of a variation, in the namespace of the release.
type VariationWorkload struct {
	// kind is the kind of the workload. Pods of a Deployment belong to the Deployment, not to
	// its ReplicaSets.
	// +required
	Kind VariationWorkloadKind `json:"kind,omitempty"`
	// name is the name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
}

// Variation is one version of a service: the pods of a workload or of a selector, those of a
// clone of the stable variation, or those of a group of workers. A workload can have a group
// beside it.
//
// +kubebuilder:validation:XValidation:rule="[has(self.workload), has(self.selector), has(self.clone)].filter(given, given).size() == (has(self.group) && !has(self.workload) ? 0 : 1)",message="a variation is either a workload or a selector, or a clone or a group: give one of them, or a workload with a group"
type Variation struct {
	// name is the name of the variation.
	// +required
	Name VariationName `json:"name,omitempty"`
	// workload is the workload with the pods of the variation.
	// +optional
	Workload *VariationWorkload `json:"workload,omitempty"`
	// selector is the selector of the pods that are the variation, in the namespace of the
	// release.
	// +optional
	Selector *PodSelector `json:"selector,omitempty"`
	// clone is the clone of the stable variation's Deployment, with the pods of the variation.
	// The executor makes and scales it, and it goes with the release.
	// +optional
	Clone *VariationClone `json:"clone,omitempty"`
	// group is the Deployment that is the variation with the model TargetGroup, and the workers of
	// the variation beside its workload with the model Hybrid. A run divides the replicas of both
	// groups by the percentages of its stages.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a group is immutable, since a run owes it replicas: make another release"
	Group *VariationGroup `json:"group,omitempty"`
	// reserved is the largest percentage that this variation can reach without moving visitors
	// of other variations. Set it on each variation except the stable one, or on no variation.
	// If unset, the range is divided equally.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Reserved *int32 `json:"reserved,omitempty"`
}

// ABReleaseSpec says how the requests of a Service are divided between variations.
//
// +kubebuilder:validation:XValidation:rule="self.variations.all(v, v.name in self.trafficSplit.percentages)",message="every variation needs a percentage, which may be 0",fieldPath=".trafficSplit.percentages"
// +kubebuilder:validation:XValidation:rule="self.trafficSplit.percentages.all(k, self.variations.exists(v, v.name == k))",message="each key of percentages must name a variation",fieldPath=".trafficSplit.percentages"
// +kubebuilder:validation:XValidation:rule="!has(self.trafficSplit.headerMatch) || self.trafficSplit.headerMatch.values.all(k, self.variations.exists(v, v.name == self.trafficSplit.headerMatch.values[k]))",message="each value of the header must go to a variation",fieldPath=".trafficSplit.headerMatch.values"
// +kubebuilder:validation:XValidation:rule="self.variations.exists(v, v.name == self.stable)",message="stable names no variation",fieldPath=".stable"
// +kubebuilder:validation:XValidation:rule="self.variations.all(v, v.name != self.stable || !has(v.reserved))",message="the stable variation gets the rest of the requests: leave reserved out for it",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="self.variations.filter(v, has(v.reserved)).size() in [0, self.variations.size() - 1]",message="reserve for all variations except the stable one, or for no variation",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="self.variations.map(v, has(v.reserved) ? v.reserved : 0).sum() <= 100",message="more than 100 percent are reserved",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="self.variations.all(v, !has(v.reserved) || !(v.name in self.trafficSplit.percentages) || double(string(self.trafficSplit.percentages[v.name])) <= double(v.reserved))",message="a variation gets more percent than are reserved for it: reserve more",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="self.variations.all(v, !has(v.workload) || self.variations.filter(w, has(w.workload) && w.workload.kind == v.workload.kind && w.workload.name == v.workload.name).size() == 1)",message="two variations have the same workload",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="has(self.salt) == has(oldSelf.salt)",message="salt is set when the release is made, and immutable: another salt moves visitors",fieldPath=".salt"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || size(self.variations) == 2",message="a rollout goes from one variation to another: give two",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || self.variations.all(v, has(v.workload) || has(v.clone) || has(v.group))",message="a rollout knows the revision of a variation by its workload: name one",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !(self.stable in self.trafficSplit.percentages) || double(string(self.trafficSplit.percentages[self.stable])) == 100.0",message="with a rollout the stable variation has 100 percent, and the stages give the other variation its part",fieldPath=".trafficSplit.percentages"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || self.trafficSplit.type != 'Header'",message="a rollout divides requests by percentages: use type Percentage or Sticky",fieldPath=".trafficSplit.type"
// +kubebuilder:validation:XValidation:rule="has(self.rollout) || !self.variations.exists(v, has(v.clone))",message="only a rollout makes a clone: give spec.rollout, or name a workload",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="!self.variations.exists(v, has(v.clone) && v.name == self.stable)",message="the stable variation is no clone, since a clone is made from it: name its Deployment by workload",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="!self.variations.exists(v, has(v.clone)) || self.variations.all(v, v.name != self.stable || has(v.clone) || (has(v.workload) && v.workload.kind == 'Deployment'))",message="a clone is made from a Deployment: the workload of the stable variation must be one",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !self.variations.exists(v, has(v.clone)) || self.rollout.promotion != 'KeepVariation'",message="a clone ends with its run, so its change has to reach the stable variation: use UpdateBaseline or AwaitBaseline",fieldPath=".rollout.promotion"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || self.variations.exists(v, has(v.clone)) || self.rollout.promotion == 'KeepVariation'",message="UpdateBaseline and AwaitBaseline are for a clone: use KeepVariation",fieldPath=".rollout.promotion"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !self.variations.exists(v, has(v.clone)) || has(self.rollout.requestedBy)",message="the executor makes a clone with the permissions of a user: set requestedBy to the user that writes the release",fieldPath=".rollout.requestedBy"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || self.rollout.supersede != 'Queue' || self.variations.exists(v, has(v.clone))",message="only the change of a clone can wait: a workload has its new revision at once. Use Restart or Reject",fieldPath=".rollout.supersede"
// +kubebuilder:validation:XValidation:rule="(has(self.rollout) && has(self.rollout.model) && self.rollout.model in ['TargetGroup', 'Hybrid']) == self.variations.exists(v, has(v.group))",message="give each variation a group with the models TargetGroup and Hybrid, which divide replicas between groups, and no group with the model Router, which divides requests alone",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="!(has(self.rollout) && has(self.rollout.model) && self.rollout.model in ['TargetGroup', 'Hybrid']) || self.variations.all(v, has(v.group) && has(v.workload) == (self.rollout.model == 'Hybrid'))",message="with the model TargetGroup each variation is a group, and with Hybrid each variation is a workload with a group",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="(has(self.rollout) && has(self.rollout.model) && self.rollout.model == 'TargetGroup') != has(self.serviceName)",message="the models Router and Hybrid divide the requests of a Service: give serviceName with them, and leave it out with TargetGroup",fieldPath=".serviceName"
// +kubebuilder:validation:XValidation:rule="(has(self.rollout) && has(self.rollout.model) ? self.rollout.model : 'Router') == (has(oldSelf.rollout) && has(oldSelf.rollout.model) ? oldSelf.rollout.model : 'Router')",message="the model is immutable: make another release",fieldPath=".rollout"
// +kubebuilder:validation:XValidation:rule="!(has(self.rollout) && has(self.rollout.model) && self.rollout.model == 'TargetGroup') || (self.trafficSplit.type == 'Percentage' && !has(self.trafficSplit.overrideHeader))",message="no proxy divides anything between groups: use type Percentage without overrideHeader",fieldPath=".trafficSplit"
// +kubebuilder:validation:XValidation:rule="!(has(self.rollout) && has(self.rollout.model) && self.rollout.model in ['TargetGroup', 'Hybrid']) || self.variations.all(v, oldSelf.variations.exists(w, w.name == v.name))",message="the groups are immutable, since a run owes them replicas: make another release",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="!(has(self.rollout) && has(self.rollout.model) && self.rollout.model in ['TargetGroup', 'Hybrid']) || has(self.rollout.requestedBy)",message="the executor scales groups with the permissions of a user: set requestedBy to the user that writes the release",fieldPath=".rollout.requestedBy"
// +kubebuilder:validation:XValidation:rule="!(has(self.rollout) && has(self.rollout.model) && self.rollout.model in ['TargetGroup', 'Hybrid']) || !has(self.rollout.fallback) || self.rollout.fallback == 'Wait'",message="a run of groups holds no minimum of an autoscaler: leave fallback out",fieldPath=".rollout.fallback"
// +kubebuilder:validation:XValidation:rule="self.variations.all(v, !has(v.group) || self.variations.filter(w, has(w.group) && w.group.name == v.group.name).size() == 1)",message="two variations have the same group",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !has(self.rollout.analysis) || !has(self.rollout.analysis.control) || self.rollout.analysis.control != 'Fresh' || self.variations.all(v, v.name != 'fresh-control' && (!has(v.workload) || v.workload.kind == 'Deployment'))",message="a fresh control is the clone of a Deployment, with the name fresh-control: name Deployments as workloads, give the variations other names, or use the control Stable",fieldPath=".rollout.analysis.control"
// +kubebuilder:validation:XValidation:rule="self.variations.all(v, !has(v.group) || !self.variations.exists(w, has(w.workload) && w.workload.kind == 'Deployment' && w.workload.name == v.group.name))",message="a workload that gets requests cannot be a group, since a run takes the replicas of a group away: give another Deployment",fieldPath=".variations"
// +kubebuilder:validation:XValidation:rule="has(self.routers) == has(oldSelf.routers)",message="routers are immutable, since each router would keep its last split: make another release",fieldPath=".routers"
// +kubebuilder:validation:XValidation:rule="!has(self.routers) || self.routers.all(r, !has(r.services) || (r.services.size() == self.variations.size() && self.variations.all(v, r.services.exists(s, s.variation == v.name))))",message="services names each variation once: give the Service of each variation, and of no other",fieldPath=".routers"
// +kubebuilder:validation:XValidation:rule="!has(self.routers) || has(self.serviceName)",message="a router divides the requests of a Service: give serviceName",fieldPath=".routers"
type ABReleaseSpec struct {
	// serviceName is the Service with the requests that are divided, in the namespace of the
	// release. The model TargetGroup has no Service.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="serviceName is immutable, because proxies count the decisions about it: make another release"
	ServiceName string `json:"serviceName,omitempty"`
	// stable names the variation that gets the rest of the requests, and the requests of
	// each other variation that has no ready endpoints.
	// +required
	Stable VariationName `json:"stable,omitempty"`
	// variations are the variations of the service. Their order has no meaning.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	Variations []Variation `json:"variations,omitempty"`
	// trafficSplit says which requests go to which variation.
	// +required
	TrafficSplit TrafficSplit `json:"trafficSplit,omitzero"`
	// salt is the salt of the hash that assigns visitors to variations. Releases with the same
	// salt and the same ranges assign a visitor alike. If unset, namespace and name of the
	// release are the salt, so a restore from a backup moves no visitor.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="salt is immutable: another salt moves visitors; make another release"
	Salt string `json:"salt,omitempty"`
	// routers are the routers that carry out the split together. A split is effective when each
	// router has it. If unset, the proxies of the mesh carry it out.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="routers are immutable, since each router would keep its last split: make another release"
	Routers []ReleaseRouter `json:"routers,omitempty"`
	// acknowledgment selects the proxies that have to acknowledge the effective split, and
	// bounds the wait of the release for them. If unset, proxies of all namespaces for ten
	// minutes, and on.
	// +optional
	Acknowledgment *Acknowledgment `json:"acknowledgment,omitempty"`
	// rollout has each new revision of the inactive variation prove itself in stages. If unset,
	// proxies get the percentages of trafficSplit.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
}

// ABRelease divides the requests of a Service between variations of it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=abreleases,categories=plumbline,shortName=abr
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.spec.serviceName`
// +kubebuilder:printcolumn:name="Split",type=string,JSONPath=`.status.split`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.rollout.run.state`
// +kubebuilder:printcolumn:name="Stage",type=integer,JSONPath=`.status.rollout.stage`
// +kubebuilder:printcolumn:name="Waiting-For",type=string,JSONPath=`.status.rollout.waiting.reason`
// +kubebuilder:printcolumn:name="Acknowledged",type=string,JSONPath=`.status.acknowledged.count`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Sequence",type=integer,JSONPath=`.status.effective.sequence`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ABRelease struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says how requests are divided.
	// +required
	Spec ABReleaseSpec `json:"spec,omitzero"`
	// status is the effective split, and its state.
	// +optional
	Status ABReleaseStatus `json:"status,omitempty,omitzero"`
}

// ABReleaseList is a list of ABReleases.
// +kubebuilder:object:root=true
type ABReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ABRelease `json:"items"`
}
