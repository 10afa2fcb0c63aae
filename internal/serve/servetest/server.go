// SPDX-License-Identifier: Apache-2.0

package servetest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Sent is a request that the API server got.
type Sent struct {
	Method, Path, Body string
	Header             http.Header
	// Certificates is how many certificates of the client came with it.
	Certificates int
}

// Server is an API server that notes its requests, and stores no object: the answer to a POST and a PUT is their body, and
// all else is not found. Namespaces are listed by no caller.
type Server struct {
	// Config has an identity in each way that a configuration can have at once.
	Config *rest.Config

	mu   sync.Mutex
	sent []Sent
}

// Identity is in each credential of the server's own.
const Identity = "of-the-server"

func newServer(t *testing.T) *Server {
	t.Helper()
	s := &Server{}
	http1 := httptest.NewUnstartedServer(http.HandlerFunc(s.answer))
	http1.TLS = &tls.Config{ClientAuth: tls.RequestClientCert} //nolint:gosec // a server of the test
	http1.StartTLS()
	t.Cleanup(http1.Close)
	key, err := x509.MarshalPKCS8PrivateKey(http1.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: http1.Certificate().Raw})
	s.Config = &rest.Config{
		Host: http1.URL, BearerToken: Identity, UserAgent: Identity, Impersonate: rest.ImpersonationConfig{UserName: Identity, Groups: []string{Identity}},
		TLSClientConfig: rest.TLSClientConfig{CAData: certificate, CertData: certificate, KeyData: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})},
	}
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Wrapped", Identity)
			return next.RoundTrip(r)
		})
	})
	return s
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.sent = append(s.sent, Sent{r.Method, r.URL.Path, string(body), r.Header.Clone(), len(r.TLS.PeerCertificates)})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		_, _ = io.Copy(w, bytes.NewReader(body)) // a client that went away needs no answer
		return
	}
	code, reason := http.StatusNotFound, metav1.StatusReasonNotFound
	if r.URL.Path == "/api/v1/namespaces" {
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // a client that went away needs no answer
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code), //nolint:gosec // a code of HTTP
		Details: &metav1.StatusDetails{Name: "none"},
	})
}

// Sent returns the requests that the API server got, and forgets them.
func (s *Server) Sent() []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}
