// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
)

func newDoor(t *testing.T) *Door {
	t.Helper()
	d, err := NewDoor(8090)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// behind answers each caller past the door.
var behind = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") })

func TestNoRequestIsAnsweredWithoutTheKey(t *testing.T) {
	d := newDoor(t)
	other := newDoor(t)
	cookie := func(value string) *http.Cookie { return &http.Cookie{Name: d.cookieName(), Value: value} }
	tests := map[string]struct {
		method, target string
		cookie         *http.Cookie
		want           int
	}{
		"no key":                          {"GET", "/api/v1/whoami", nil, 401},
		"no key at a path that is none":   {"GET", "/none", nil, 401},
		"no key at the document":          {"GET", "/api/v1/openapi.yaml", nil, 401},
		"an empty key":                    {"GET", "/?key=", nil, 401},
		"an empty cookie":                 {"GET", "/", cookie(""), 401},
		"the key of another console":      {"GET", "/?key=" + other.key, nil, 401},
		"the cookie of another console":   {"GET", "/", cookie(other.key), 401},
		"the beginning of the key":        {"GET", "/?key=" + d.key[:10], nil, 401},
		"the key in a form":               {"POST", "/?key=" + d.key, nil, 401},
		"the key in the cookie":           {"GET", "/", cookie(d.key), 200},
		"the key in the address":          {"GET", "/?key=" + d.key, nil, 303},
		"the key in the cookie of a port": {"GET", "/", &http.Cookie{Name: "plumbline-console-1", Value: d.key}, 401},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.target, nil)
			r.Host = "127.0.0.1:8090"
			if tc.cookie != nil {
				r.AddCookie(tc.cookie)
			}
			w := httptest.NewRecorder()
			d.Guard(behind).ServeHTTP(w, r)
			if w.Code != tc.want || (w.Body.String() == "inside") != (tc.want == 200) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if strings.Contains(w.Body.String()+w.Header().Get("Location"), d.key) {
				t.Errorf("the answer tells the key: %v %s", w.Header(), w.Body)
			}
			if w.Header().Get("Content-Security-Policy") == "" {
				t.Error("the answer is not protected")
			}
		})
	}
}

func TestTheKeyBecomesACookieThatNoScriptReads(t *testing.T) {
	d := newDoor(t)
	for target, want := range map[string]string{
		"/?key=" + d.key: "/", "/api/v1/whoami?key=" + d.key: "/api/v1/whoami", "/api/v1/baselines?limit=1&key=" + d.key: "/api/v1/baselines?limit=1",
		"//evil.example/?key=" + d.key: "/evil.example/", `/\evil.example?key=` + d.key: "/evil.example",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		at, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		r.URL, r.Host = at, "127.0.0.1:8090"
		r.URL.Host = ""
		if strings.HasPrefix(target, "//") {
			r.URL.Path = "//evil.example/"
		}
		w := httptest.NewRecorder()
		d.Guard(behind).ServeHTTP(w, r)
		cookies := (&http.Response{Header: w.Header()}).Cookies()
		if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Path != "/" || cookies[0].Domain != "" {
			t.Errorf("%s: the cookies are %v", target, cookies)
		}
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%s leads to %q, want %q", target, got, want)
		}
	}
}

func TestTheConsoleIsServedUntilItsContextEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	listener, d, err := Listen(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ip := listener.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
		t.Errorf("it listens on %s", ip)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- httpapi.Serve(ctx, listener, d.Guard(behind), LastAnswers, slog.New(slog.DiscardHandler))
	}()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	defer browser.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "inside" || response.Request.URL.RawQuery != "" {
		t.Errorf("%s: %s (%v)", response.Request.URL, body, err)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
