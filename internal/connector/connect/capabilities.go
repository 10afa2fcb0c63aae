// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
)

// Capabilities returns the abilities of a TrafficRouter. A type that it does not know has none.
func Capabilities(spec *v1alpha1.TrafficRouterSpec) traffic.Capabilities {
	switch spec.Type {
	case v1alpha1.TrafficRouterWebhook:
		if spec.Webhook == nil {
			return traffic.Capabilities{}
		}
		declares := func(c traffic.Capability) bool {
			return slices.Contains(spec.Webhook.Capabilities, v1alpha1.ReceiverCapability(c))
		}
		can := connectors.Webhook.Capabilities
		can.Sticky = can.Sticky && declares(traffic.CapabilitySticky)
		can.AnonymousVisitors = can.AnonymousVisitors && declares(traffic.CapabilityAnonymousVisitors)
		can.HeaderMap = can.HeaderMap && declares(traffic.CapabilityHeaderMap)
		can.Override = can.Override && declares(traffic.CapabilityOverride)
		return can
	default:
		return traffic.Capabilities{}
	}
}
