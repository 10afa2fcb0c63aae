// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"

	"github.com/plumbline-dev/plumbline/pkg/tlsport"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/selfsigned"
)

// dialTLS from an address of this machine; the error is that of the handshake.
func dialTLS(t *testing.T, from, to string) (*tls.Conn, error) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	raw, err := dialer.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() }) // it is closed
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	return conn, conn.HandshakeContext(t.Context())
}

// L3 of the review of the mesh.
func TestConnectionsOfOneAddressKeepNoOtherOut(t *testing.T) {
	serving := selfsigned.New(t, "xds")
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limits := portLimits
	limits.OfCaller, limits.Connections = 3, 4
	server := grpc.NewServer(serve.Options()...)
	served := make(chan error, 1)
	metrics := tlsport.NewMetrics("plumbline_xds")
	go func() {
		served <- server.Serve(listenTLS(tcp, limits, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil }, metrics, logr.Discard()))
	}()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	address := tcp.Addr().String()
	for i := range 3 {
		if _, err := dialTLS(t, "127.0.1.1", address); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	poll.Until(t, time.Minute, "the fourth of one address is refused", func() error {
		if _, err := dialTLS(t, "127.0.1.1", address); err == nil {
			return fmt.Errorf("it is served")
		}
		return nil
	})
	for i := range 2 { // and the second takes the place of one of the other address
		conn, err := dialTLS(t, "127.0.0.1", address)
		if err != nil {
			t.Fatalf("connection %d of another address: %v", i, err)
		}
		if p := conn.ConnectionState().NegotiatedProtocol; p != "h2" {
			t.Errorf("it speaks %q", p)
		}
	}
}

func TestCallersThatDoNotSpeakHTTP2AreNotAnswered(t *testing.T) {
	serving := selfsigned.New(t, "xds")
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := listenTLS(tcp, portLimits, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil }, tlsport.NewMetrics("plumbline_xds"), logr.Discard())
	t.Cleanup(func() { _ = listener.Close() }) // it is closed
	for name, protocols := range map[string][]string{"no protocol": nil, "HTTP/1.1": {"http/1.1"}} {
		raw, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
		if err := conn.HandshakeContext(t.Context()); err == nil { // the server has refused it after that
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
				t.Errorf("%s: the caller is answered", name)
			}
		}
		_ = conn.Close()
	}
}
