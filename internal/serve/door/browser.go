// SPDX-License-Identifier: Apache-2.0

package door

import (
	"errors"
	"net/http"
	"path"

	"github.com/plumbline-dev/plumbline/internal/console/pages"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/login"
)

// Console serves browsers.
type Console struct {
	Pages *pages.Pages
	Login *login.Login
}

// loginEnded is the sentence about a form that was sent after the end of a session.
const loginEnded = "Your session has ended, and the form was not sent. Log in, and send it again."

// operationOf names what a request is for; empty for a path without an operation.
func (d *Door) operationOf(r *http.Request) string {
	if c := d.config.Console; c != nil {
		if id := c.Login.OperationOf(r); id != "" {
			return id
		}
		if id := c.Pages.OperationOf(r); id != "" {
			return id
		}
	}
	return d.config.API.OperationOf(r)
}

// serveStranger serves the requests for which no caller has to be known: logging in and out, and the files of pages.
func (d *Door) serveStranger(w http.ResponseWriter, r *http.Request) bool {
	c := d.config.Console
	switch {
	case c == nil:
		return false
	case c.Login.OperationOf(r) != "":
		c.Login.ServeHTTP(w, r)
	case c.Pages.OperationOf(r) == pages.AssetsID:
		c.Pages.ServeHTTP(w, r)
	default:
		return false
	}
	return true
}

// isOfPage tells whether a request is for a page of the console, or sends a form of one.
func (d *Door) isOfPage(r *http.Request) bool {
	return d.config.Console != nil && d.config.Console.Pages.OperationOf(r) != ""
}

// identifyBrowser returns the caller of a request by the session of its browser.
func (d *Door) identifyBrowser(w http.ResponseWriter, r *http.Request) (*callers.Caller, *wire.Problem) {
	if !d.isOfPage(r) {
		if problem := checkSource(r); problem != nil {
			return nil, problem
		}
	}
	caller, err := d.config.Console.Login.CallerOf(w, r)
	if errors.Is(err, login.ErrNoSession) {
		return nil, wire.NewProblem(wire.Unauthenticated, errNoToken.Error())
	}
	return caller, d.problemOf(err)
}

// checkSource bounds the requests to the REST API that a session answers: a page of the console reads it, and
// forms alone write. net/http lets each GET of another origin pass, so it is checked as if it were a POST.
func checkSource(r *http.Request) *wire.Problem {
	if writes(r) {
		return wire.NewProblem(wire.Unauthenticated, "a session writes by the forms of pages: "+errNoToken.Error())
	}
	asked := r.Clone(r.Context())
	asked.Method = http.MethodPost
	if err := http.NewCrossOriginProtection().Check(asked); err != nil {
		return wire.NewProblem(wire.CrossOrigin, "a page of another origin sent this request")
	}
	return nil
}

// refuse answers a request with a problem: by the page for logging in, by a page that tells the problem, or as JSON.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, problem *wire.Problem) {
	isUnknown := problem.Status == http.StatusUnauthorized
	if isUnknown {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	switch {
	case !d.isOfPage(r):
		httpapi.WriteProblem(w, problem)
	case !isUnknown || r.Header.Get("Authorization") != "":
		d.config.Console.Pages.Refuse(w, r, problem)
	case writes(r):
		d.config.Console.Login.Ask(w, path.Dir(r.URL.EscapedPath()), loginEnded)
	default:
		w.Header().Set("Location", login.AddressOf(r.URL.RequestURI()))
		w.WriteHeader(http.StatusSeeOther)
	}
}

func writes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }
