// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers requests; a request that hangs ends with the test.
func serve(t *testing.T, answer http.HandlerFunc) (*httptest.Server, Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, Config{URL: s.URL, CAFile: file}
}

func says(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that has read enough is gone
	}
}

func TestWhyAnAnswerDoesNotCount(t *testing.T) {
	const json = "application/json"
	list := "[1]"
	tests := map[string]struct {
		answer  http.HandlerFunc
		fault   Fault
		message string
	}{
		"a list":                     {says(200, json, list), "", ""},
		"a list of exactly 1 MiB":    {says(200, json, list+strings.Repeat(" ", 1<<20-len(list))), "", ""},
		"an answer of more":          {says(200, json, list+strings.Repeat(" ", 10<<20)), TooLarge, "the answer of Server has more than 1048576 bytes"},
		"no token":                   {says(401, "text/plain", "Unauthorized"), Refused, "Server refuses the request: it answers 401"},
		"a token without the right":  {says(403, json, "{}"), Refused, "Server refuses the request: it answers 403"},
		"a server in trouble":        {says(503, "text/html", "<html>"), Failed, "Server answers 503"},
		"a redirect is not followed": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, Failed, "Server answers 302, and no redirect is followed"},
		"a page of a login":          {says(200, "text/html; charset=utf-8", "<html>"), Malformed, "Server answers with a page, as a login does"},
		"a page of another type":     {says(200, json, "<html>"), Malformed, "the answer of Server is not the JSON of its API"},
		"another JSON":               {says(200, json, `{"a":1}`), Malformed, "the answer of Server is not the JSON of its API"},
		"a connection that breaks":   {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unreachable, "no answer of Server: the connection broke"},
		"an answer that breaks": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "[")
		}, Unreachable, "no answer of Server: the connection broke"},
		"headers that are never over": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Long", strings.Repeat("a", 32<<10)) }, Unreachable, "no answer of Server: the connection broke"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, config := serve(t, tc.answer)
			c, err := New("Server", config)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			answer, err := c.Get(t.Context(), "/api", nil)
			if err == nil {
				err = answer.Decode(&got)
			}
			if err == nil {
				if diff := cmp.Diff([]int{1}, got); tc.fault != "" || diff != "" {
					t.Errorf("the answer counts, want %s (-want +got):\n%s", tc.fault, diff)
				}
				return
			}
			if fault, message := FaultOf(err); fault != tc.fault || message != tc.message {
				t.Errorf("got %s, %q, want %s, %q", fault, message, tc.fault, tc.message)
			}
		})
	}
}

func TestARequestHasItsParametersAndItsToken(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	_, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.RequestURI()+" "+r.PostFormValue("q")+" "+r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, "{}")
	})
	config.URL, config.TokenFile = config.URL+"/am/", token
	c, err := New("Server", config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Get(t.Context(), "/api/v2/alerts", url.Values{"q": {`a="b"`}})
	if err != nil || answer.Time.IsZero() {
		t.Errorf("the answer is of %s: %v", answer.Time, err)
	}
	if _, err := c.Post(t.Context(), "/api/v1/query", url.Values{"q": {"up"}}); err != nil {
		t.Error(err)
	}
	want := []string{"GET /am/api/v2/alerts?q=a%3D%22b%22  Bearer secret", "POST /am/api/v1/query up Bearer secret"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
}

func TestWhyAServerIsNotReached(t *testing.T) {
	release := make(chan struct{})
	slow, trusted := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server is closed, which waits for it
	down, plain := trusted, trusted
	down.URL = "https://127.0.0.1:1"
	speaksNoTLS := httptest.NewServer(says(200, "", "[]"))
	t.Cleanup(speaksNoTLS.Close)
	plain.URL = strings.Replace(speaksNoTLS.URL, "http://", "https://", 1)
	files := t.TempDir()
	empty := filepath.Join(files, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	tests := map[string]struct {
		ctx    context.Context
		config Config
		why    string
	}{
		"it is slow":                          {soon, trusted, "the answer is late"},
		"it is down":                          {t.Context(), down, "the connection is refused"},
		"its certificate is not trusted":      {t.Context(), Config{URL: slow.URL}, "the certificate is not trusted"},
		"it speaks no TLS":                    {t.Context(), plain, "the server does not speak TLS"},
		"the authorities cannot be read":      {t.Context(), Config{URL: slow.URL, CAFile: filepath.Join(files, "none")}, "a file of the client cannot be read"},
		"the authorities are no certificates": {t.Context(), Config{URL: slow.URL, CAFile: empty}, "a file of the client cannot be read"},
		"the token cannot be read":            {t.Context(), Config{URL: slow.URL, CAFile: trusted.CAFile, TokenFile: filepath.Join(files, "none")}, "a file of the client cannot be read"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := New("Server", tc.config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Get(tc.ctx, "/api", nil)
			if fault, message := FaultOf(err); fault != Unreachable || message != "no answer of Server: "+tc.why {
				t.Errorf("got %s, %q", fault, message)
			}
			if e, is := errors.AsType[*Error](err); !is || e.Cause == nil || !strings.Contains(err.Error(), e.Cause.Error()) {
				t.Errorf("the log lacks the cause: %v", err)
			}
		})
	}
}

func TestNew(t *testing.T) {
	tests := map[string]struct {
		config Config
		fault  string
	}{
		"an address with TLS":       {Config{URL: "https://prometheus.monitoring:9090"}, ""},
		"an address without TLS":    {Config{URL: "http://prometheus.monitoring:9090/path"}, ""},
		"no address":                {Config{}, "reading the address of Server: want https://"},
		"an address without scheme": {Config{URL: "prometheus:9090"}, "want https://"},
		"an address with a user":    {Config{URL: "https://a:b@prometheus"}, "no user"},
		"an address with a query":   {Config{URL: "https://prometheus?a=b"}, "no user"},
		"a token without TLS":       {Config{URL: "http://prometheus", TokenFile: "/token"}, "a token needs https://"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New("Server", tc.config)
			if (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("the error is %v, want %q", err, tc.fault)
			}
		})
	}
}

func TestAnErrorOfAnotherKindShowsNoText(t *testing.T) {
	if fault, message := FaultOf(errors.New("dial tcp 10.0.0.1:9093")); fault != Unreachable || message != "no answer" {
		t.Errorf("got %s, %q", fault, message)
	}
}
