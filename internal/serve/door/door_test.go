// SPDX-License-Identifier: Apache-2.0

package door

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
)

// fixed are the headers of each answer.
var fixed = map[string]string{
	"Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
	"Strict-Transport-Security": "max-age=31536000",
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
}

func (o *opened) wantProtected(what string, w *httptest.ResponseRecorder) {
	o.t.Helper()
	for name, want := range fixed {
		if got := w.Header().Get(name); got != want {
			o.t.Errorf("%s: %s is %q", what, name, got)
		}
	}
	for name := range w.Header() {
		if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
			o.t.Errorf("%s: %s is sent", what, name)
		}
	}
}

func TestEachRouteIsBehindTheDoor(t *testing.T) {
	o := open(t, DefaultBounds())
	for _, r := range o.routes() {
		what := r.method + " " + r.target
		for _, token := range []string{"alice", "eve", "screen"} {
			w := o.send(r.method, r.target, token, "{}")
			o.wantProtected(what, w)
			if w.Code == http.StatusUnauthorized || w.Code == http.StatusMisdirectedRequest {
				t.Errorf("%s by %s: %d %s", what, token, w.Code, w.Body)
			}
		}
		for _, token := range []string{"", "unknown", "vault"} {
			w := o.send(r.method, r.target, token, "{}")
			o.wantProtected(what, w)
			o.wantProblem(w, wire.Unauthenticated)
			if got := w.Header().Get("WWW-Authenticate"); got != "Bearer" {
				t.Errorf("%s: WWW-Authenticate is %q", what, got)
			}
		}
		for _, other := range []string{"evil.example", host + ":443", "plumbline.example", "127.0.0.1", host + ".evil.example", ""} {
			q := o.request(r.method, r.target, "alice", "{}")
			q.Host = other
			w := o.answer(q)
			o.wantProtected(what, w)
			o.wantProblem(w, wire.Misdirected)
		}
		methods := []string{http.MethodPost}
		if r.method != http.MethodGet && r.method != http.MethodPost {
			methods = append(methods, r.method)
		}
		for _, method := range methods {
			for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
				o.wantProblem(o.send(method, r.target, "alice", "{}", header...), wire.CrossOrigin)
			}
		}
		if (r.method == http.MethodPost || r.method == http.MethodPut) && strings.HasPrefix(r.target, "/api/") {
			for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"} {
				o.wantProblem(o.send(r.method, r.target, "alice", "{}", "Content-Type", kind), wire.Unsupported)
			}
		}
	}
	// The other host that is served has its port.
	q := o.request(http.MethodGet, "/api/v1/whoami", "alice", "")
	q.Host = "plumbline.example:8443"
	if w := o.answer(q); w.Code != http.StatusOK {
		t.Errorf("a host that is served: %d %s", w.Code, w.Body)
	}
}

// A review that cannot be made is never a yes, at any route.
func TestEachRouteIsClosedWhenTheAPIServerCannotBeAsked(t *testing.T) {
	o := open(t, DefaultBounds())
	o.GoAway(true)
	for _, r := range o.routes() {
		w := o.send(r.method, r.target, "alice", "{}")
		o.wantProtected(r.target, w)
		o.wantProblem(w, wire.Unavailable)
	}
	o.GoAway(false)
	if w := o.send(http.MethodGet, "/api/v1/whoami", "alice", ""); w.Code != http.StatusOK {
		t.Fatalf("the error was remembered: %d %s", w.Code, w.Body)
	}
	// The token is known, and no right can be asked for.
	o.GoAway(true)
	for _, path := range []string{"remediation/plans", "remediation/plans/shop.production-e82871e6b1", "baselines?namespace=shop", "environments/production"} {
		o.wantProblem(o.send(http.MethodGet, "/api/v1/"+path, "alice", ""), wire.Unavailable)
	}
	if strings.Contains(o.log.String(), "alice") {
		t.Errorf("the log has a token: %s", o.log)
	}
}

