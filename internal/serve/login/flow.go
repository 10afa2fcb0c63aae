// SPDX-License-Identifier: Apache-2.0

package login

import (
	"crypto/subtle"
	"net/http"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/oidc"
	"github.com/plumbline-dev/plumbline/internal/serve/session"
	"github.com/plumbline-dev/plumbline/pkg/tlsport"
)

// begun is a login at the issuer, in the cookie of the browser in which it has begun.
type begun struct {
	oidc.Flow
	Return string `json:"return"`
}

// redirectOf is where the issuer leads back to. The host is one of those that are served.
func redirectOf(r *http.Request) string { return "https://" + r.Host + view.CallbackPath }

// leadToIssuer begins a login at the issuer.
func (l *Login) leadToIssuer(w http.ResponseWriter, r *http.Request) {
	if l.Provider == nil {
		httpapi.WriteProblem(w, wire.NewProblem(wire.NotFound, "no issuer of OpenID Connect is configured"))
		return
	}
	b := begun{oidc.NewFlow(), pathOf(r.URL.Query().Get(view.ReturnInput))}
	address, err := l.Provider.AuthorizationURL(r.Context(), redirectOf(r), &b.Flow)
	if err == nil {
		err = session.Write(w, l.Keys, session.Flow, l.Clock.Now().Add(flowLasts), b)
	}
	if err != nil {
		l.fail(w, r, b.Return, http.StatusServiceUnavailable, noIssuer, err)
		return
	}
	lead(w, address)
}

// comeBack ends a login at the issuer. Whatever its outcome is, the browser cannot end it twice.
func (l *Login) comeBack(w http.ResponseWriter, r *http.Request) {
	if l.Provider == nil {
		httpapi.WriteProblem(w, wire.NewProblem(wire.NotFound, "no issuer of OpenID Connect is configured"))
		return
	}
	b, found := session.Read[begun](r, l.Keys, session.Flow, l.Clock.Now())
	session.Clear(w, session.Flow)
	query := r.URL.Query()
	switch {
	case !found, subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(b.State)) != 1:
		l.refuse(w, r, b.Return, noFlow)
		return
	case query.Has("iss") && query.Get("iss") != l.Provider.Issuer(): // RFC 9207
		l.refuse(w, r, b.Return, noFlow)
		return
	case query.Get("code") == "":
		l.refuse(w, r, b.Return, notLoggedIn)
		return
	}
	tokens, err := l.Provider.Exchange(r.Context(), redirectOf(r), query.Get("code"), &b.Flow)
	if err != nil {
		l.fail(w, r, b.Return, http.StatusUnauthorized, notLoggedIn, err)
		return
	}
	h := held{Token: tokens.ID, Refresh: tokens.Refresh, Subject: tokens.Subject, TokenEnd: tokens.End.Unix(), End: l.Clock.Now().Add(lasts).Unix()}
	if h.Refresh == "" {
		h.End = min(h.End, h.TokenEnd)
	}
	l.begin(w, r, &h, "oidc", b.Return, notTaken)
}

// refuse answers a login that this browser did not begin, or that the issuer did not end.
func (l *Login) refuse(w http.ResponseWriter, r *http.Request, back, why string) {
	l.Log.Info("api.login.refused", "by", "oidc", "from", tlsport.HostOf(r.RemoteAddr))
	l.answer(w, http.StatusUnauthorized, back, why)
}

// fail answers a login that an error has ended.
func (l *Login) fail(w http.ResponseWriter, r *http.Request, back string, status int, why string, err error) {
	l.Log.Warn("api.login.failed", "by", "oidc", "from", tlsport.HostOf(r.RemoteAddr), "error", err.Error())
	l.answer(w, status, back, why)
}
