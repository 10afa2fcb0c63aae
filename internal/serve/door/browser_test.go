// SPDX-License-Identifier: Apache-2.0

package door

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

const (
	planPath  = "/plans/shop/production-e82871e6b1"
	loginPage = "<h1>Log in</h1>"
)

func TestAUserLogsInWithATokenAndLogsOut(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit()
	v.wantLed(v.get(planPath+"?sent=pause"), "/login?return=%2Fplans%2Fshop%2Fproduction-e82871e6b1%3Fsent%3Dpause")
	v.wantPage(v.get("/login?return=%2Fplans"), http.StatusOK, loginPage, `name="return" value="/plans"`)
	w := v.post("/login", url.Values{"token": {"unknown-token"}, "return": {"/plans"}})
	v.wantPage(w, http.StatusUnauthorized, "The API server does not know this token.", `name="return" value="/plans"`)
	if strings.Contains(w.Body.String(), "unknown-token") || len(v.jar) > 0 {
		t.Errorf("a refused token is kept: %s, %v", w.Body, v.jar)
	}
	v.wantLed(v.post("/login", url.Values{"token": {" alice\n"}, "return": {"/plans"}}), "/plans")
	v.wantPage(v.get(planPath), http.StatusOK, "Plan shop/production-e82871e6b1", `action="/logout"`, "Served in the cluster")
	v.wantPage(v.get("/whoami"), http.StatusOK, "alice")
	var me wire.Whoami
	if err := json.Unmarshal(v.get("/api/v1/whoami").Body.Bytes(), &me); err != nil || me.User != "alice" {
		t.Errorf("the REST API is read as %q, %v", me.User, err)
	}
	if strings.Contains(v.log.String(), `"alice\n"`) || !strings.Contains(v.log.String(), `"msg":"api.login","user":"alice"`) {
		t.Errorf("the login is logged as %s", v.log)
	}
	v.wantLed(v.post("/logout", nil), "/login")
	if len(v.jar) > 0 {
		t.Errorf("cookies are left: %v", v.jar)
	}
	v.wantLed(v.get("/plans"), "/login?return=%2Fplans")
}