func TestAHeaderThatIsNoTokenIsRefused(t *testing.T) {
	o := open(t, DefaultBounds())
	tests := map[string][]string{
		"no header": nil, "no token": {"Bearer"}, "an empty token": {"Bearer "}, "a token behind two spaces": {"Bearer  alice"}, "another scheme": {"Basic alice"},
		"no scheme": {"alice"}, "two headers": {"Bearer alice", "Bearer alice"}, "another header behind": {"Bearer alice", "Basic x"}, "two tokens": {"Bearer alice,eve"},
		"a token with a space behind": {"Bearer alice "}, "a token with a line": {"Bearer al\nice"}, "a token with a null": {"Bearer alice\x00"}, "letters of no token": {"Bearer älice"},
		"a token that is too long": {"Bearer " + strings.Repeat("a", callers.MaxToken+1)},
	}
	for name, values := range tests {
		t.Run(name, func(t *testing.T) {
			r := o.request(http.MethodGet, "/api/v1/whoami", "", "")
			r.Header["Authorization"] = values
			o.wantProblem(o.answer(r), wire.Unauthenticated)
		})
	}
	for _, value := range []string{"Bearer alice", "bearer alice", "BEARER alice"} {
		r := o.request(http.MethodGet, "/api/v1/whoami", "", "", "Authorization", value)
		if w := o.answer(r); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", value, w.Code, w.Body)
		}
	}
	// A token elsewhere is none.
	for _, r := range []*http.Request{
		o.request(http.MethodGet, "/api/v1/whoami?access_token=alice", "", ""), o.request(http.MethodGet, "/api/v1/whoami", "", "", "Cookie", "token=alice"),
		o.request(http.MethodGet, "/api/v1/whoami", "", "", "X-Remote-User", "alice"), o.request(http.MethodGet, "/api/v1/whoami", "", "", "Impersonate-User", "alice"),
	} {
		o.wantProblem(o.answer(r), wire.Unauthenticated)
	}
}

func TestACallerIsWhomTheTokenNames(t *testing.T) {
	o := open(t, DefaultBounds())
	w := o.send(http.MethodGet, "/api/v1/whoami", "bob", "", "Impersonate-User", "alice", "X-Remote-User", "alice")
	var me wire.Whoami
	if err := json.Unmarshal(w.Body.Bytes(), &me); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wire.Whoami{User: "bob", Groups: []string{"system:authenticated"}}, me); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A viewer of one namespace learns of another one no object, count, name or id.
func TestAViewerOfOneNamespaceSeesNothingOfAnother(t *testing.T) {
	o := open(t, DefaultBounds())
	for _, path := range []string{"remediation/plans?", "remediation/history?source=plan&", "ab-releases?", "baselines?", "assessments?"} {
		w := o.send(http.MethodGet, "/api/v1/"+path+"limit=1", "bob", "")
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "bank") || strings.Contains(w.Body.String(), "ba000000") || w.Header().Get("Link") != "" {
			t.Errorf("%s: %d %s %q", path, w.Code, w.Body, w.Header().Get("Link"))
		}
	}
	for _, object := range o.Cache.Objects() {
		if object.GetNamespace() == "shop" || object.GetUID() == "" {
			continue
		}
		for _, collection := range []string{"remediation/policies", "remediation/plans", "remediation/history", "ab-releases", "rollout-strategies", "baselines", "environments", "guards", "assessments"} {
			there := o.send(http.MethodGet, "/api/v1/"+collection+"/"+string(object.GetUID()), "bob", "")
			missing := o.send(http.MethodGet, "/api/v1/"+collection+"/00000000-0000-4000-8000-000000000000", "bob", "")
			want := wire.NotFound
			if collection == "remediation/history" {
				want = wire.Forbidden // records may tell of a plan that is gone
			}
			o.wantProblem(there, want)
			if there.Body.String() != missing.Body.String() {
				t.Errorf("%s: the id of %s is told from one of no object: %s", collection, object.GetName(), there.Body)
			}
		}
	}
	// A write finds an object by its id among those that the caller may read, too.
	o.wantProblem(o.send(http.MethodPost, "/api/v1/remediation/plans/ba000000-0000-4000-8000-000000000001/cancel", "bob", ""), wire.NotFound)
}

