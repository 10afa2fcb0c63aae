// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// An endpoint whose node is gone answers no packet, and its connections stay open. The kernel of
// the proxy ends them, because the kernel of the endpoint acknowledges whatever its application
// does. PINGs of HTTP/2 are no means: servers of gRPC end connections that have more than one
// in five minutes, with all their calls.
const (
	// userTimeout is as long as nginx waits for a server that reads none of a request: a
	// connection whose other side has no room for data ends as well.
	userTimeout = time.Minute
	// sharedUserTimeout is that of ports of HTTP/2, where all later requests wait on the same
	// connection. Their windows leave room for the data that a proxy may send, so a server that
	// does not read is not met. It is longer than a node stands still that is moved.
	sharedUserTimeout = 10 * time.Second
	// keepaliveProbes are lost before a connection ends, so that one loss ends none.
	keepaliveProbes = 5
)

func userTimeoutOf(p ir.Protocol) time.Duration {
	if p == ir.HTTP2 {
		return sharedUserTimeout
	}
	return userTimeout
}

// keepalive probes a connection on which nothing is under way, after half of the time, so that it
// ends when its other side has answered nothing for all of it.
func keepalive(silence time.Duration) *clusterv3.UpstreamConnectionOptions {
	seconds := func(d time.Duration) *wrapperspb.UInt32Value {
		return wrapperspb.UInt32(uint32(d / time.Second)) //nolint:gosec // a minute at most
	}
	return &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
		KeepaliveTime:     seconds(silence / 2),
		KeepaliveInterval: seconds(silence / 2 / keepaliveProbes),
		KeepaliveProbes:   wrapperspb.UInt32(keepaliveProbes),
	}}
}

// endsUnacknowledged ends a connection whose data the other side has not acknowledged for so long
// (RFC 5482). The numbers are those of Linux; Envoy has no name for the option.
func endsUnacknowledged(after time.Duration) *corev3.BindConfig {
	const ipprotoTCP, tcpUserTimeout = 6, 18
	return &corev3.BindConfig{SocketOptions: []*corev3.SocketOption{{
		Description: "TCP_USER_TIMEOUT", Level: ipprotoTCP, Name: tcpUserTimeout,
		Value: &corev3.SocketOption_IntValue{IntValue: after.Milliseconds()},
		State: corev3.SocketOption_STATE_PREBIND,
	}}}
}
