// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// One port, TLS 1.3 with HTTP/2 on it and nothing else. Who speaks another way has a
// token that is served when it is shown the right way, so only the way is refused.
func TestNothingIsAnsweredInPlainText(t *testing.T) {
	r := shared.start(t, "one")
	s := shared.shop(t, enabled)
	s.service("web", backend.Start(t, "one"))
	s.awaitCopy()
	bundle, token := s.copied().Data[inject.CAKey], s.token(s.pod("front-0", proxied))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(bundle))
	named := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13, ServerName: "plumbline-xds." + rendered.Namespace + ".svc"}
	if code := s.firstResponse(r, credentials.NewTLS(named), token); code != codes.OK {
		t.Fatalf("with TLS the token gets %v", code)
	}

	get := "GET /proxies HTTP/1.1\r\nHost: " + r.address + "\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	t.Run("gRPC without TLS", func(t *testing.T) {
		if code := s.firstResponse(r, insecure.NewCredentials(), token); code != codes.Unavailable {
			t.Errorf("it is answered %v", code)
		}
	})
	for name, text := range map[string]string{
		"HTTP/1.1":                        get,
		"HTTP/1.1 that asks for HTTP/2":   "GET / HTTP/1.1\r\nHost: " + r.address + "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
		"HTTP/2 without TLS":              "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"the PROXY protocol before a GET": "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.DialTimeout("tcp", r.address, patience)
			s.must(err)
			defer func() { _ = c.Close() }() // the server has closed it
			if heard := hears(t, c, text); len(heard) > 0 {
				t.Errorf("it is answered %q", heard)
			}
		})
	}
	for name, newest := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.0": tls.VersionTLS10} {
		t.Run(name, func(t *testing.T) {
			_, err := secured(t, r.address, named, tls.VersionTLS10, newest, "h2")
			if err == nil || !strings.Contains(err.Error(), "protocol version") {
				t.Errorf("it is answered %v", err)
			}
		})
	}
	for name, protocols := range map[string][]string{"HTTP/1.1 over TLS": {"http/1.1"}, "no protocol over TLS": nil} {
		t.Run(name, func(t *testing.T) {
			// That the protocol is refused is seen after the handshake.
			c, err := secured(t, r.address, named, tls.VersionTLS13, tls.VersionTLS13, protocols...)
			s.must(err)
			if heard := hears(t, c, get); len(heard) > 0 {
				t.Errorf("it is answered %q", heard)
			}
		})
	}
}

// secured is a connection with these versions of TLS and protocols.
func secured(t *testing.T, address string, like *tls.Config, oldest, newest uint16, protocols ...string) (net.Conn, error) {
	t.Helper()
	config := like.Clone()
	config.MinVersion, config.MaxVersion, config.NextProtos = oldest, newest, protocols
	c, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() }) // the server has closed it
	return c, nil
}

// firstResponse to somebody who asks for clusters as a proxy does: how it ends, or OK.
func (s *shop) firstResponse(r *replica, how credentials.TransportCredentials, token string) codes.Code {
	s.Helper()
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(how))
	s.must(err)
	defer func() { s.must(conn.Close()) }()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token))
	if err == nil {
		_, err = asked(stream)
	}
	return status.Code(err)
}

// asked says of an Envoy that is new enough that it wants clusters.
func asked(stream grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) (*discoveryv3.DeltaDiscoveryResponse, error) {
	build := &corev3.BuildVersion{Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 40}}
	node := &corev3.Node{Id: "front-0", UserAgentName: "envoy", UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: build}}
	// A stream that has ended says why when it is read.
	if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: ads.Cluster.URL()}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream.Recv()
}

// hears what is answered to a text, until the other side closes the connection.
func hears(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		return "" // it is closed already
	}
	heard, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
	return string(heard)
}
