// SPDX-License-Identifier: Apache-2.0

// Package portforward reaches a port of a pod by way of the API server, as `kubectl
// port-forward` does. The kubelet of the pod opens the connection within the pod, so a
// server at a loopback address of the pod is reached too. It takes the right to create
// pods/portforward in the namespace of the pod. No port is opened where the caller runs.
package portforward

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	client "k8s.io/client-go/tools/portforward"
	spdytransport "k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Target is a port of a pod.
type Target struct {
	Namespace, Pod string
	// Address is the IP address in the status of the pod, for clients in the cluster; forwarding needs none.
	Address string
	Port    int
}

// Right names what it takes to reach ports of the pods of a namespace.
func Right(namespace string) string { return "create pods/portforward in namespace " + namespace }

// DeniedError says that the API server does not let the caller reach the pod. It wraps the
// words of the API server.
type DeniedError struct {
	Target Target
	Cause  error
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("it takes the permission to %s: %v", Right(e.Target.Namespace), e.Cause)
}

// Unwrap is the answer of the API server, a Status.
func (e *DeniedError) Unwrap() error { return e.Cause }

// dial opens one connection to a target.
func dial(ctx context.Context, config *rest.Config, target Target) (*conn, error) {
	at, err := address(config, target)
	if err != nil {
		return nil, err
	}
	connection, err := upgrade(ctx, config, at)
	if apierrors.IsForbidden(err) {
		return nil, &DeniedError{target, err}
	}
	if err != nil {
		return nil, err
	}
	c, err := open(connection, target.Port)
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return c, nil
}

// address of the subresource.
func address(config *rest.Config, target Target) (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	return base.JoinPath("api", "v1", "namespaces", target.Namespace, "pods", target.Pod, "portforward"), nil
}

// upgrade asks for WebSockets first, and for SPDY where the API server, or a proxy before
// it, has none. That the caller may not is told as the first answer tells it.
func upgrade(ctx context.Context, config *rest.Config, at *url.URL) (httpstream.Connection, error) {
	connection, err := overWebSocket(ctx, config, at)
	if err == nil || !httpstream.IsUpgradeFailure(err) && !httpstream.IsHTTPSProxyError(err) {
		return connection, err
	}
	connection, fallback := overSPDY(ctx, config, at)
	if fallback == nil {
		return connection, nil
	}
	var failure *httpstream.UpgradeFailureError
	if errors.As(err, &failure) && errors.As(failure.Cause, new(*apierrors.StatusError)) {
		return nil, failure.Cause
	}
	return nil, fallback
}

// overWebSocket has SPDY within a WebSocket.
func overWebSocket(ctx context.Context, config *rest.Config, at *url.URL) (httpstream.Connection, error) {
	transport, holder, err := websocket.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	socket, err := websocket.Negotiate(transport, holder, request, portforward.WebsocketsSPDYTunnelingPortForwardV1)
	if err != nil {
		return nil, err
	}
	return spdy.NewClientConnectionWithPings(client.NewTunnelingConnectionWithLogger(klog.FromContext(ctx), socket), client.PingPeriod)
}

func overSPDY(ctx context.Context, config *rest.Config, at *url.URL) (httpstream.Connection, error) {
	transport, upgrader, err := spdytransport.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	connection, _, err := spdytransport.NegotiateStreaming(upgrader, &http.Client{Transport: transport}, request, portforward.PortForwardV1Name)
	return connection, err
}

// open the two streams that stand for one connection to the port.
func open(connection httpstream.Connection, port int) (*conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("opening the stream of errors: %w", err)
	}
	if err := failures.Close(); err != nil { // it is read only
		return nil, fmt.Errorf("opening the stream of errors: %w", err)
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("opening the stream of data: %w", err)
	}
	return newConn(connection, data, failures, port), nil
}
