// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func now() time.Time { return noon }

// vector has samples of these values.
func vector(values ...string) string {
	var samples []string
	for _, v := range values {
		samples = append(samples, fmt.Sprintf(`{"metric":{},"value":[%d,%q]}`, noon.Unix(), v))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
}

// serve answers queries; a request that hangs ends with the test.
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

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that has read enough is gone
	}
}

func TestQuery(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		want   float64
		fault  string
	}{
		"one number":                 {says(200, vector("0.25")), 0.25, ""},
		"several numbers":            {says(200, vector("1", "2")), 0, "2 samples"},
		"no number":                  {says(200, vector()), 0, "0 samples"},
		"a value that is no number":  {says(200, vector("NaN")), 0, "NaN"},
		"an error":                   {says(503, "overloaded"), 0, "answers 503"},
		"an answer of exactly 1 MiB": {says(200, vector("3")+strings.Repeat(" ", 1<<20-len(vector("3")))), 3, ""},
		"an answer of more":          {says(200, vector("3")+strings.Repeat(" ", 1<<20)), 0, "more than 1048576 bytes"},
		"a redirect is not followed": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, 0, "answers 302"},
		"a connection that breaks":   {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "no answer of Prometheus"},
		"an answer that breaks": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}, 0, "no answer of Prometheus"},
		"headers that are never over": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Long", strings.Repeat("a", 32<<10)) }, 0, "no answer of Prometheus"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, config := serve(t, tc.answer)
			c, err := New(config, now)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Query(t.Context(), "up")
			if (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) || got != tc.want {
				t.Errorf("got %v and %v, want %v and %q", got, err, tc.want, tc.fault)
			}
		})
	}
}

func TestAQueryIsAskedAsTheAPIDemands(t *testing.T) {
	_, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/select/0/api/v1/query" || r.FormValue("query") != `up{a="b"}` || r.FormValue("timeout") != "9s" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("the request is %s %s %v %v", r.Method, r.URL, r.Form, r.Header)
		}
		_, _ = io.WriteString(w, vector("1"))
	})
	config.URL += "/select/0/"
	config.TokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(config.TokenFile, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := New(config, now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Query(t.Context(), `up{a="b"}`); err != nil || got != 1 {
		t.Errorf("got %v and %v", got, err)
	}
}

func TestAPrometheusThatIsNotReachedHasNoData(t *testing.T) {
	release := make(chan struct{})
	slow, trusted := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server is closed, which waits for it
	down := trusted
	down.URL = "https://127.0.0.1:1"
	stranger := Config{URL: slow.URL}
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
	}{
		"it is slow":                          {soon, trusted},
		"it is down":                          {t.Context(), down},
		"its certificate is not trusted":      {t.Context(), stranger},
		"the authorities cannot be read":      {t.Context(), Config{URL: slow.URL, CAFile: filepath.Join(files, "none")}},
		"the authorities are no certificates": {t.Context(), Config{URL: slow.URL, CAFile: empty}},
		"the token cannot be read":            {t.Context(), Config{URL: slow.URL, CAFile: trusted.CAFile, TokenFile: filepath.Join(files, "none")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := New(tc.config, now)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.Query(tc.ctx, "up"); !errors.Is(err, ErrUnreachable) || got != 0 {
				t.Errorf("got %v and %v, want no answer", got, err)
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
		"no address":                {Config{}, "want https://"},
		"an address without scheme": {Config{URL: "prometheus:9090"}, "want https://"},
		"an address with a user":    {Config{URL: "https://a:b@prometheus"}, "no user"},
		"an address with a query":   {Config{URL: "https://prometheus?a=b"}, "no user"},
		"a token without TLS":       {Config{URL: "http://prometheus", TokenFile: "/token"}, "a token needs https://"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.config, now)
			if (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("the error is %v, want %q", err, tc.fault)
			}
		})
	}
}
