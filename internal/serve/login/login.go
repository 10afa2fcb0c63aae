// SPDX-License-Identifier: Apache-2.0

package login

import (
	"log/slog"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/answers"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/oidc"
	"github.com/plumbline-dev/plumbline/internal/serve/session"
)

const (
	// lasts bounds a session, from the login on.
	lasts = 12 * time.Hour
	// flowLasts bounds how long a user may take at the issuer.
	flowLasts = 10 * time.Minute
)

// Config has the parts that a Login uses.
type Config struct {
	Keys    *session.Keys
	Callers *callers.Callers
	// Provider asks the issuer of OpenID Connect; nil if there is none.
	Provider *oidc.Provider
	Clock    clock.PassiveClock
	Log      *slog.Logger
}

// Login serves the pages by which users log in and out. [New] makes one.
type Login struct {
	Config
	mux       *http.ServeMux
	ids       map[string]string
	refreshed *answers.Memory[outcome]
}

// held is the value of a session.
type held struct {
	Token   string `json:"token"`
	Refresh string `json:"refresh,omitempty"`
	Subject string `json:"subject,omitempty"`
	// TokenEnd is that of the token, and End that of the session, in seconds since 1970.
	TokenEnd int64 `json:"tokenEnd"`
	End      int64 `json:"end"`
}

// New makes a Login, and asks no issuer.
func New(c Config) *Login {
	l := &Login{
		Config: c, mux: http.NewServeMux(), ids: map[string]string{},
		refreshed: answers.New[outcome](c.Clock, refreshes, answers.NewMetrics().Of("refresh")), // no review of the API server: not counted
	}
	l.handle("GET "+view.LoginPath, "login", l.show)
	l.handle("POST "+view.LoginPath, "login", l.takeToken)
	l.handle("GET "+view.IssuerPath, "login-oidc", l.leadToIssuer)
	l.handle("GET "+view.CallbackPath, "login-callback", l.comeBack)
	l.handle("POST "+view.LogoutPath, "logout", l.logOut)
	l.handle("GET "+view.LogoutCallbackPath, "logout-callback", l.comeBackLoggedOut)
	return l
}

func (l *Login) handle(pattern, id string, handler http.HandlerFunc) {
	l.ids[pattern] = id
	l.mux.HandleFunc(pattern, handler)
}

// OperationOf names what a request is for, by one of a fixed set of names; empty for a request that is not served here.
func (l *Login) OperationOf(r *http.Request) string {
	_, pattern := l.mux.Handler(r)
	return l.ids[pattern]
}

// ServeHTTP implements http.Handler, for callers who are not known.
func (l *Login) ServeHTTP(w http.ResponseWriter, r *http.Request) { l.mux.ServeHTTP(w, r) }

// show shows the page. A browser whose session another replica has refreshed meanwhile returns at once.
func (l *Login) show(w http.ResponseWriter, r *http.Request) {
	back := r.URL.Query().Get(view.ReturnInput)
	h, found := session.Read[held](r, l.Keys, session.Caller, l.Clock.Now())
	if found && h.Refresh != "" && back != "" {
		if _, err := l.CallerOf(w, r); err == nil {
			lead(w, pathOf(back))
			return
		}
	}
	l.answer(w, http.StatusOK, back, "")
}

// Ask shows the page for logging in, in the place of an answer to a user without a session.
func (l *Login) Ask(w http.ResponseWriter, back, why string) {
	l.answer(w, http.StatusUnauthorized, back, why)
}

// answer shows the page, with the reason of a refusal.
func (l *Login) answer(w http.ResponseWriter, status int, back, why string) {
	l.answerPage(w, status, &view.Login{Return: pathOf(back), Error: why})
}

func (l *Login) answerPage(w http.ResponseWriter, status int, page *view.Login) {
	if l.Provider != nil {
		page.Issuer = l.Provider.Issuer()
	}
	body, err := view.RenderLogin(page)
	if err != nil {
		l.Log.Error("api.login.page.failed", "error", err.Error())
		httpapi.WriteProblem(w, wire.NewProblem(wire.Internal, "the log of Plumbline says more"))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller who does not listen needs no answer
}

// lead leads a browser to an address, by GET.
func lead(w http.ResponseWriter, address string) {
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}
