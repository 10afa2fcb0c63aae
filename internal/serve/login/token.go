// SPDX-License-Identifier: Apache-2.0

package login

import (
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/session"
	"github.com/plumbline-dev/plumbline/pkg/tlsport"
)

// maxForm bounds the form with a token, in bytes.
const maxForm = 16 << 10

// Sentences of the page.
const (
	loggedOutHere  = "You are logged out here."
	loggedOutThere = "You are logged out here and at the issuer."

	noForm      = "The form cannot be read."
	noToken     = "The API server does not know this token."
	notAsked    = "The API server cannot be asked whose this token is. Try again."
	tooLong     = "The token is too long for a session. Use it with the REST API."
	noIssuer    = "The issuer does not answer. Try again, or log in with a token."
	noFlow      = "This login did not begin in this browser, or it took too long. Log in again."
	notLoggedIn = "The issuer has not logged you in. Try again."
	notTaken    = "The API server does not take the ID token of the issuer: it must trust the issuer and the client."
)

// takeToken begins a session with the token of a form.
func (l *Login) takeToken(w http.ResponseWriter, r *http.Request) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
		l.answer(w, http.StatusUnsupportedMediaType, "", noForm)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		l.answer(w, status, "", noForm)
		return
	}
	back, token := r.PostForm.Get(view.ReturnInput), strings.TrimSpace(r.PostForm.Get(view.TokenInput))
	h := held{Token: token, End: l.Clock.Now().Add(lasts).Unix()}
	if end, told := callers.EndOf(token); told {
		h.End = min(h.End, end.Unix())
	}
	h.TokenEnd = h.End
	if !callers.IsToken(token) {
		l.answer(w, http.StatusUnauthorized, back, noToken)
		return
	}
	l.begin(w, r, &h, "token", back, noToken)
}

// begin begins a session if the API server knows its token. The sentence tells a user that it does not.
func (l *Login) begin(w http.ResponseWriter, r *http.Request, h *held, by, back, unknown string) {
	from := tlsport.HostOf(r.RemoteAddr)
	caller, err := l.Callers.Identify(r.Context(), h.Token)
	switch {
	case errors.Is(err, callers.ErrRefused):
		l.Log.Info("api.login.refused", "by", by, "from", from)
		l.answer(w, http.StatusUnauthorized, back, unknown)
		return
	case err != nil:
		l.Log.Warn("api.review.failed", "error", err.Error())
		l.answer(w, http.StatusServiceUnavailable, back, notAsked)
		return
	}
	if err := l.keep(w, h); err != nil {
		l.Log.Warn("api.login.failed", "by", by, "from", from, "error", err.Error())
		l.answer(w, http.StatusUnprocessableEntity, back, tooLong)
		return
	}
	l.Log.Info("api.login", "user", caller.User.Username, "uid", caller.User.UID, "by", by, "from", from)
	lead(w, pathOf(back))
}

// keep sets the cookies of a session. A session that is too large goes on without a refresh.
func (l *Login) keep(w http.ResponseWriter, h *held) error {
	err := session.Write(w, l.Keys, session.Caller, time.Unix(h.End, 0), *h)
	if errors.Is(err, session.ErrTooLarge) && h.Refresh != "" {
		h.Refresh, h.End = "", min(h.End, h.TokenEnd)
		return session.Write(w, l.Keys, session.Caller, time.Unix(h.End, 0), *h)
	}
	return err
}

// ErrNoSession says that a browser has no session.
var ErrNoSession = errors.New("the browser has no session")

// CallerOf returns the caller of a request by the session of its browser. The error is [ErrNoSession],
// [callers.ErrRefused], or says why the API server could not be asked.
func (l *Login) CallerOf(w http.ResponseWriter, r *http.Request) (*callers.Caller, error) {
	now := l.Clock.Now()
	h, found := session.Read[held](r, l.Keys, session.Caller, now)
	if !found {
		return nil, ErrNoSession
	}
	if caller := l.refresh(r.Context(), w, &h, now); caller != nil {
		return caller, nil
	}
	if now.Unix() >= h.TokenEnd {
		return nil, ErrNoSession
	}
	return l.Callers.Identify(r.Context(), h.Token)
}