func TestALoginIsRefusedInWords(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit()
	for name, tc := range map[string]struct {
		token, kind string
		status      int
		words       string
	}{
		"no token":                       {"", "", 401, "does not know this token"},
		"a token with spaces":            {"alice alice", "", 401, "does not know this token"},
		"a token of letters of no token": {"älice", "", 401, "does not know this token"},
		"a token with markup":            {"<script>", "", 401, "does not know this token"},
		"a token for another server":     {"vault", "", 401, "does not know this token"},
		"a token that is too long":       {strings.Repeat("a", 9000), "", 401, "does not know this token"},
		"a form that is too large":       {strings.Repeat("a", 17<<10), "", 413, "The form cannot be read."},
		"a body of JSON":                 {"alice", "application/json", 415, "The form cannot be read."},
	} {
		t.Run(name, func(t *testing.T) {
			r := v.request(http.MethodPost, "/login", url.Values{"token": {tc.token}})
			if tc.kind != "" {
				r.Header.Set("Content-Type", tc.kind)
			}
			w := v.ask(r)
			v.wantPage(w, tc.status, loginPage, tc.words)
			if len(w.Result().Cookies()) > 0 || strings.Contains(w.Body.String(), "<script>") {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
		})
	}
	v.GoAway(true)
	v.wantPage(v.post("/login", url.Values{"token": {"alice"}}), http.StatusServiceUnavailable, loginPage, "cannot be asked")
}

// A link of a stranger leads to a page of this server, or to its first page.
func TestNoLoginLeadsToAnotherHost(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit()
	for back, want := range map[string]string{
		"/plans?namespace=shop&a=//b": "/plans?namespace=shop&a=//b", "/": "/", "": "/", "plans": "/", "//evil.example": "/", "///evil.example": "/", `/\evil.example`: "/",
		`\\evil.example`: "/", "https://evil.example": "/", "https:evil.example": "/", "javascript:alert(1)": "/", "/\t/evil.example": "/", "/\n/evil.example": "/",
		"/.//evil.example": "/", "/%5cevil.example": "/", "/%2f/evil.example": "/", "/a\x00": "/", "\u00a0//evil.example": "/", "/login": "/", "/login/callback?code=a": "/", "/logout": "/",
		"/" + strings.Repeat("a", 2000): "/", "/%zz": "/", "?a": "/", "#a": "/",
	} {
		v.wantLed(v.post("/login", url.Values{"token": {"alice"}, "return": {back}}), want)
		w := v.get("/login?" + url.Values{"return": {back}}.Encode())
		v.wantPage(w, http.StatusOK)
		if want == "/" && !strings.Contains(w.Body.String(), `name="return" value="/"`) {
			t.Errorf("%q is in the page: %s", back, w.Body)
		}
	}
}

func TestEachPageIsBehindALogin(t *testing.T) {
	o := openConsole(t, keys(t, 2, 1), nil)
	older, unknown := openConsole(t, keys(t, 1), nil).visit().logIn("alice"), openConsole(t, keys(t, 3), nil).visit().logIn("alice")
	cut := openConsole(t, keys(t, 2), nil).visit().logIn("alice")
	for _, c := range cut.jar {
		c.Value = c.Value[:len(c.Value)-4]
	}
	gone := o.visit().logIn("bob")
	o.Revoke("bob")
	o.Pass(time.Minute)
	for _, r := range o.pageRoutes() {
		what := r.method + " " + r.target
		if strings.HasPrefix(r.target, "/assets/") {
			continue
		}
		for name, jar := range map[string]map[string]*http.Cookie{"no cookie": nil, "a cookie of an unknown key": unknown.jar, "a cut cookie": cut.jar, "a revoked token": gone.jar} {
			v := &visitor{o, jar}
			if jar == nil {
				v = o.visit()
			}
			w := v.ask(v.request(r.method, r.target, nil))
			if r.method == http.MethodGet {
				v.wantLed(w, "/login?"+url.Values{"return": {r.target}}.Encode())
				continue
			}
			v.wantPage(w, http.StatusUnauthorized, loginPage, "Your session has ended")
			if t.Failed() {
				t.Fatalf("%s with %s", what, name)
			}
		}
		v := &visitor{o, older.jar}
		if w := v.ask(v.request(r.method, r.target, nil)); w.Code == http.StatusUnauthorized || w.Header().Get("Location") != "" && strings.HasPrefix(w.Header().Get("Location"), "/login") {
			t.Errorf("%s with a cookie of the older key: %d", what, w.Code)
		}
		for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			if r.method == http.MethodPost {
				o.wantProblem(v.ask(v.request(r.method, r.target, nil, header...)), wire.CrossOrigin)
			}
		}
		q := v.request(r.method, r.target, nil)
		q.Host = "evil.example"
		o.wantProblem(v.ask(q), wire.Misdirected)
	}
	for _, target := range []string{"/login", "/logout"} {
		v := o.visit()
		o.wantProblem(v.ask(v.request(http.MethodPost, target, url.Values{"token": {"alice"}}, "Sec-Fetch-Site", "cross-site")), wire.CrossOrigin)
	}
	if w := o.visit().get("/assets/style.css"); w.Code != http.StatusOK {
		t.Errorf("the style of the page for logging in: %d", w.Code)
	}
}

func TestEachPageIsClosedWhenTheAPIServerCannotBeAsked(t *testing.T) {
	o := openConsole(t, keys(t, 1), nil)
	v := o.visit().logIn("alice")
	o.Pass(time.Minute) // the answer about the token is forgotten
	o.GoAway(true)
	for _, r := range o.pageRoutes() {
		if !strings.HasPrefix(r.target, "/assets/") {
			v.wantPage(v.ask(v.request(r.method, r.target, nil)), http.StatusServiceUnavailable, "cannot be asked who you are")
		}
	}
}

