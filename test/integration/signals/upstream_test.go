// SPDX-License-Identifier: Apache-2.0

//go:build integration

package signals

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Paths of an upstream, one for each kind of answer.
const (
	pathOK, pathMissing, pathBroken = "/ok", "/missing", "/broken"
	pathHangs                       = "/hangs"
	pathStreams                     = "/streams" // begins to answer, and goes on until the client ends
	pathResets                      = "/resets"
	pathWebSocket                   = "/websocket"
	pathUnavailable                 = "/cart.Cart/Unavailable" // without a message, so without trailers
	pathGet                         = "/cart.Cart/Get"         // a message, and trailers
	pathFails                       = "/cart.Cart/Fails"       // a message, and trailers that say why not
	pathNotFound                    = "/cart.Cart/NotFound"
)

const grpcType = "application/grpc"

// upstream answers with its name.
func upstream(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Variation", name)
		answer(w, r)
	}))
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case pathMissing:
		w.WriteHeader(http.StatusNotFound)
	case pathBroken:
		w.WriteHeader(http.StatusInternalServerError)
	case pathHangs:
		<-r.Context().Done()
	case pathStreams:
		w.WriteHeader(http.StatusOK)
		if flusher, can := w.(http.Flusher); can {
			flusher.Flush()
		}
		<-r.Context().Done()
	case pathResets:
		panic(http.ErrAbortHandler)
	case pathWebSocket:
		echo(w)
	case pathUnavailable:
		w.Header().Set("Content-Type", grpcType)
		w.Header().Set("Grpc-Status", "14")
	case pathGet, pathFails, pathNotFound:
		status := map[string]string{pathGet: "0", pathFails: "13", pathNotFound: "5"}[r.URL.Path]
		w.Header().Set("Content-Type", grpcType)
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write([]byte{0, 0, 0, 0, 0}) // an empty message; the client counts
		w.Header().Set("Grpc-Status", status)
	}
}

// echo what comes after the upgrade, until the client ends.
func echo(w http.ResponseWriter) {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // the other side has
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	_, _ = io.Copy(c, buffered)
}
