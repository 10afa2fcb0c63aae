// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionAcknowledged is True on an ABRelease when every proxy has acknowledged the effective
// split, and Unknown when some proxies do not report.
const ConditionAcknowledged = "Acknowledged"

// ConditionProgressing is True on an ABRelease while a run is under way; its reason is that of
// the run's wait.
const ConditionProgressing = "Progressing"

// Reasons of Degraded of ABReleases, the most severe first.
const (
	// ReasonContradicted: requests are seen where none may be, or no requests where many must
	// be, or a proxy reports another split.
	ReasonContradicted = "Contradicted"
	// ReasonSelectorsOverlap: the Service selects pods of another variation than the stable
	// one, which clients without a proxy reach at every weight.
	ReasonSelectorsOverlap = "SelectorsOverlap"
	// ReasonIPv6NotSplit: clients connect over IPv6, which proxies do not take.
	ReasonIPv6NotSplit = "IPv6NotSplit"
	// ReasonNotYetRedirected: pods may have connections that are older than the management of
	// the Service, and these go past the split.
	ReasonNotYetRedirected = "NotYetRedirected"
	// ReasonShareStarved: a variation cannot have its share at a router, whatever its weight is.
	ReasonShareStarved = "ShareStarved"
	// ReasonNoReadyEndpoints: a variation has no share because it has no ready endpoints.
	ReasonNoReadyEndpoints = "NoReadyEndpoints"
)

// SplitKeyType is the kind of value that identifies a visitor.
// +kubebuilder:validation:Enum=PerRequest;Header;Cookie;Visitor
type SplitKeyType string

// The kinds of keys.
const (
	// SplitKeyPerRequest identifies no visitors.
	SplitKeyPerRequest SplitKeyType = "PerRequest"
	// SplitKeyHeader is a header that clients send.
	SplitKeyHeader SplitKeyType = "Header"
	// SplitKeyCookie is a cookie of the application.
	SplitKeyCookie SplitKeyType = "Cookie"
	// SplitKeyVisitor is a cookie that the proxy gives to visitors without one.
	SplitKeyVisitor SplitKeyType = "Visitor"
)

// SplitKey is the value by which visitors keep their variation.
type SplitKey struct {
	// type is the type of the key.
	// +required
	Type SplitKeyType `json:"type,omitempty"`
	// name is the name of the header or the cookie.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// domain is the domain of the cookie that proxies give.
	// +optional
	Domain CookieDomain `json:"domain,omitempty"`
	// secure says whether that cookie has the attribute Secure.
	// +optional
	Secure CookieSecurity `json:"secure,omitempty"`
}

// EffectiveVariation is a variation and its share, as proxies are told.
type EffectiveVariation struct {
	// name is the name of the variation.
	// +required
	Name VariationName `json:"name,omitempty"`
	// workload is the workload with the pods of the variation.
	// +optional
	Workload *VariationWorkload `json:"workload,omitempty"`
	// selector is the selector of the pods that are the variation.
	// +optional
	Selector *PodSelector `json:"selector,omitempty"`
	// servedBy is the variation with the pods that answer the requests of this one; absent but
	// in a cohort check.
	// +optional
	ServedBy VariationName `json:"servedBy,omitempty"`
	// weight is the weight in basis points, of 10000 in all.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Weight *int32 `json:"weight,omitempty"`
	// reserved is the range in which it may grow, in basis points.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Reserved *int32 `json:"reserved,omitempty"`
}

// EffectiveSplit is all that decides where a request goes. Every replica of the discovery server
// translates only this, so that all have the same configuration.
type EffectiveSplit struct {
	// sequence grows with each change of it. Proxies never go back to a lower one.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence,omitempty"`
	// preparedSequence is that of its rollback, by which the first variation gets all requests. Each
	// replica carries it out when the leader orders it, also while no replica reaches the API server.
	// Absent while no run sends requests to the other variation.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PreparedSequence int64 `json:"preparedSequence,omitempty"`
	// generation is the generation of the spec that it follows from.
	// +required
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation,omitempty"`
	// serviceName is the Service with the requests that are divided.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ServiceName string `json:"serviceName,omitempty"`
	// salt makes the visitors of one release independent of those of another.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Salt string `json:"salt,omitempty"`
	// variations are the variations in the order of their ranges, the stable one first.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	Variations []EffectiveVariation `json:"variations,omitempty"`
	// key is the key that visitors keep their variation by.
	// +required
	Key SplitKey `json:"key,omitzero"`
	// override is a header that names a variation.
	// +optional
	Override HeaderName `json:"override,omitempty"`
	// match sends values of a header to variations.
	// +optional
	Match *HeaderMatch `json:"match,omitempty"`
}

// WantedWeight is the weight of a variation in the spec.
type WantedWeight struct {
	// variation names the variation.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// weight is the weight in basis points, of 10000 in all.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Weight *int32 `json:"weight,omitempty"`
}

