// SPDX-License-Identifier: Apache-2.0

package door

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/oidc"
	"github.com/plumbline-dev/plumbline/internal/serve/servetest"
	"github.com/plumbline-dev/plumbline/test/harness/issuer"
)

// at is a door whose users log in at an issuer that the API server trusts.
type at struct {
	*visitor
	issuer   *issuer.Issuer
	provider *oidc.Provider
	// trusts tells whether the API server takes ID tokens of the issuer.
	trusts bool
}

// clocked has the time of a world that is made later.
type clocked struct{ world **servetest.World }

func (c clocked) Now() time.Time                  { return (*c.world).Clock.Now() }
func (c clocked) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func openAtIssuer(t *testing.T) *at {
	t.Helper()
	var world *servetest.World
	now := clocked{&world}
	a := &at{issuer: issuer.Start(t, now), trusts: true}
	a.provider = oidc.New(oidc.Config{Issuer: a.issuer.URL, ClientID: issuer.ClientID, ClientSecret: issuer.ClientSecret, Scopes: []string{"offline_access"}, Roots: a.issuer.Roots, Clock: now})
	t.Cleanup(a.provider.Close)
	a.visitor = openConsole(t, keys(t, 1), a.provider).visit()
	world = a.World
	world.Issued = a.review
	a.issuer.LogIn("alice")
	return a
}

