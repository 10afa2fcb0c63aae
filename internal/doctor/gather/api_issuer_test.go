// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/internal/doctor"
)

func TestTheIssuerIsThatOfTheDiscoveryDocument(t *testing.T) {
	answering := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/realm/.well-known/openid-configuration" || r.Header.Get("Authorization") != "" {
				t.Errorf("asked for %s with %v", r.URL, r.Header)
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body) // a client that went away needs no answer
		}
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    doctor.Read[string]
	}{
		"a document":            {answering(http.StatusOK, `{"issuer": "https://id.example", "more": 1}`), doctor.Got("https://id.example")},
		"a document without it": {answering(http.StatusOK, `{}`), doctor.Got("")},
		"a page":                {answering(http.StatusOK, `<html>`), doctor.Gone[string]()},
		"no document":           {answering(http.StatusNotFound, ``), doctor.Gone[string]()},
		"a redirect":            {answering(http.StatusFound, ``), doctor.Gone[string]()},
		"a server in trouble":   {answering(http.StatusServiceUnavailable, ``), doctor.Read[string]{Reason: "the issuer answered 503 Service Unavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			if diff := cmp.Diff(tc.want, issuerOf(t.Context(), newIssuerClient(), server.URL+"/realm/")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnIssuerThatThisMachineDoesNotReachIsUnknown(t *testing.T) {
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, url := range []string{untrusted.URL, gone.URL} {
		if got := issuerOf(t.Context(), newIssuerClient(), url); got.State != doctor.ReadUnknown || got.Reason == "" {
			t.Errorf("%s: %+v", url, got)
		}
	}
}

func TestTheClockOfAPodIsComparedWithThatOfTheAPIServer(t *testing.T) {
	pod := func(date time.Time, code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", testNow.Format(http.TimeFormat))
			if strings.HasSuffix(r.URL.Path, "/pods/api-1:8080/proxy/metrics") {
				w.Header().Set("Date", date.Format(http.TimeFormat))
				w.WriteHeader(code)
			} else if r.URL.Path != "/version" {
				t.Errorf("asked for %s", r.URL)
			}
		}
	}
	right := "get pods/proxy in namespace plumbline-system"
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    doctor.Read[time.Duration]
	}{
		"a clock ahead":            {pod(testNow.Add(time.Minute), http.StatusOK), doctor.Got(time.Minute)},
		"a clock behind":           {pod(testNow.Add(-time.Hour), http.StatusOK), doctor.Got(-time.Hour)},
		"a pod that is away":       {pod(testNow, http.StatusServiceUnavailable), doctor.Read[time.Duration]{Reason: "the answer is 503 Service Unavailable"}},
		"a user without a right":   {pod(testNow, http.StatusForbidden), doctor.Read[time.Duration]{Reason: "the answer is 403 Forbidden", Right: right}},
		"an answer without a date": {func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil }, doctor.Read[time.Duration]{Reason: "any"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			r, err := newReader(&rest.Config{Host: server.URL}, Options{Namespace: "plumbline-system", Now: func() time.Time { return testNow }})
			if err != nil {
				t.Fatal(err)
			}
			got := r.readSkew(t.Context(), "api-1", 8080)
			reasons := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Reason" && tc.want.Reason == "any" }, cmpopts.IgnoreTypes(""))
			if diff := cmp.Diff(tc.want, got, reasons); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
