// SPDX-License-Identifier: Apache-2.0

package login

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/serve/session"
)

// leaving is a logout at the issuer, in the cookie of the browser in which it has begun.
type leaving struct {
	State string `json:"state"`
}

// logOut ends the session of a browser, and leads a user of the issuer there, so that the session at the issuer ends as well.
func (l *Login) logOut(w http.ResponseWriter, r *http.Request) {
	h, found := session.Read[held](r, l.Keys, session.Caller, l.Clock.Now())
	session.Clear(w, session.Caller)
	session.Clear(w, session.Flow)
	address := ""
	if found && h.Subject != "" { // the ID token of an issuer
		address = l.endAtIssuer(w, r, h.Token)
	}
	if address == "" {
		lead(w, view.LoginPath)
		return
	}
	// Browsers apply form-action of the Content-Security-Policy also to redirects of a form. A page that leads on is no redirect.
	w.Header().Set("Refresh", "0; url="+address)
	l.answerPage(w, http.StatusOK, &view.Login{Return: view.FleetPath, Notice: loggedOutHere, EndSession: address})
}

// endAtIssuer returns the address at which the session at the issuer ends; empty if the issuer has none, or does not answer.
func (l *Login) endAtIssuer(w http.ResponseWriter, r *http.Request, token string) string {
	if l.Provider == nil {
		return ""
	}
	b := leaving{State: rand.Text()}
	address, err := l.Provider.EndSessionURL(r.Context(), token, "https://"+r.Host+view.LogoutCallbackPath, b.State)
	if err == nil && address != "" {
		err = session.Write(w, l.Keys, session.Logout, l.Clock.Now().Add(flowLasts), b)
	}
	if err != nil {
		l.Log.Warn("api.logout.failed", "error", err.Error())
		return ""
	}
	return address
}

// comeBackLoggedOut tells a user that the session at the issuer has ended, if this browser has asked for that.
func (l *Login) comeBackLoggedOut(w http.ResponseWriter, r *http.Request) {
	b, found := session.Read[leaving](r, l.Keys, session.Logout, l.Clock.Now())
	session.Clear(w, session.Logout)
	if !found || subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("state")), []byte(b.State)) != 1 {
		lead(w, view.LoginPath)
		return
	}
	l.answerPage(w, http.StatusOK, &view.Login{Return: view.FleetPath, Notice: loggedOutThere})
}
