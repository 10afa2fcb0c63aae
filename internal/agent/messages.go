// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/plumbline-dev/plumbline/internal/agent/follow"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// requestOf a request is its message.
func requestOf(r follow.Request) *discovery.DeltaDiscoveryRequest {
	m := &discovery.DeltaDiscoveryRequest{
		TypeUrl: r.Type.URL(), ResourceNamesSubscribe: r.Subscribe, ResourceNamesUnsubscribe: r.Unsubscribe,
		InitialResourceVersions: r.Initial, ResponseNonce: r.Nonce,
	}
	if r.Refused != "" {
		m.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: r.Refused}
	}
	return m
}

// responseOf reads a message; false for a type that is not known. A version that is none of ours is an
// error: nothing could be told about it.
func responseOf(m *discovery.DeltaDiscoveryResponse) (r follow.Response, known bool, err error) {
	t, known := ads.TypeOf(m.GetTypeUrl())
	if !known {
		return r, false, nil
	}
	r = follow.Response{Type: t, Nonce: m.GetNonce(), Removed: m.GetRemovedResources()}
	for _, one := range m.GetResources() {
		version, err := ads.ParseVersion(one.GetVersion())
		if err != nil {
			return r, true, fmt.Errorf("reading resource %s: %w", one.GetName(), err)
		}
		body, err := proto.Marshal(one.GetResource())
		if err != nil {
			return r, true, fmt.Errorf("reading resource %s: %w", one.GetName(), err)
		}
		r.Resources = append(r.Resources, &ads.Resource{Type: t, Name: one.GetName(), Version: version, Body: body})
	}
	return r, true, nil
}
