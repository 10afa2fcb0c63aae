// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
)

// backend answers with its name to GET, with name and body to POST, to gRPC as [calls]
// does, speaks HTTP/2 without TLS too, and gives back what comes on a connection that was upgraded or on
// a stream of /echo.
func backend(t testing.TB, name string) string { return backendAt(t, name, "127.0.0.1:0") }

func backendAt(t testing.TB, name, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address) //nolint:noctx // as a server would
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "%s %s", name, body)
	})
	mux.HandleFunc("/socket", func(w http.ResponseWriter, _ *http.Request) { upgraded(w, name) })
	mux.HandleFunc("POST /echo", streamed)
	called := grpc.NewServer()
	grpc_testing.RegisterTestServiceServer(called, calls{name: name})
	mux.Handle("POST /grpc.testing.TestService/", called)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}} //nolint:gosec // only the test is a client
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(called.Stop)
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// upgraded is what a WebSocket is to a proxy: bytes in both directions. The header
// says whose it is.
func upgraded(w http.ResponseWriter, name string) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nBackend: "+name+"\r\n\r\n"); err != nil {
		return
	}
	echo(conn, buffered.Reader)
}

func echo(conn net.Conn, from *bufio.Reader) {
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			return
		}
		if _, err := conn.Write(line); err != nil {
			return
		}
	}
}

// streamed is what a gRPC stream is to a proxy: an HTTP/2 request whose both
// directions stay open.
func streamed(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // HTTP/2 is anyway
	w.WriteHeader(http.StatusOK)
	if control.Flush() != nil {
		return
	}
	lines := bufio.NewReader(r.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		if _, err := w.Write(line); err != nil || control.Flush() != nil {
			return
		}
	}
}
