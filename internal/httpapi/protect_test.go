// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// request is one of a route.
type request struct{ method, target string }

// requestsOf are one for each route of the API, with a name for each wildcard.
func requestsOf(t *testing.T, a *API) (all []request) {
	t.Helper()
	for _, pattern := range a.Routes() {
		method, path, found := strings.Cut(pattern, " ")
		if !found {
			path, method = pattern, http.MethodGet
		}
		all = append(all, request{method, strings.NewReplacer("{id}", "shop.web", "{$}", "").Replace(path)})
	}
	if len(all) < len(operations()) {
		t.Fatalf("only %d routes were found", len(all))
	}
	return all
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
	for _, r := range requestsOf(t, api.API) {
		if w := send(r.method, r.target, "localhost:8090"); w.Code == http.StatusMisdirectedRequest {
			t.Errorf("%s is not served at a host that is named", r.target)
		}
		for _, host := range []string{"evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:8090.evil.example", "[::1]:8090", ""} {
			if w := send(r.method, r.target, host); w.Code != http.StatusMisdirectedRequest {
				t.Errorf("%s at %q: %d", r.target, host, w.Code)
			}
		}
		methods := []string{http.MethodPost}
		if r.method != http.MethodGet && r.method != http.MethodPost {
			methods = append(methods, r.method)
		}
		for name, header := range map[string][]string{
			"a page elsewhere": {"Sec-Fetch-Site", "cross-site"}, "another port": {"Sec-Fetch-Site", "same-site"},
			"an old browser": {"Origin", "https://evil.example"}, "a file": {"Origin", "null"},
		} {
			for _, method := range methods {
				w := send(method, r.target, "localhost:8090", append(header, "Content-Type", "application/json")...)
				if p := api.problem(w); p.Type != wire.ProblemBase+string(wire.CrossOrigin) {
					t.Errorf("%s %s from %s: %d %s", method, r.target, name, w.Code, w.Body)
				}
			}
		}
	}
}

// A form of a page elsewhere sends no JSON, and neither it nor a fetch without the permission of the server
// can name its body so.
func TestAWriteThatDoesNotNameItsBodyJSONIsRefused(t *testing.T) {
	cluster := newCluster(t, refusingWrites(t), shopAtWork(t)...)
	a := newAnswers(t, cluster)
	for _, o := range writes() {
		if o.method == http.MethodDelete {
			continue // no form sends it
		}
		for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "application/jsonp", "application/json, text/plain", "text/plain; application/json"} {
			a.wantProblem(a.send(o.method, o.example, o.body, "Content-Type", contentType), wire.Unsupported, "")
		}
		if operationAt(a.document, &o).RequestBody != nil {
			a.wantProblem(a.send(o.method, o.example, "{", "Content-Type", "application/json; charset=utf-8"), wire.Invalid, "body")
		}
	}
}

// refusingWrites fails the test at each write.
func refusingWrites(t *testing.T) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			t.Error("an object is created")
			return nil
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			t.Error("an object is updated")
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			t.Error("an object is patched")
			return nil
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			t.Error("an object is deleted")
			return nil
		},
	}
}

func TestABodyThatIsTooLargeOrTooDeepIsRefused(t *testing.T) {
	a := newAnswers(t, newCluster(t, refusingWrites(t), shopAtWork(t)...))
	large := `{"reason":"` + strings.Repeat("a", wire.MaxBytes) + `"}`
	deep := `{"reason":` + strings.Repeat("[", wire.MaxDepth) + strings.Repeat("]", wire.MaxDepth) + `}`
	for _, o := range writes() {
		if operationAt(a.document, &o).RequestBody == nil {
			continue
		}
		var headers []string
		for name, value := range o.headers {
			headers = append(headers, name, value)
		}
		a.wantProblem(a.send(o.method, o.example, large, headers...), wire.TooLarge, "")
		a.wantProblem(a.send(o.method, o.example, deep, headers...), wire.Invalid, "body")
	}
}
