// SPDX-License-Identifier: Apache-2.0

package door

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unzipBody reads a body that has to be compressed.
func unzipBody(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if got := w.Header().Get("Content-Encoding"); got != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" {
		t.Fatalf("the encoding is %q: %d %s", got, w.Code, w.Body)
	}
	r, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// browserHeaders are those of a browser that a user has led to a page.
var browserHeaders = []string{"Accept-Encoding", "gzip, deflate, br", "Sec-Fetch-Site", "same-origin"}

func TestPagesAndAnswersOfTheAPIAreCompressed(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit().logIn("alice")
	for _, target := range []string{"/whoami", planPath, "/assets/style.css", "/assets/live.js", "/api/v1/remediation/plans", "/api/v1/none"} {
		plain := v.get(target)
		if got := plain.Header().Get("Content-Encoding"); got != "" {
			t.Errorf("%s: a browser that takes no gzip gets %q", target, got)
		}
		small := plain.Body.Len() < minCompressed
		w := v.get(target, browserHeaders...)
		if small {
			if got := w.Header().Get("Content-Encoding"); got != "" {
				t.Errorf("%s: an answer of %d bytes is encoded as %q", target, w.Body.Len(), got)
			}
			continue
		}
		size := w.Body.Len()
		if body := unzipBody(t, w); len(body) != plain.Body.Len() || w.Code != plain.Code || size >= len(body) {
			t.Errorf("%s: %d and %d bytes became %d and %d, by %d", target, plain.Code, plain.Body.Len(), w.Code, len(body), size)
		}
	}
}

func TestAnAnswerBesideASecretIsNotCompressed(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit().logIn("alice")
	for name, headers := range map[string][]string{
		"a page of another site leads here":    {"Sec-Fetch-Site", "cross-site"},
		"a page of another host of the domain": {"Sec-Fetch-Site", "same-site"},
		"a browser that does not tell":         nil,
	} {
		if w := v.get("/plans", append([]string{"Accept-Encoding", "gzip"}, headers...)...); w.Header().Get("Content-Encoding") != "" || w.Body.Len() < minCompressed {
			t.Errorf("%s: %d bytes are encoded as %q", name, w.Body.Len(), w.Header().Get("Content-Encoding"))
		}
	}
	// The page of a logout has the ID token in its address.
	a := openAtIssuer(t)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	if w := a.post("/logout", nil, browserHeaders...); w.Header().Get("Content-Encoding") != "" || w.Body.Len() < minCompressed {
		t.Errorf("the page of a logout: %d bytes are encoded as %q", w.Body.Len(), w.Header().Get("Content-Encoding"))
	}
}

// A program gets the ETag of the compressed representation, and may send either one.
func TestTheETagOfACompressedAnswerIsTaken(t *testing.T) {
	o := open(t, DefaultBounds())
	const target = "/api/v1/remediation/policies/production-auto-remediation"
	plain := o.send(http.MethodGet, target, "alice", "")
	w := o.send(http.MethodGet, target, "alice", "", "Accept-Encoding", "gzip")
	tag := w.Header().Get("ETag")
	if body := unzipBody(t, w); body != plain.Body.String() || tag != strings.TrimSuffix(plain.Header().Get("ETag"), `"`)+`-gzip"` {
		t.Errorf("the ETag is %s, and %s of the plain answer", tag, plain.Header().Get("ETag"))
	}
	for _, of := range []string{tag, plain.Header().Get("ETag"), `"other", ` + tag} {
		if w := o.send(http.MethodGet, target, "alice", "", "Accept-Encoding", "gzip", "If-None-Match", of); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
			t.Errorf("If-None-Match %s: %d %s", of, w.Code, w.Body)
		}
	}
	askForGzip(t, func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("If-Match"); got != `"a.1", W/"b", "c"` {
			t.Errorf("If-Match is handed on as %s", got)
		}
	}, "If-Match", `"a.1-gzip", W/"b", "c"`)
}

// askForGzip returns the answer of a handler to a request that takes gzip.
func askForGzip(t *testing.T, handler http.HandlerFunc, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	compressAnswers(handler).ServeHTTP(w, r)
	return w
}

func TestAnswersThatAreSentAsTheyAre(t *testing.T) {
	large := strings.Repeat("0123456789", 200)
	write := func(code int, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body) // the recorder takes all
		}
	}
	asJSON := []string{"Content-Type", "application/json"}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		headers []string
	}{
		"a stream of events":              {write(http.StatusOK, large, "Content-Type", "text/event-stream"), nil},
		"a small answer":                  {write(http.StatusOK, large[:minCompressed-1], asJSON...), nil},
		"an answer without a type":        {write(http.StatusOK, large), nil},
		"an image":                        {write(http.StatusOK, large, "Content-Type", "image/png"), nil},
		"an answer that is encoded":       {write(http.StatusOK, large, "Content-Type", "text/css", "Content-Encoding", "br"), nil},
		"an answer that sets a cookie":    {write(http.StatusOK, large, "Content-Type", "text/html", "Set-Cookie", "a=b"), nil},
		"a part":                          {write(http.StatusOK, large, asJSON...), []string{"Range", "bytes=0-9"}},
		"a WebSocket":                     {write(http.StatusOK, large, asJSON...), []string{"Upgrade", "websocket"}},
		"a caller who takes no gzip":      {write(http.StatusOK, large, asJSON...), []string{"Accept-Encoding", "gzip;q=0, br"}},
		"a caller who takes another gzip": {write(http.StatusOK, large, asJSON...), []string{"Accept-Encoding", "x-gzip, *;q=0"}},
		"no answer":                       {func(http.ResponseWriter, *http.Request) {}, nil},
		"not modified":                    {write(http.StatusNotModified, "", asJSON...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			plain := httptest.NewRecorder()
			tc.handler(plain, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			got := askForGzip(t, tc.handler, tc.headers...)
			if diff := cmp.Diff(plain.Header(), got.Header()); diff != "" || plain.Code != got.Code || plain.Body.String() != got.Body.String() {
				t.Errorf("%d %q became %d %q\n%s", plain.Code, plain.Body, got.Code, got.Body, diff)
			}
		})
	}
}

func TestACallerTakesGzip(t *testing.T) {
	for accepted, want := range map[string]bool{
		"gzip": true, "br, gzip": true, "gzip;q=0.5": true, "GZIP ; q=1.0": true, "deflate,gzip;q=0.001": true,
		"": false, "gzip;q=0": false, "gzip;q=0.0": false, "gzip;q=x": false, "identity": false, "gzipped": false,
	} {
		if got := takesGzip([]string{accepted}); got != want {
			t.Errorf("%q: %v", accepted, got)
		}
	}
}

// A flush sends the bytes of before it.
func TestAFlushSendsWhatWasWritten(t *testing.T) {
	large := strings.Repeat("<p>", 1000)
	for _, body := range []string{"<p>", large} {
		w := askForGzip(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, body) // the recorder takes all
			before := w.(*compressor).ResponseWriter.(*httptest.ResponseRecorder)
			if err := http.NewResponseController(w).Flush(); err != nil || !before.Flushed || before.Body.Len() == 0 {
				t.Errorf("%d bytes: %v, %d bytes were sent", len(body), err, before.Body.Len())
			}
			_, _ = io.WriteString(w, body)
		})
		if got := w.Body.String(); body == "<p>" && got != "<p><p>" {
			t.Errorf("got %q", got)
		}
		if body == large && unzipBody(t, w) != large+large {
			t.Error("the compressed answer has other bytes")
		}
	}
}
