// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// VariationWorkloadKind is the kind of a workload that a variation names.
// +kubebuilder:validation:Enum=Deployment;StatefulSet;DaemonSet;ReplicaSet;Job
type VariationWorkloadKind string

// The kinds of workloads.
const (
	// VariationDeployment is that of apps.
	VariationDeployment VariationWorkloadKind = "Deployment"
	// VariationStatefulSet is that of apps.
	VariationStatefulSet VariationWorkloadKind = "StatefulSet"
	// VariationDaemonSet is that of apps.
	VariationDaemonSet VariationWorkloadKind = "DaemonSet"
	// VariationReplicaSet is one of apps that belongs to no Deployment.
	VariationReplicaSet VariationWorkloadKind = "ReplicaSet"
	// VariationJob is that of batch.
	VariationJob VariationWorkloadKind = "Job"
)

// TrafficSplitType is the property of requests that divides them.
// +kubebuilder:validation:Enum=Percentage;Sticky;Header
type TrafficSplitType string

// The types of split.
const (
	// TrafficSplitPercentage draws each request by itself.
	TrafficSplitPercentage TrafficSplitType = "Percentage"
	// TrafficSplitSticky keeps a visitor, known by a header or a cookie, at a variation.
	TrafficSplitSticky TrafficSplitType = "Sticky"
	// TrafficSplitHeader sends values of a header to variations, and divides the rest.
	TrafficSplitHeader TrafficSplitType = "Header"
)

// VisitorPolicy decides about visitors without the cookie.
// +kubebuilder:validation:Enum=Assign;Ignore
type VisitorPolicy string

// The policies.
const (
	// VisitorsAssign has the proxy give them one.
	VisitorsAssign VisitorPolicy = "Assign"
	// VisitorsIgnore draws each of their requests by itself.
	VisitorsIgnore VisitorPolicy = "Ignore"
)

// CookieSecurity says over which connections browsers send a cookie.
// +kubebuilder:validation:Enum=Always;Never
type CookieSecurity string

// The kinds of security.
const (
	// CookieSecureAlways has browsers send the cookie over TLS alone.
	CookieSecureAlways CookieSecurity = "Always"
	// CookieSecureNever has browsers send the cookie over any connection.
	CookieSecureNever CookieSecurity = "Never"
)

// CookieDomain is a domain of at least two labels.
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern="^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$"
type CookieDomain string

// Percentage of all requests: a whole number, or a string with at most two decimals.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=6
// +kubebuilder:validation:Pattern=`^(100([.]00?)?|[1-9]?[0-9]([.][0-9]{1,2})?)$`
type Percentage struct {
	intstr.IntOrString `json:",inline"`
}

// Percent returns a whole percentage.
func Percent(whole int32) Percentage { return Percentage{intstr.FromInt32(whole)} }

// HeaderName is the name of a header that clients send.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['connection', 'content-length', 'cookie', 'expect', 'host', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'set-cookie', 'te', 'trailer', 'transfer-encoding', 'upgrade']) && !self.lowerAscii().startsWith('x-envoy-') && !self.lowerAscii().startsWith('x-plb-')",message="this header belongs to the connection or to proxies: name another"
type HeaderName string

