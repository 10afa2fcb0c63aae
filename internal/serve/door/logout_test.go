// SPDX-License-Identifier: Apache-2.0

package door

import (
	"html"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/issuer"
)

// logOut logs a browser out, and returns the address at which the session at the issuer ends.
func (a *at) logOut(v *visitor) string {
	a.t.Helper()
	w := v.post("/logout", nil)
	v.wantPage(w, http.StatusOK, loginPage, "You are logged out here.", "Log out at the issuer")
	address, found := strings.CutPrefix(w.Header().Get("Refresh"), "0; url=")
	if !found || !strings.Contains(html.UnescapeString(w.Body.String()), `href="`+address+`"`) {
		a.t.Fatalf("the page leads to %q: %s", w.Header().Get("Refresh"), w.Body)
	}
	v.wantLed(v.get("/plans"), "/login?return=%2Fplans")
	return address
}

func TestALogoutEndsTheSessionAtTheIssuer(t *testing.T) {
	a := openAtIssuer(t)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	copied := &visitor{a.opened, maps.Clone(a.jar)}
	a.Pass(time.Minute)
	back := a.followBack(a.logOut(a.visitor))
	stranger := a.visit()
	stranger.wantLed(stranger.get(back), "/login")
	a.wantPage(a.get(back), http.StatusOK, loginPage, "You are logged out here and at the issuer.")
	a.wantLed(a.get(back), "/login") // the cookie of the logout counts once
	if len(a.jar) != 0 {
		t.Errorf("the browser keeps the cookies %v", a.jar)
	}
	// A copy of the cookies gets no further token.
	copied.wantPage(copied.get("/plans"), http.StatusOK)
	a.Pass(issuer.Lasts - time.Minute)
	copied.wantLed(copied.get("/plans"), "/login?return=%2Fplans")
	if strings.Contains(a.log.String(), "eyJ") {
		t.Errorf("the log has a token: %s", a.log)
	}
}

func TestALogoutAfterTheEndOfTheTokenEndsTheSessionAtTheIssuer(t *testing.T) {
	a := openAtIssuer(t)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	a.Pass(issuer.Lasts + time.Second)
	a.wantPage(a.get(a.followBack(a.logOut(a.visitor))), http.StatusOK, "You are logged out here and at the issuer.")
}

func TestALogoutComesBackWithTheStateOfItsBrowser(t *testing.T) {
	for name, change := range map[string]func(url.Values){
		"another state": func(q url.Values) { q.Set("state", "another") },
		"no state":      func(q url.Values) { q.Del("state") },
	} {
		t.Run(name, func(t *testing.T) {
			a := openAtIssuer(t)
			a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
			back, err := url.Parse(a.followBack(a.logOut(a.visitor)))
			if err != nil {
				t.Fatal(err)
			}
			query := back.Query()
			change(query)
			a.wantLed(a.get(back.Path+"?"+query.Encode()), "/login")
		})
	}
}

// A logout ends the session of the browser, whether the issuer takes part or not.
func TestALogoutWithoutTheIssuerIsLocal(t *testing.T) {
	for name, begin := range map[string]func(*at){
		"a session of a token": func(a *at) { a.logIn("bob") },
		"an issuer without a logout": func(a *at) {
			a.issuer.HideLogout()
			a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
		},
		"a browser without a session": func(*at) {},
	} {
		t.Run(name, func(t *testing.T) {
			a := openAtIssuer(t)
			begin(a)
			w := a.post("/logout", nil)
			a.wantLed(w, "/login")
			a.wantLed(a.get("/plans"), "/login?return=%2Fplans")
			if got := w.Header().Get("Refresh"); got != "" || len(a.jar) != 0 {
				t.Errorf("the browser is led to %q and keeps %v", got, a.jar)
			}
		})
	}
}

func TestALogoutAtAReplicaThatCannotAskTheIssuerIsLocal(t *testing.T) {
	a := openAtIssuer(t)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	other := a.replicate()
	other.jar = a.jar
	a.issuer.GoAway(true)
	other.wantLed(other.post("/logout", nil), "/login")
	other.wantLed(other.get("/plans"), "/login?return=%2Fplans")
	if !strings.Contains(other.log.String(), "api.logout.failed") {
		t.Errorf("the log says %s", other.log)
	}
}