func TestASessionWritesByFormsAlone(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit().logIn("alice")
	v.log.Reset()
	for _, r := range v.routes() {
		if !strings.HasPrefix(r.target, "/api/") { // a page or none
			continue
		}
		if r.method != http.MethodGet {
			v.wantProblem(v.ask(v.request(r.method, r.target, nil, "Content-Type", "application/json")), wire.Unauthenticated)
			continue
		}
		for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			v.wantProblem(v.get(r.target, header...), wire.CrossOrigin)
		}
	}
	if got := v.Server.Sent(); len(got) > 0 {
		t.Errorf("the API server got %v", got)
	}
	// The server of the test has no plan, and gets the request with the token of the user.
	v.wantPage(v.post(planPath+"/pause", url.Values{"reason": {"INC-1"}}), http.StatusNotFound)
	sent := v.Server.Sent()
	for _, s := range sent {
		if s.Header.Get("Authorization") != "Bearer alice" || s.Header.Get("Cookie") != "" {
			t.Errorf("%s %s has %v", s.Method, s.Path, s.Header)
		}
	}
	if len(sent) == 0 {
		t.Error("the form has sent no request")
	}
	var line map[string]any
	if err := json.Unmarshal(v.log.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, v.log)
	}
	if line["msg"] != "api.write" || line["user"] != "alice" || line["operation"] != "form-pause" || line["path"] != planPath+"/pause" || line["status"] != 404.0 {
		t.Errorf("the form is logged as %s", v.log)
	}
}

// A token for the API alone, such as for a screen on a wall, reads pages and sends no form.
func TestAScreenReadsPagesAndItsFormsAreRefused(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit().logIn("screen")
	const words = "the API server does not take this token: its audience is plumbline-api alone"
	v.wantPage(v.get(planPath), http.StatusOK, "You may not do this: "+words)
	v.Server.Sent() // reads of other kinds have no token of a screen
	for _, r := range v.pageRoutes() {
		if r.method == http.MethodPost {
			v.wantPage(v.ask(v.request(r.method, r.target, nil)), http.StatusForbidden, words)
		}
	}
	if got := v.Server.Sent(); len(got) > 0 {
		t.Errorf("the API server got %v", got)
	}
}

// Pages share the objects of the cache with all other readers, and show none that their user may not read.
func TestPagesChangeNoObjectAndShowNoneOfAnotherNamespace(t *testing.T) {
	o := openConsole(t, keys(t, 1), nil)
	alice, bob := o.visit().logIn("alice"), o.visit().logIn("bob")
	before := o.Cache.Objects()
	for _, r := range o.pageRoutes() {
		if r.method != http.MethodGet {
			continue
		}
		alice.get(r.target)
		if w := bob.get(r.target); strings.Contains(w.Body.String(), "bank") || strings.Contains(w.Body.String(), "secret-") {
			t.Errorf("%s shows another namespace: %s", r.target, w.Body)
		}
	}
	if diff := cmp.Diff(before, o.Cache.Objects()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestASessionEndsAfterTwelveHours(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit().logIn("alice")
	v.Pass(12*time.Hour - time.Second)
	v.wantPage(v.get("/plans"), http.StatusOK)
	v.Pass(time.Second)
	v.wantLed(v.get("/plans"), "/login?return=%2Fplans")
}

// A header with a token comes before a session, so that a program with both is never taken for the other user.
func TestATokenComesBeforeASession(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit().logIn("alice")
	var me wire.Whoami
	if err := json.Unmarshal(v.get("/api/v1/whoami", "Authorization", "Bearer bob").Body.Bytes(), &me); err != nil || me.User != "bob" {
		t.Errorf("got %q, %v", me.User, err)
	}
	v.wantProblem(v.get("/api/v1/whoami", "Authorization", "Bearer unknown"), wire.Unauthenticated)
	v.wantPage(v.get("/plans", "Authorization", "Bearer unknown"), http.StatusUnauthorized, "does not know the caller")
}

func TestPagesAreCountedByFewNames(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit()
	names := map[string]bool{}
	for _, r := range append(v.pageRoutes(), route{http.MethodGet, "/login"}, route{http.MethodPost, "/logout"}, route{http.MethodGet, "/login/" + strings.Repeat("a", 20)}) {
		names[v.operationOf(v.request(r.method, r.target, nil))] = true
	}
	if !names["page-plan"] || !names["form-pause"] || !names["page-policy-activate"] || !names["login"] || !names["logout"] || !names[""] || len(names) > 50 {
		t.Errorf("the names are %v", names)
	}
}
