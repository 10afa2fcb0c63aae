// SPDX-License-Identifier: Apache-2.0

package inject

import (
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	connectionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
)

// bounded refuses connections over a bound, so that whoever opens the most does not
// take the memory of all.
func bounded(c BootstrapConfig, p *packer) *overloadv3.OverloadManager {
	return &overloadv3.OverloadManager{ResourceMonitors: []*overloadv3.ResourceMonitor{{
		Name: "envoy.resource_monitors.global_downstream_max_connections",
		ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: p.pack(&connectionsv3.DownstreamConnectionsConfig{
			MaxActiveDownstreamConnections: int64(c.MaxConnections),
		})},
	}}}
}
