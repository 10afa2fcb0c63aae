// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What a proxy does by itself when an endpoint cannot be reached. It needs no discovery
// server for any of it.
const (
	// maxRetries of a request that was never sent. They make two rounds of attempts: where
	// three of four addresses swallow packets, the fourth one may stall for a second.
	maxRetries = 7
	// ownTries are the attempts at endpoints of the variation itself; the others go to
	// the endpoints of the stable one, where a cluster has these.
	ownTries = 2
	// selections bounds the search for an endpoint that was not tried yet. Envoy prefers
	// endpoints with few requests, and those that cannot be reached have none.
	selections = 50
	// retryPause and maxRetryPause are short: another endpoint is as good at once.
	retryPause    = time.Millisecond
	maxRetryPause = 10 * time.Millisecond
	// retryBody and edgeRetryBody bound the bytes of a body that a proxy keeps for a retry, of
	// each request. A longer body is sent on, and is not sent a second time.
	retryBody     = 1 << 20
	edgeRetryBody = 256 << 10

	// connectFailures in a row eject an endpoint. Envoy takes a connection that breaks for
	// a failure to connect as well, but a connection that opens ends the row. With fewer,
	// an application that breaks off some requests would be ejected.
	connectFailures = 5
	// ejectionTime grows with each ejection of an endpoint in turn, to maxEjectionTime.
	ejectionTime    = 2 * time.Second
	maxEjectionTime = 30 * time.Second
	ejectionLook    = time.Second

	// oneIsEnough is an over-provisioning factor, in percent, with which one healthy endpoint of
	// ten thousand keeps all requests of its priority.
	oneIsEnough = 1_000_000
)

// ejection leaves out an endpoint that cannot be reached. What an application answers never
// ejects: a variation that fails would look healthy.
func ejection() *clusterv3.OutlierDetection {
	never, always := wrapperspb.UInt32(0), wrapperspb.UInt32(100)
	return &clusterv3.OutlierDetection{
		SplitExternalLocalOriginErrors:         true,
		ConsecutiveLocalOriginFailure:          wrapperspb.UInt32(connectFailures),
		EnforcingConsecutiveLocalOriginFailure: always,
		EnforcingConsecutive_5Xx:               never,
		EnforcingConsecutiveGatewayFailure:     never,
		EnforcingSuccessRate:                   never,
		EnforcingLocalOriginSuccessRate:        never,
		Interval:                               durationpb.New(ejectionLook),
		BaseEjectionTime:                       durationpb.New(ejectionTime),
		MaxEjectionTime:                        durationpb.New(maxEjectionTime),
		MaxEjectionPercent:                     always,
	}
}

// retries sends a request elsewhere that no server can have seen: its connection failed, its
// stream was refused, or its connection ended before it. Nothing else is sent twice.
func retries() *routev3.RetryPolicy {
	return &routev3.RetryPolicy{
		RetryOn:    "connect-failure,refused-stream,reset-before-request",
		NumRetries: wrapperspb.UInt32(maxRetries),
		RetryHostPredicate: []*routev3.RetryPolicy_RetryHostPredicate{{
			Name:       "envoy.retry_host_predicates.previous_hosts",
			ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: packed(&hostsv3.PreviousHostsPredicate{})},
		}},
		HostSelectionRetryMaxAttempts: selections,
		RetryPriority: &routev3.RetryPolicy_RetryPriority{
			Name: "envoy.retry_priorities.previous_priorities",
			ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{
				TypedConfig: packed(&prioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: ownTries}),
			},
		},
		RetryBackOff: &routev3.RetryPolicy_RetryBackOff{BaseInterval: durationpb.New(retryPause), MaxInterval: durationpb.New(maxRetryPause)},
	}
}

// keepsItsShare has no request go to a lower priority while one endpoint of a higher one is
// healthy. By default Envoy spills requests when less than 72 % are.
func keepsItsShare() *endpointv3.ClusterLoadAssignment_Policy {
	return &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(oneIsEnough)}
}