func TestATokenForTheAPIAloneReadsAndCannotWrite(t *testing.T) {
	o := open(t, DefaultBounds())
	for _, r := range o.routes() {
		w := o.send(r.method, r.target, "screen", "{}")
		if r.method == http.MethodGet {
			if w.Code == http.StatusForbidden {
				t.Errorf("%s: %d %s", r.target, w.Code, w.Body)
			}
			continue
		}
		o.wantProblem(w, wire.TokenAudience)
	}
	if w := o.send(http.MethodGet, "/api/v1/remediation/plans?namespace=bank", "screen", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "secret-production") {
		t.Errorf("a token for the API does not read: %d %s", w.Code, w.Body)
	}
	for _, s := range o.Server.Sent() {
		t.Errorf("the API server got %s %s", s.Method, s.Path)
	}
}

// Reads share the objects of the cache with all others.
func TestAReadChangesNoObjectOfTheCache(t *testing.T) {
	o := open(t, DefaultBounds())
	before := o.Cache.Objects()
	for _, r := range o.routes() {
		if r.method != http.MethodGet {
			continue
		}
		for _, target := range []string{r.target, strings.Replace(r.target, "shop.web", "shop.production-e82871e6b1", 1), strings.Replace(r.target, "shop.web", "production", 1)} {
			o.send(http.MethodGet, target, "alice", "")
			o.send(http.MethodGet, target, "bob", "")
		}
	}
	if diff := cmp.Diff(before, o.Cache.Objects()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestEachWriteHasALineInTheLogAndNoLineHasAToken(t *testing.T) {
	o := open(t, DefaultBounds())
	for _, r := range o.routes() {
		o.log.Reset()
		w := o.send(r.method, r.target, "alice", "{}", "If-Match", "*")
		lines := 0
		for line := range strings.Lines(o.log.String()) {
			var said map[string]any
			if err := json.Unmarshal([]byte(line), &said); err != nil {
				t.Fatal(err)
			}
			if said["msg"] != "api.write" {
				continue
			}
			lines++
			if said["user"] != "alice" || said["path"] != r.target || int(said["status"].(float64)) != w.Code || said["operation"] == "" || said["from"] != "192.0.2.1" {
				t.Errorf("%s %s: %d is logged as %s", r.method, r.target, w.Code, line)
			}
		}
		if want := r.method != http.MethodGet; (lines == 1) != want || lines > 1 {
			t.Errorf("%s %s has %d lines", r.method, r.target, lines)
		}
		if strings.Contains(o.log.String()+w.Body.String(), "Bearer") {
			t.Errorf("%s %s: a token is shown: %s %s", r.method, r.target, o.log, w.Body)
		}
	}
}

// A hostile path is a value of a line, and begins no line of its own.
func TestAPathCannotForgeALine(t *testing.T) {
	o := open(t, DefaultBounds())
	o.send(http.MethodPost, "/api/v1/remediation/plans/a%0A%7B%22msg%22:%22api.write%22%7D/cancel", "alice", "")
	if got := strings.Count(o.log.String(), "\n"); got != 1 {
		t.Errorf("there are %d lines: %s", got, o.log)
	}
}

func TestABodyThatIsTooLargeIsRefused(t *testing.T) {
	o := open(t, DefaultBounds())
	for _, size := range []int{wire.MaxBytes + 1, 8 << 20} {
		w := o.send(http.MethodPost, "/api/v1/remediation/execute", "alice", `{"reason":"`+strings.Repeat("a", size)+`"}`)
		o.wantProblem(w, wire.TooLarge)
	}
}

// slowBody blocks a request until it is released.
type slowBody struct {
	reached chan struct{}
	release chan struct{}
}

func (b *slowBody) Read([]byte) (int, error) {
	b.reached <- struct{}{}
	<-b.release
	return 0, http.ErrBodyReadAfterClose
}

func (b *slowBody) Close() error { return nil }

func TestRequestsAtOnceAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		bounds        Bounds
		user, address string // of the one that is refused
		other         [2]string
	}{
		"of an address": {Bounds{OfAddress: 2, OfUser: 10}, "bob", "192.0.2.1", [2]string{"alice", "192.0.2.9"}},
		"of a user":     {Bounds{OfAddress: 10, OfUser: 2}, "alice", "192.0.2.9", [2]string{"bob", "192.0.2.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, tc.bounds)
			from := func(token, address string) *http.Request {
				r := o.request(http.MethodGet, "/api/v1/whoami", token, "")
				r.RemoteAddr = address + ":4711"
				return r
			}
			slow := &slowBody{make(chan struct{}), make(chan struct{})}
			var under sync.WaitGroup
			for range 2 {
				r := o.request(http.MethodPost, "/api/v1/remediation/execute", "alice", "")
				r.Body, r.ContentLength = slow, 10
				under.Go(func() { o.answer(r) })
				<-slow.reached
			}
			w := o.answer(from(tc.user, tc.address))
			o.wantProblem(w, wire.TooManyRequests)
			o.wantProtected("a refusal", w)
			if w.Header().Get("Retry-After") == "" {
				t.Error("it is not said when to try again")
			}
			if w := o.answer(from(tc.other[0], tc.other[1])); w.Code != http.StatusOK {
				t.Errorf("another one is refused: %d %s", w.Code, w.Body)
			}
			close(slow.release)
			under.Wait()
			if w := o.answer(from(tc.user, tc.address)); w.Code != http.StatusOK {
				t.Errorf("no place was given back: %d %s", w.Code, w.Body)
			}
			if len(o.addresses.taken)+len(o.users.taken) > 0 {
				t.Errorf("places are taken: %v, %v", o.addresses.taken, o.users.taken)
			}
		})
	}
}

