// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// requests are one for each route of the API, with a name for each wildcard.
func requests(t *testing.T, a *API) (targets []string) {
	t.Helper()
	for _, pattern := range a.Routes() {
		method, path, found := strings.Cut(pattern, " ")
		if !found {
			path, method = pattern, http.MethodGet
		}
		if method != http.MethodGet {
			t.Fatalf("%s is not sent by this test", pattern)
		}
		targets = append(targets, strings.NewReplacer("{id}", "shop.web", "{$}", "").Replace(path))
	}
	if len(targets) < len(operations()) {
		t.Fatalf("only %d routes were found", len(targets))
	}
	return targets
}

func TestEachRouteIsProtected(t *testing.T) {
	api := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	protected := Protect(api, "127.0.0.1:8090", "localhost:8090")
	send := func(method, target, host string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
		r.Host = host
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		protected.ServeHTTP(w, r)
		for name, want := range headers {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %s at %s: %s is %q", method, target, host, name, got)
			}
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s at %s: %s lets other origins in", method, target, host, name)
			}
		}
		return w
	}
	for _, target := range requests(t, api.API) {
		if w := send(http.MethodGet, target, "localhost:8090"); w.Code == http.StatusMisdirectedRequest {
			t.Errorf("%s is not served at a host that is named", target)
		}
		for _, host := range []string{"evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:8090.evil.example", "[::1]:8090", ""} {
			if w := send(http.MethodGet, target, host); w.Code != http.StatusMisdirectedRequest {
				t.Errorf("%s at %q: %d", target, host, w.Code)
			}
		}
		for name, header := range map[string][]string{
			"a page elsewhere": {"Sec-Fetch-Site", "cross-site"}, "another port": {"Sec-Fetch-Site", "same-site"},
			"an old browser": {"Origin", "https://evil.example"}, "a file": {"Origin", "null"},
		} {
			w := send(http.MethodPost, target, "localhost:8090", header...)
			if p := api.problem(w); p.Type != wire.ProblemBase+string(wire.CrossOrigin) {
				t.Errorf("%s from %s: %d %s", target, name, w.Code, w.Body)
			}
		}
	}
}
