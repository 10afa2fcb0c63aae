// SPDX-License-Identifier: Apache-2.0

package edgetraffic

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// StartUpstream starts a server of HTTP/1.1 and HTTP/2 that answers after a delay with its name, with the header
// of visitors that the server got, and with a trailer. The result is host:port.
func StartUpstream(tb testing.TB, name string, delay time.Duration) string {
	tb.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the client is gone
		}
		if delay > 0 {
			<-time.After(delay)
		}
		w.Header().Set("Variation", name)
		w.Header().Set("Saw-Visitor", r.Header.Get(ir.VisitorHeader))
		w.Header().Set("Saw-Proto", r.Proto)
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = io.WriteString(w, name)
		w.Header().Set("Grpc-Status", "0")
	}))
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	tb.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
