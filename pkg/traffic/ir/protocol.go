// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Protocol of a port.
type Protocol int

// The protocols.
const (
	// TCP is everything that is not declared HTTP: its connections are not touched.
	TCP Protocol = iota
	// HTTP is HTTP/1.1, WebSockets included.
	HTTP
	// HTTP2 is HTTP/2 without TLS, gRPC included.
	HTTP2
)

func (p Protocol) String() string { return [...]string{"TCP", "HTTP", "HTTP2"}[p] }

// declared are the protocols that mean HTTP, as appProtocol says them or as a port's
// name begins. The names with a prefix are those of Kubernetes
// (https://kubernetes.io/docs/concepts/services-networking/service/#application-protocol).
var declared = map[string]Protocol{
	"http": HTTP, "http1": HTTP, "ws": HTTP, "kubernetes.io/ws": HTTP,
	"http2": HTTP2, "h2c": HTTP2, "grpc": HTTP2, "grpc-web": HTTP, "kubernetes.io/h2c": HTTP2,
}

// encrypted are those that mean HTTP within TLS, of which a proxy sees nothing.
var encrypted = map[string]bool{"https": true, "tls": true, "wss": true, "kubernetes.io/wss": true}

// ProtocolOf decides by what is declared, never by the number: appProtocol, or if
// there is none the name, or what it begins with up to a hyphen.
func ProtocolOf(port corev1.ServicePort) Protocol {
	if port.AppProtocol != nil {
		return declared[strings.ToLower(*port.AppProtocol)]
	}
	return byName(port.Name)
}

func byName(name string) Protocol {
	if p, found := declared[name]; found {
		return p
	}
	prefix, _, _ := strings.Cut(name, "-")
	return declared[prefix]
}

// contradicts says that a port is declared to be HTTP in one place and to be TLS in
// another: to a TLS client a proxy that expects HTTP answers 400.
func contradicts(port corev1.ServicePort) bool {
	if port.AppProtocol == nil {
		_, rest, _ := strings.Cut(port.Name, "-")
		return byName(port.Name) != TCP && encrypted[rest]
	}
	prefix, _, _ := strings.Cut(port.Name, "-")
	app := strings.ToLower(*port.AppProtocol)
	return declared[app] != TCP && encrypted[prefix] || encrypted[app] && byName(port.Name) != TCP
}