// review is what an API server that trusts the issuer says about a token.
func (a *at) review(token string) servetest.Token {
	var claims struct{ Iss, Sub, Aud string }
	parts := strings.Split(token, ".")
	if len(parts) != 3 || !a.trusts {
		return servetest.Token{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.Iss != a.issuer.URL || claims.Aud != issuer.ClientID {
		return servetest.Token{}
	}
	if end, told := callers.EndOf(token); !told || !a.Clock.Now().Before(end) {
		return servetest.Token{}
	}
	return servetest.Token{User: claims.Sub, ForServer: true}
}

// authorize follows a browser to the issuer, and returns the path by which the issuer leads back.
func (a *at) authorize(v *visitor) string {
	a.t.Helper()
	w := v.get("/login/oidc?return=%2Fplans")
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), a.issuer.URL+"/authorize?") {
		a.t.Fatalf("%d %q: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	return a.followBack(w.Header().Get("Location"))
}

// followBack asks an address of the issuer, and returns the path by which the issuer leads back.
func (a *at) followBack(address string) string {
	a.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.issuer.Roots, MinVersion: tls.VersionTLS13}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	back, err := transport.RoundTrip(r)
	if err != nil {
		a.t.Fatal(err)
	}
	_ = back.Body.Close() // it is empty
	path, found := strings.CutPrefix(back.Header.Get("Location"), "https://"+host)
	if !found {
		a.t.Fatalf("the issuer answers %d and leads to %q", back.StatusCode, back.Header.Get("Location"))
	}
	return path
}

// wantNoSession demands that a browser has no session, and that no secret of the login was shown.
func (a *at) wantNoSession(v *visitor, w *httptest.ResponseRecorder, back string) {
	a.t.Helper()
	v.wantLed(v.get("/plans"), "/login?return=%2Fplans")
	query, err := url.ParseQuery(back[strings.Index(back, "?")+1:])
	if err != nil {
		a.t.Fatal(err)
	}
	for _, name := range []string{"code", "state"} {
		if secret := query.Get(name); len(secret) > 9 && strings.Contains(a.log.String()+w.Body.String(), secret) {
			a.t.Errorf("%s is shown: %s %s", name, a.log, w.Body)
		}
	}
}

func TestAUserLogsInAtTheIssuer(t *testing.T) {
	a := openAtIssuer(t)
	a.wantPage(a.get("/login?return=%2Fplans"), http.StatusOK, `href="/login/oidc?return=%2fplans"`, "Log in at "+a.issuer.URL)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	if len(a.jar) != 1 {
		t.Errorf("the browser has %d cookies, and not that of the session alone", len(a.jar))
	}
	a.wantPage(a.get("/whoami"), http.StatusOK, "alice")
	if strings.Contains(a.log.String(), "eyJ") {
		t.Errorf("the log has a token: %s", a.log)
	}
}

func TestALoginOfAnAttackerIsRefused(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// Each attack changes the way back of a login that would be good.
	for name, attack := range map[string]func(a *at, v *visitor, back string) string{
		"an ID token of another issuer": func(a *at, _ *visitor, back string) string {
			a.issuer.Spoil(func(claims map[string]any) { claims["iss"] = "https://evil.example" })
			return back
		},
		"an ID token of another client": func(a *at, _ *visitor, back string) string {
			a.issuer.Spoil(func(claims map[string]any) { claims["aud"] = "another" })
			return back
		},
		"an ID token of another login": func(a *at, _ *visitor, back string) string {
			a.issuer.Spoil(func(claims map[string]any) { claims["nonce"] = "another" })
			return back
		},
		"an ID token without a nonce": func(a *at, _ *visitor, back string) string {
			a.issuer.Spoil(func(claims map[string]any) { delete(claims, "nonce") })
			return back
		},
		"an ID token that has ended": func(a *at, _ *visitor, back string) string {
			a.issuer.Spoil(func(claims map[string]any) { claims["exp"] = a.Clock.Now().Add(-time.Second).Unix() })
			return back
		},
		"an ID token of another key": func(a *at, _ *visitor, back string) string {
			a.issuer.SignWith(other)
			return back
		},
		"an issuer that the API server does not trust": func(a *at, _ *visitor, back string) string {
			a.trusts = false
			return back
		},
		"a code that was used": func(a *at, v *visitor, back string) string {
			thief := &visitor{a.opened, maps.Clone(v.jar)} // with the cookie of the browser as well
			v.wantLed(v.get(back), "/plans")
			v.jar = thief.jar
			return back
		},
		"a code that was used in the same browser": func(_ *at, v *visitor, back string) string {
			v.wantLed(v.get(back), "/plans")
			delete(v.jar, "__Host-plumbline-session")
			return back
		},
		"the state of another browser": func(a *at, _ *visitor, _ string) string { return a.authorize(a.visit()) },
		"the code of another browser": func(a *at, _ *visitor, back string) string {
			theirs, err := url.Parse(a.authorize(a.visit()))
			if err != nil {
				a.t.Fatal(err)
			}
			mine, err := url.Parse(back)
			if err != nil {
				a.t.Fatal(err)
			}
			query := mine.Query()
			query.Set("code", theirs.Query().Get("code"))
			return mine.Path + "?" + query.Encode()
		},
		"a browser that began no login": func(_ *at, v *visitor, back string) string {
			clear(v.jar)
			return back
		},
		"a login of an unknown key": func(a *at, v *visitor, back string) string {
			for _, c := range openConsole(a.t, keys(a.t, 9), nil).visit().logIn("alice").jar {
				v.jar["__Host-plumbline-login"] = &http.Cookie{Name: "__Host-plumbline-login", Value: c.Value}
			}
			return back
		},
		"a session in the place of the login": func(a *at, v *visitor, back string) string {
			for _, c := range a.visit().logIn("alice").jar {
				v.jar["__Host-plumbline-login"] = &http.Cookie{Name: "__Host-plumbline-login", Value: c.Value}
			}
			return back
		},
		"a login in the place of the session": func(_ *at, v *visitor, _ string) string {
			v.jar["__Host-plumbline-session"] = &http.Cookie{Name: "__Host-plumbline-session", Value: v.jar["__Host-plumbline-login"].Value}
			delete(v.jar, "__Host-plumbline-login")
			return "/login/callback?code=a&state=b"
		},
		"a login that took too long": func(a *at, _ *visitor, back string) string {
			a.Pass(10 * time.Minute)
			return back
		},
		"another issuer in the address": func(a *at, _ *visitor, back string) string {
			return strings.Replace(back, url.QueryEscape(a.issuer.URL), "https%3A%2F%2Fevil.example", 1)
		},
		"no code": func(_ *at, _ *visitor, back string) string { return strings.Replace(back, "code=", "none=", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			a := openAtIssuer(t)
			v := a.visit()
			back := attack(a, v, a.authorize(v))
			w := v.get(back)
			v.wantPage(w, http.StatusUnauthorized, loginPage, `role="alert"`)
			a.wantNoSession(v, w, back)
		})
	}
}

func TestAUserWhoRefusesAtTheIssuerIsAskedAgain(t *testing.T) {
	a := openAtIssuer(t)
	a.issuer.LogIn("")
	a.wantPage(a.get(a.authorize(a.visitor)), http.StatusUnauthorized, "The issuer has not logged you in.", `value="/plans"`)
}

func TestASessionIsRefreshedNearItsEnd(t *testing.T) {
	a := openAtIssuer(t)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	a.Pass(issuer.Lasts - time.Minute - time.Second)
	a.wantPage(a.get("/plans"), http.StatusOK)
	if got := a.issuer.Asked("/token"); got != 1 {
		t.Errorf("the issuer was asked for tokens %d times before the end is near", got)
	}
	a.Pass(time.Second)
	before := &visitor{a.opened, maps.Clone(a.jar)}
	a.wantPage(a.get("/plans"), http.StatusOK)
	// A request that was sent with the cookies of before gets the same tokens: the issuer takes a refresh token once.
	before.wantPage(before.get("/plans"), http.StatusOK)
	if got := a.issuer.Asked("/token"); got != 2 {
		t.Errorf("the issuer was asked for tokens %d times", got)
	}
	for range 3 {
		a.Pass(issuer.Lasts - time.Second)
		a.wantPage(a.get("/plans"), http.StatusOK)
		a.wantPage(a.get("/whoami"), http.StatusOK, "alice")
	}
	if got := a.issuer.Asked("/token"); got != 5 {
		t.Errorf("the issuer was asked for tokens %d times", got)
	}
	// After the end of a token, the refresh token still counts, until twelve hours after the login.
	a.Pass(6 * time.Hour)
	a.wantPage(a.get("/plans"), http.StatusOK)
	a.Pass(6 * time.Hour)
	a.wantLed(a.get("/plans"), "/login?return=%2Fplans")
	if strings.Contains(a.log.String(), "api.refresh.failed") || strings.Contains(a.log.String(), "eyJ") {
		t.Errorf("the log says %s", a.log)
	}
}

func TestASessionGoesOnWithoutItsIssuerUntilItsTokenEnds(t *testing.T) {
	for name, fail := range map[string]func(*at){
		"the issuer is away":                func(a *at) { a.issuer.GoAway(true) },
		"the next token is of another user": func(a *at) { a.issuer.Spoil(func(claims map[string]any) { claims["sub"] = "bob" }) },
		"the next token is of another issuer": func(a *at) {
			a.issuer.Spoil(func(claims map[string]any) { claims["iss"] = "https://evil.example" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := openAtIssuer(t)
			a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
			fail(a)
			a.Pass(issuer.Lasts - time.Second)
			for range 3 {
				a.wantPage(a.get("/whoami"), http.StatusOK, "alice")
			}
			if got := a.issuer.Asked("/token"); got != 2 {
				t.Errorf("the issuer was asked for tokens %d times: a failure is not remembered", got)
			}
			a.Pass(time.Second)
			a.wantLed(a.get("/plans"), "/login?return=%2Fplans")
			if !strings.Contains(a.log.String(), "api.refresh.failed") || strings.Contains(a.log.String(), "refresh_token") {
				t.Errorf("the log says %s", a.log)
			}
		})
	}
}

func TestALoginSaysThatTheIssuerIsAway(t *testing.T) {
	a := openAtIssuer(t)
	a.issuer.GoAway(true)
	a.wantPage(a.get("/login/oidc?return=%2Fplans"), http.StatusServiceUnavailable, "The issuer does not answer.", `value="/plans"`)
	a.logIn("bob") // by a token
	a.wantPage(a.get("/whoami"), http.StatusOK, "bob")
	a.issuer.GoAway(false)
	a.wantLed(a.get(a.authorize(a.visitor)), "/plans")
	a.wantPage(a.get("/whoami"), http.StatusOK, "alice")
}

func TestWithoutAnIssuerThereIsNoLoginByOne(t *testing.T) {
	v := openConsole(t, keys(t, 1), nil).visit()
	if w := v.get("/login"); strings.Contains(w.Body.String(), "OpenID") {
		t.Errorf("the page offers an issuer: %s", w.Body)
	}
	for _, target := range []string{"/login/oidc", "/login/callback?code=a&state=b"} {
		v.wantProblem(v.get(target), "not-found")
	}
}
