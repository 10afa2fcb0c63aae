// SPDX-License-Identifier: Apache-2.0

package routers

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Report describes one TrafficRouter.
type Report struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Version string `json:"version,omitempty"`
	// Knowledge is the best that the router can tell of a split; empty while the discovery server has not looked at it.
	Knowledge string `json:"knowledge,omitempty"`
	// Capabilities are all of them, in the order of the reference page.
	Capabilities []Capability `json:"capabilities"`
	// Namespaces is the selector of the namespaces that can name the router; "" if no namespace can.
	Namespaces  string                  `json:"allowedNamespaces,omitempty"`
	Conditions  []metav1.Condition      `json:"conditions,omitempty"`
	LastRefusal *v1alpha1.RouterRefusal `json:"lastRefusal,omitempty"`
	// Releases name the router, in order. Unread says why the releases are not known.
	Releases []Release `json:"releases"`
	Unread   string    `json:"releasesUnread,omitempty"`
}

// Capability is an ability, and whether the router has it.
type Capability struct {
	Name string `json:"name"`
	Has  bool   `json:"has"`
}

// Release is a release that names a router.
type Release struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Split     string `json:"split,omitempty"`
	// Knowledge of all routers of the release together, and the message of its condition Acknowledged.
	Knowledge    string `json:"knowledge,omitempty"`
	Acknowledged string `json:"acknowledged,omitempty"`
	Ready        string `json:"ready,omitempty"`
}

// abilities are the capabilities that a router has or lacks.
var abilities = []traffic.Capability{
	traffic.CapabilitySticky, traffic.CapabilityAnonymousVisitors, traffic.CapabilityHeaderMap, traffic.CapabilityOverride,
	traffic.CapabilityOutcomes, traffic.CapabilityInFlight, traffic.CapabilityRollbackWithoutAPIServer,
}

// allNamespaces is the selector that selects each namespace.
const allNamespaces = "all"

// DescribeRouter returns the report of a router; releases are all that are known.
func DescribeRouter(router *v1alpha1.TrafficRouter, releases []v1alpha1.ABRelease) *Report {
	s := &router.Status
	r := &Report{
		Name: router.Name, Type: string(router.Spec.Type), Version: s.Version, Knowledge: string(s.Knowledge),
		Namespaces: describeSelector(router.Spec.AllowedNamespaces), Conditions: s.Conditions, LastRefusal: s.LastRefusal, Releases: []Release{},
	}
	for _, ability := range abilities {
		r.Capabilities = append(r.Capabilities, Capability{string(ability), slices.Contains(s.Capabilities, string(ability))})
	}
	for i := range releases {
		if releases[i].Spec.NamesRouter(router.Name) {
			r.Releases = append(r.Releases, describeRelease(&releases[i]))
		}
	}
	slices.SortFunc(r.Releases, func(a, b Release) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return r
}

func describeRelease(release *v1alpha1.ABRelease) Release {
	out := Release{Namespace: release.Namespace, Name: release.Name, Split: release.Status.Split}
	if acknowledged := release.Status.Acknowledged; acknowledged != nil {
		out.Knowledge = string(acknowledged.Knowledge)
	}
	if c := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionAcknowledged); c != nil {
		out.Acknowledged = c.Message
	}
	if c := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		out.Ready = string(c.Status)
	}
	return out
}

func describeSelector(selector *metav1.LabelSelector) string {
	switch {
	case selector == nil:
		return ""
	case len(selector.MatchLabels)+len(selector.MatchExpressions) == 0:
		return allNamespaces
	}
	return metav1.FormatLabelSelector(selector)
}

// Ready returns the condition Ready of the router; nil while the discovery server has not looked at it.
func (r *Report) Ready() *metav1.Condition {
	return meta.FindStatusCondition(r.Conditions, v1alpha1.ConditionReady)
}
