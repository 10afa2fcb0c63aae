// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/console/pages"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/serve/login"
	"github.com/plumbline-dev/plumbline/internal/serve/oidc"
	"github.com/plumbline-dev/plumbline/internal/serve/servetest"
	"github.com/plumbline-dev/plumbline/internal/serve/session"
)

// keys are those of sessions, each of one byte again and again. The first seals.
func keys(t *testing.T, of ...byte) *session.Keys {
	t.Helper()
	var text strings.Builder
	for _, b := range of {
		text.WriteString(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) + "\n")
	}
	k, err := session.ParseKeys([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// openConsole opens a door with a console. The issuer is nil if there is none.
func openConsole(t *testing.T, sealedBy *session.Keys, issuer *oidc.Provider) *opened {
	t.Helper()
	return openWith(t, DefaultBounds(), func(w *servetest.World, api *httpapi.API, log *slog.Logger) *Console {
		return &Console{
			Pages: pages.New(w.Cluster.Console(), api, log),
			Login: login.New(login.Config{Keys: sealedBy, Callers: w.Callers, Provider: issuer, Clock: w.Clock, Log: log}),
		}
	})
}

// visitor is a browser: it keeps cookies, and has no token.
type visitor struct {
	*opened
	jar map[string]*http.Cookie
}

func (o *opened) visit() *visitor { return &visitor{o, map[string]*http.Cookie{}} }

// request is one of the browser, with headers, each with its value behind it. A body is that of a form.
func (v *visitor) request(method, target string, form url.Values, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(v.t.Context(), method, target, strings.NewReader(form.Encode()))
	r.Host = host
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range v.jar {
		r.AddCookie(c)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// ask sends a request, and keeps the cookies of the answer.
func (v *visitor) ask(r *http.Request) *httptest.ResponseRecorder {
	v.t.Helper()
	w := v.answer(r)
	for _, c := range w.Result().Cookies() {
		if delete(v.jar, c.Name); c.MaxAge >= 0 {
			v.jar[c.Name] = c
		}
	}
	for name, want := range fixed {
		if got := w.Header().Get(name); got != want {
			v.t.Errorf("%s %s: %s is %q", r.Method, r.URL, name, got)
		}
	}
	return w
}

func (v *visitor) get(target string, headers ...string) *httptest.ResponseRecorder {
	v.t.Helper()
	return v.ask(v.request(http.MethodGet, target, nil, headers...))
}

func (v *visitor) post(target string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	v.t.Helper()
	return v.ask(v.request(http.MethodPost, target, form, headers...))
}

// logIn logs in with a token, which has to be good.
func (v *visitor) logIn(token string) *visitor {
	v.t.Helper()
	v.wantLed(v.post("/login", url.Values{"token": {token}, "return": {"/"}}), "/")
	return v
}

// wantLed demands that an answer leads to an address.
func (v *visitor) wantLed(w *httptest.ResponseRecorder, to string) {
	v.t.Helper()
	if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != to {
		v.t.Errorf("%d leads to %q and not to %q: %s", w.Code, got, to, w.Body)
	}
}

// wantPage demands a page with a status and words.
func (v *visitor) wantPage(w *httptest.ResponseRecorder, status int, words ...string) {
	v.t.Helper()
	if w.Code != status || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		v.t.Errorf("%d %s, want %d: %s", w.Code, w.Header().Get("Content-Type"), status, w.Body)
	}
	for _, want := range words {
		if !strings.Contains(w.Body.String(), want) {
			v.t.Errorf("%q is not in %s", want, w.Body)
		}
	}
}

// pageRoutes are those of the console, with a name for each wildcard.
func (o *opened) pageRoutes() []route {
	o.t.Helper()
	var all []route
	for _, pattern := range o.config.Console.Pages.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		all = append(all, route{method, strings.NewReplacer("{namespace}", "shop", "{name}", "production-e82871e6b1", "{$}", "").Replace(path)})
	}
	if len(all) < 30 {
		o.t.Fatalf("only %d routes of pages were found", len(all))
	}
	return all
}