// Sticky is the property of a request that identifies a visitor.
//
// +kubebuilder:validation:XValidation:rule="has(self.header) != has(self.cookie)",message="visitors are known by a header or by a cookie: give one of them"
// +kubebuilder:validation:XValidation:rule="has(self.cookie) || !has(self.visitors)",message="visitors is about a cookie; proxies give visitors no header",fieldPath=".visitors"
// +kubebuilder:validation:XValidation:rule="(!has(self.domain) && !has(self.secure)) || (has(self.cookie) && !(has(self.visitors) && self.visitors == 'Ignore'))",message="domain and secure are about the cookie that proxies give: name a cookie, and leave visitors out or set it to Assign"
// +kubebuilder:validation:XValidation:rule="!has(self.cookie) || (has(self.visitors) && self.visitors == 'Ignore') || (has(self.secure) && self.secure == 'Always') || !self.cookie.lowerAscii().matches('^__(host|secure)-')",message="browsers take such a cookie with the attribute Secure alone: set secure to Always, name it otherwise, or let the application give it (visitors: Ignore)",fieldPath=".cookie"
// +kubebuilder:validation:XValidation:rule="!has(self.cookie) || !has(self.domain) || !self.cookie.lowerAscii().startsWith('__host-')",message="browsers take a cookie with a name that begins with __Host- only without a domain: take the domain out, or name it otherwise",fieldPath=".domain"
type Sticky struct {
	// header is the header with the visitor as its value. Requests without it are drawn by
	// themselves.
	// +optional
	Header HeaderName `json:"header,omitempty"`
	// cookie is the cookie with the visitor as its value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
	Cookie string `json:"cookie,omitempty"`
	// visitors decides about visitors without the cookie. With Assign proxies give them one.
	// With Ignore proxies draw each of their requests by itself, because the application gives
	// the cookie. If unset, Assign.
	// +optional
	Visitors VisitorPolicy `json:"visitors,omitempty"`
	// domain is the domain of the cookie that proxies give: its hosts and all below send it. If
	// unset, only the host does that gave it.
	// +optional
	Domain CookieDomain `json:"domain,omitempty"`
	// secure says whether browsers send the cookie that proxies give over TLS alone (Always), or
	// over any connection (Never). If unset, Never.
	// +optional
	Secure CookieSecurity `json:"secure,omitempty"`
}

// HeaderMatch sends requests with certain values of a header to certain variations. They count
// neither for the share of a variation nor for its measurements.
type HeaderMatch struct {
	// header is the header that is looked at.
	// +required
	Header HeaderName `json:"header,omitempty"`
	// values are the values of the header, and the variation each goes to. A value is printable
	// ASCII without spaces around.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && size(k) <= 256)",message="a value has 1 to 256 characters"
	Values map[string]VariationName `json:"values,omitempty"`
}

// TrafficSplit says which requests go to which variation.
//
// +kubebuilder:validation:XValidation:rule="self.percentages.all(k, double(string(self.percentages[k])) >= 0.0) && int(self.percentages.map(k, double(string(self.percentages[k]))).sum() * 100.0 + 0.5) == 10000",message="the percentages must add up to 100, and must not be negative",fieldPath=".percentages"
// +kubebuilder:validation:XValidation:rule="self.type != 'Sticky' || has(self.sticky)",message="type Sticky needs sticky: a header or a cookie that visitors are known by",fieldPath=".sticky"
// +kubebuilder:validation:XValidation:rule="self.type != 'Percentage' || !has(self.sticky)",message="type Percentage draws each request by itself; use Sticky",fieldPath=".sticky"
// +kubebuilder:validation:XValidation:rule="self.type != 'Header' || has(self.headerMatch)",message="type Header needs headerMatch: a header, and which value goes where",fieldPath=".headerMatch"
// +kubebuilder:validation:XValidation:rule="self.type == 'Header' || !has(self.headerMatch)",message="only type Header looks at headerMatch",fieldPath=".headerMatch"
// +kubebuilder:validation:XValidation:rule="!has(self.overrideHeader) || !has(self.headerMatch) || self.overrideHeader.lowerAscii() != self.headerMatch.header.lowerAscii()",message="overrideHeader and headerMatch look at one header, and mean different things by its value",fieldPath=".overrideHeader"
type TrafficSplit struct {
	// type is the property of requests that divides them.
	// +required
	Type TrafficSplitType `json:"type,omitempty"`
	// percentages are the percentages of the requests, by variation: whole numbers, or strings
	// with at most two decimals such as "0.25". They add up to 100. Of type Header they are
	// about the requests that no value matches.
	// +required
	// +kubebuilder:validation:MinProperties=2
	// +kubebuilder:validation:MaxProperties=8
	Percentages map[string]Percentage `json:"percentages,omitempty"`
	// sticky identifies visitors, who then keep their variation while weights only grow.
	// +optional
	Sticky *Sticky `json:"sticky,omitempty"`
	// headerMatch sends values of a header to variations.
	// +optional
	HeaderMatch *HeaderMatch `json:"headerMatch,omitempty"`
	// overrideHeader is a header that names the variation for a request, before the
	// percentages, for tests. If unset, requests cannot override the percentages.
	// +optional
	OverrideHeader HeaderName `json:"overrideHeader,omitempty"`
}
