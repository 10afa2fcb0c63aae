// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"slices"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik/provider"
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
		declares := func(c v1alpha1.ReceiverCapability) bool { return slices.Contains(spec.Webhook.Capabilities, c) }
		can := connectors.Webhook.Capabilities
		can.Sticky = can.Sticky && declares(v1alpha1.ReceiverSticky)
		can.AnonymousVisitors = can.AnonymousVisitors && declares(v1alpha1.ReceiverAnonymousVisitors)
		can.HeaderMap = can.HeaderMap && declares(v1alpha1.ReceiverHeaderMap)
		can.Override = can.Override && declares(v1alpha1.ReceiverOverride)
		return can
	case v1alpha1.TrafficRouterGatewayAPI:
		return connectors.GatewayAPI.Capabilities
	case v1alpha1.TrafficRouterTraefik:
		if spec.Traefik == nil {
			return traffic.Capabilities{}
		}
		return provider.CapabilitiesOf(programsOf(spec.Traefik))
	default:
		return traffic.Capabilities{}
	}
}
