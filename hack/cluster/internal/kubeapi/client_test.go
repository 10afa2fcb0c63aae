// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/pki"
)

// seen is what the fake API server was asked.
type seen struct{ Method, Target, ContentType, User, Body string }

// serve starts a TLS server that demands a client certificate, as an API server
// does, and returns a client of it and the requests that arrive.
func serve(t *testing.T, status int, body string) (*Client, *[]seen) {
	t.Helper()
	authority, err := pki.NewAuthority("ca", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	issue := func(subject pki.Subject) pki.Pair {
		pair, err := authority.Issue(subject)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	certificate := issue(pki.Subject{CommonName: "kube-apiserver", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	pair, err := tls.X509KeyPair(certificate.Certificate, certificate.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate)
	requests := &[]seen{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*requests = append(*requests, seen{r.Method, r.RequestURI, r.Header.Get("Content-Type"), r.TLS.PeerCertificates[0].Subject.CommonName, string(data)})
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	admin := issue(pki.Subject{CommonName: "admin"})
	client, err := New(server.URL, authority.Certificate, admin.Certificate, admin.Key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client, requests
}

func TestRequests(t *testing.T) {
	cases := map[string]struct {
		act  func(*testing.T, *Client) error
		want seen
	}{
		"readiness": {
			func(t *testing.T, c *Client) error { return c.Ready(t.Context()) },
			seen{Method: "GET", Target: "/readyz", User: "admin"},
		},
		"existence": {
			func(t *testing.T, c *Client) error { return c.Exists(t.Context(), "/api/v1/nodes/n") },
			seen{Method: "GET", Target: "/api/v1/nodes/n", User: "admin"},
		},
		"apply": {
			func(t *testing.T, c *Client) error { return c.Apply(t.Context(), "/api/v1/x", []byte("kind: X")) },
			seen{"PATCH", "/api/v1/x?fieldManager=plumbline-cluster&force=true", "application/apply-patch+yaml", "admin", "kind: X"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client, requests := serve(t, http.StatusOK, "{}")
			if err := tc.act(t, client); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]seen{tc.want}, *requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
		t.Run(name+" that is refused", func(t *testing.T) {
			client, _ := serve(t, http.StatusForbidden, "no, because")
			var status *StatusError
			if err := tc.act(t, client); !errors.As(err, &status) || status.Code != 403 || !strings.Contains(err.Error(), "no, because") {
				t.Errorf("error %v, want status 403 with the server's words", err)
			}
		})
	}
}

func TestCondition(t *testing.T) {
	cases := map[string]struct {
		body string
		want string // in the error; "" means none
	}{
		"true":                        {`{"status":{"conditions":[{"type":"Other","status":"False"},{"type":"Ready","status":"True"}]}}`, ""},
		"false, with its reason":      {`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"NoNet","message":"cni"}]}}`, "NoNet: cni"},
		"unknown is not true":         {`{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`, "is not Ready"},
		"absent is not true":          {`{"status":{}}`, "no condition Ready yet"},
		"a list without an answer":    {`{}`, "no condition Ready yet"},
		"an answer that is not JSON":  {`<html>`, "decoding"},
		"an answer of another shape":  {`{"status":{"conditions":3}}`, "decoding"},
		"another type that is true":   {`{"status":{"conditions":[{"type":"ReadyToo","status":"True"}]}}`, "no condition Ready yet"},
		"lower case true is no truth": {`{"status":{"conditions":[{"type":"Ready","status":"true"}]}}`, "is not Ready"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client, _ := serve(t, http.StatusOK, tc.body)
			err := client.Condition(t.Context(), "/x", "Ready")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Condition = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestNewRefusesBadCredentials(t *testing.T) {
	authority, err := pki.NewAuthority("ca", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New("https://x", authority.Certificate, []byte("no"), []byte("no")); err == nil {
		t.Error("a certificate that is none was accepted")
	}
	if _, err := New("https://x", []byte("no"), authority.Certificate, authority.Key); err == nil {
		t.Error("an authority that is none was accepted")
	}
}

func TestServerOfAnotherAuthorityIsNotTrusted(t *testing.T) {
	impostor := httptest.NewTLSServer(http.NotFoundHandler())
	defer impostor.Close()
	authority, err := pki.NewAuthority("ca", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	client, err := New(impostor.URL, authority.Certificate, authority.Certificate, authority.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Ready = %v", err)
	}
}
