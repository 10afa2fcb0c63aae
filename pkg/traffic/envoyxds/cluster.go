// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"cmp"
	"math"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	casev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/header_formatters/preserve_case/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// What is fixed for every cluster.
const (
	// connectTimeout bounds the time that a request loses to an endpoint that swallows
	// packets: the request is then sent to another one, see [retries]. A Service may set
	// another.
	connectTimeout = time.Second
	// endpointsTimeout lets a cluster live without endpoints if nobody answers for
	// them: until then Envoy acknowledges no other cluster either.
	endpointsTimeout = 5 * time.Second
	// upstreamIdle is half of the shortest keep-alive that a common server has by default,
	// which is gunicorn's: a request that was sent while the server ends its connection
	// fails, because the server may have seen the request. A Service may set another.
	upstreamIdle = time.Second
	// maxHeaders and maxHeadersKiB leave it to the applications what is too much.
	maxHeaders    = 1000
	maxHeadersKiB = 1024
)

// cluster depends on its name and on the connections that its Service and its port ask for: no split and
// no endpoint changes one. Envoy warms a cluster that changes anew, and opens new connections.
func cluster(name string, to connections) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: overADS(endpointsTimeout)},
		ConnectTimeout:       durationpb.New(to.connect),
		LbPolicy:             clusterv3.Cluster_LEAST_REQUEST,
		CircuitBreakers:      wideOpen(),
		OutlierDetection:     ejection(),
		CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{
			// When every endpoint is ejected, Envoy asks them all: a version that comes back
			// at its former addresses has requests at once. With an endpoint that is not
			// ejected there is no panic, see [oneIsEnough].
			HealthyPanicThreshold: &typev3.Percent{Value: 1},
			// A pod that begins to end gets no requests from now on, not from a second later.
			UpdateMergeWindow: durationpb.New(0),
		},
		UpstreamConnectionOptions: keepalive(to.user),
		UpstreamBindConfig:        endsUnacknowledged(to.user),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": packed(upstreamHTTP(to.idle)),
		},
	}
}

// connections to the endpoints of a port: how long each may take to open, be idle, and wait for
// the acknowledgment of what was sent.
type connections struct{ connect, idle, user time.Duration }

func connectionsOf(s ir.Settings, p ir.Protocol) connections {
	c := connections{connect: cmp.Or(s.ConnectTimeout, connectTimeout), idle: cmp.Or(s.IdleTimeout, upstreamIdle)}
	c.user = max(userTimeoutOf(p), c.connect) // it holds for the attempt to connect as well
	return c
}

func (c connections) digest(d *digest) { d.add(c.connect.String(), c.idle.String(), c.user.String()) }

// overADS gets a resource over the stream that everything comes over.
func overADS(timeout time.Duration) *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
		InitialFetchTimeout:   durationpb.New(timeout),
	}
}

// wideOpen never refuses a request that a client without a proxy could have made;
// Envoy's default is 1024 of everything.
func wideOpen() *clusterv3.CircuitBreakers {
	most := wrapperspb.UInt32(math.MaxUint32)
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections: most, MaxPendingRequests: most, MaxRequests: most, MaxRetries: most,
	}}}
}

// upstreamHTTP speaks to the upstream what the client speaks.
func upstreamHTTP(idle time.Duration) *httpv3.HttpProtocolOptions {
	return &httpv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			IdleTimeout:          durationpb.New(idle),
			MaxHeadersCount:      wrapperspb.UInt32(maxHeaders),
			MaxResponseHeadersKb: wrapperspb.UInt32(maxHeadersKiB),
		},
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &httpv3.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions:  http1(),
				Http2ProtocolOptions: http2(),
			},
		},
	}
}

// http1 leaves headers as they are written, and trailers.
func http1() *corev3.Http1ProtocolOptions {
	return &corev3.Http1ProtocolOptions{
		HeaderKeyFormat: &corev3.Http1ProtocolOptions_HeaderKeyFormat{
			HeaderFormat: &corev3.Http1ProtocolOptions_HeaderKeyFormat_StatefulFormatter{
				StatefulFormatter: &corev3.TypedExtensionConfig{
					Name:        "envoy.http.stateful_header_formatters.preserve_case",
					TypedConfig: packed(&casev3.PreserveCaseFormatterConfig{ForwardReasonPhrase: true}),
				},
			},
		},
		EnableTrailers: true,
	}
}

// http2 allows WebSockets over HTTP/2 (https://www.rfc-editor.org/rfc/rfc8441).
func http2() *corev3.Http2ProtocolOptions { return &corev3.Http2ProtocolOptions{AllowConnect: true} }
