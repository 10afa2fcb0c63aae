// SPDX-License-Identifier: Apache-2.0

package follow

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// routeOf a listener; false if the listener names none that can be read.
func routeOf(r *ads.Resource) (string, bool) {
	packed, listener := &anypb.Any{}, &listenerv3.Listener{}
	if proto.Unmarshal(r.Body, packed) != nil || packed.UnmarshalTo(listener) != nil {
		return "", false
	}
	for _, chain := range listener.GetFilterChains() {
		for _, filter := range chain.GetFilters() {
			manager := &hcmv3.HttpConnectionManager{}
			if filter.GetTypedConfig().UnmarshalTo(manager) == nil && manager.GetRds().GetRouteConfigName() != "" {
				return manager.GetRds().GetRouteConfigName(), true
			}
		}
	}
	return "", false
}