// ClampedVariation has no ready endpoints, and its share is the stable one's.
type ClampedVariation struct {
	// variation names the variation.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// startTime is when it had no ready endpoints for the first time.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
	// readyTime is when it had some again. It gets its share back when it has had
	// them for a while.
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`
}

// AcknowledgmentState is the source of the knowledge about a split's acknowledgment.
// +kubebuilder:validation:Enum=Proven;Accepted;Unknown;NoProxies;Contradicted
type AcknowledgmentState string

// The kinds of knowledge.
const (
	// AcknowledgedProven: every proxy has acknowledged it.
	AcknowledgedProven AcknowledgmentState = "Proven"
	// AcknowledgedAccepted: it was taken, and whether it is carried out cannot be asked.
	AcknowledgedAccepted AcknowledgmentState = "Accepted"
	// AcknowledgedUnknown: some have not acknowledged it, or were not heard of.
	AcknowledgedUnknown AcknowledgmentState = "Unknown"
	// AcknowledgedByNoProxy: no proxy is there that could acknowledge it.
	AcknowledgedByNoProxy AcknowledgmentState = "NoProxies"
	// AcknowledgedContradicted: some have another split under the same sequence, or one of a later
	// sequence.
	AcknowledgedContradicted AcknowledgmentState = "Contradicted"
)

// OutOfSyncProxy is a proxy that has not acknowledged the effective split.
type OutOfSyncProxy struct {
	// name is the name of the proxy: namespace/pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Name string `json:"name,omitempty"`
	// why is the cause, as far as it is known.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Why string `json:"why,omitempty"`
	// rejectionTime is when it was told.
	// +optional
	RejectionTime *metav1.Time `json:"rejectionTime,omitempty"`
}

// SplitAcknowledgment counts the proxies that have acknowledged the effective split.
type SplitAcknowledgment struct {
	// count is "acknowledged/all", for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Count string `json:"count,omitempty"`
	// sequence is the newest one that every proxy has acknowledged; absent before that.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence,omitempty"`
	// knowledge is how that is known.
	// +required
	Knowledge AcknowledgmentState `json:"knowledge,omitempty"`
	// proxies is the number of proxies that have to acknowledge the effective split.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Proxies int32 `json:"proxies"`
	// acknowledgedProxies have acknowledged it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AcknowledgedProxies int32 `json:"acknowledgedProxies"`
	// outOfSync have not, those that wait longest first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	OutOfSync []OutOfSyncProxy `json:"outOfSync,omitempty"`
	// gone are proxies that need not acknowledge it: each is silent, and its pod or node is not
	// Ready.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Gone []OutOfSyncProxy `json:"gone,omitempty"`
	// pods is the number of running pods of the namespace.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`
	// proxiedPods is the number of those with a proxy, by which they could send requests to the
	// Service.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ProxiedPods int32 `json:"proxiedPods"`
	// routingPods is the number of those with a proxy that routes requests to the Service.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RoutingPods int32 `json:"routingPods"`
}

// ObservedVariation holds the observations of a variation.
type ObservedVariation struct {
	// variation names the variation.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// readyEndpoints can take requests.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyEndpoints int32 `json:"readyEndpoints"`
	// targets are all its endpoints, ready or not.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Targets int32 `json:"targets"`
	// requests is the number of requests that were answered within the window.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Requests *int64 `json:"requests,omitempty"`
	// failed requests among them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed *int64 `json:"failed,omitempty"`
	// inFlight requests have no answer yet.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InFlight *int64 `json:"inFlight,omitempty"`
	// sharePercent is the share of the answered requests in percent, rounded.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SharePercent *int32 `json:"sharePercent,omitempty"`
	// uncountedProxies is the number of proxies that send requests to the variation and are not
	// in the numbers above. The discovery server has no room for their counts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UncountedProxies *int64 `json:"uncountedProxies,omitempty"`
	// windowSeconds is how long was counted.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	WindowSeconds int32 `json:"windowSeconds,omitempty"`
}

// ABReleaseStatus is the effective split, and its state.
type ABReleaseStatus struct {
	// conditions are Ready, Acknowledged, Degraded, and Reconciling or Stalled while they are
	// True. The reason of Degraded is the most severe of Contradicted, SelectorsOverlap,
	// IPv6NotSplit, NotYetRedirected, ShareStarved and NoReadyEndpoints; its message tells all
	// that hold.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// split is the effective split, for people: "stable 90 / canary 10".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Split string `json:"split,omitempty"`
	// activeVariation gets the requests when no run is on: the stable variation until a run was
	// promoted. It is set with spec.rollout.
	// +optional
	ActiveVariation VariationName `json:"activeVariation,omitempty"`
	// rollout is the state of the runs of the release.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`
	// effective is the split that proxies have to have; it stays when the spec becomes invalid.
	// +optional
	Effective *EffectiveSplit `json:"effective,omitempty"`
	// managementStartTime is when proxies were first told of the Service, by its label or by this
	// release. Connections that pods have kept since before go past the split.
	// +optional
	ManagementStartTime *metav1.Time `json:"managementStartTime,omitempty"`
	// effectiveTime is when it was decided. The deadline of the acknowledgment begins then.
	// +optional
	EffectiveTime *metav1.Time `json:"effectiveTime,omitempty"`
	// wanted are the weights of the spec; the effective ones differ while a variation has no
	// ready endpoints.
	// +optional
	// +listType=map
	// +listMapKey=variation
	// +kubebuilder:validation:MaxItems=8
	Wanted []WantedWeight `json:"wanted,omitempty"`
	// clamped variations have no ready endpoints.
	// +optional
	// +listType=map
	// +listMapKey=variation
	// +kubebuilder:validation:MaxItems=8
	Clamped []ClampedVariation `json:"clamped,omitempty"`
	// acknowledged counts the proxies that have acknowledged the effective split.
	// +optional
	Acknowledged *SplitAcknowledgment `json:"acknowledged,omitempty"`
	// routers are the states of routers that the next leader needs.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Routers []ReleaseRouterStatus `json:"routers,omitempty"`
	// observed holds the observations of each variation.
	// +optional
	// +listType=map
	// +listMapKey=variation
	// +kubebuilder:validation:MaxItems=8
	Observed []ObservedVariation `json:"observed,omitempty"`
}