func TestAnswersAreCountedByOperationAndCode(t *testing.T) {
	o := open(t, DefaultBounds())
	o.send(http.MethodGet, "/api/v1/whoami", "alice", "")
	o.send(http.MethodGet, "/api/v1/whoami", "alice", "")
	o.send(http.MethodGet, "/api/v1/remediation/plans/shop.none", "alice", "")
	o.send(http.MethodGet, "/random/"+strings.Repeat("a", 20), "", "")
	o.send(http.MethodGet, "/api/v1/whoami", "unknown", "")
	o.send("BREW", "/api/v1/whoami", "alice", "")
	registry := prometheus.NewRegistry()
	registry.MustRegister(o.config.Metrics, o.Reviews)
	want := `
# HELP plumbline_api_responses_total Answers of the REST API and the console by operation and code; operation none is that of paths without one.
# TYPE plumbline_api_responses_total counter
plumbline_api_responses_total{code="200",operation="whoami"} 2
plumbline_api_responses_total{code="401",operation="none"} 1
plumbline_api_responses_total{code="401",operation="whoami"} 1
plumbline_api_responses_total{code="404",operation="get-plan"} 1
plumbline_api_responses_total{code="404",operation="none"} 1
# HELP plumbline_api_review_hits_total Questions about callers that a remembered review answered, by review (token, access).
# TYPE plumbline_api_review_hits_total counter
plumbline_api_review_hits_total{review="access"} 0
plumbline_api_review_hits_total{review="token"} 3
# HELP plumbline_api_reviews_total Reviews of callers that the API server was asked for, by review (token, access) and result: answered, failed.
# TYPE plumbline_api_reviews_total counter
plumbline_api_reviews_total{result="answered",review="access"} 1
plumbline_api_reviews_total{result="answered",review="token"} 2
plumbline_api_reviews_total{result="failed",review="access"} 0
plumbline_api_reviews_total{result="failed",review="token"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestARevokedTokenEndsWithTheMemory(t *testing.T) {
	o := open(t, DefaultBounds())
	code := func() int { return o.send(http.MethodGet, "/api/v1/whoami", "alice", "").Code }
	first := code()
	o.Revoke("alice")
	o.Pass(time.Minute - 1)
	second := code()
	o.Pass(1)
	if diff := cmp.Diff([]int{200, 200, 401}, []int{first, second, code()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
