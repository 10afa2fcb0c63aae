// SPDX-License-Identifier: Apache-2.0

package door

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/cluster"
	"github.com/plumbline-dev/plumbline/pkg/tlsport"
)

// strictTransport has browsers use TLS alone for a year (RFC 6797).
const strictTransport = "max-age=31536000"

// Config has the parts that a Door uses.
type Config struct {
	API     *httpapi.API
	Callers *callers.Callers
	// Console serves browsers; nil if they are not served.
	Console *Console
	// Hosts are those that are served, as the Host header has them.
	Hosts   []string
	Bounds  Bounds
	Metrics Metrics
	Log     *slog.Logger
}

// Door serves the API to callers with a token.
type Door struct {
	config    Config
	protected http.Handler
	// inner serves known callers.
	inner                     http.Handler
	addresses, users, streams *places
}

// New makes a Door.
func New(c Config) *Door {
	d := &Door{config: c, addresses: newPlaces(c.Bounds.OfAddress), users: newPlaces(c.Bounds.OfUser), streams: newPlaces(c.Bounds.StreamsOfAddress)}
	d.inner = c.API
	if c.Console != nil {
		d.inner = c.Console.Pages
	}
	d.protected = compressAnswers(httpapi.Protect(http.HandlerFunc(d.bound), c.Hosts...))
	return d
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Strict-Transport-Security", strictTransport)
	operation := d.operationOf(r)
	a := &answer{ResponseWriter: w, code: http.StatusOK}
	defer func() { d.config.Metrics.count(operation, a.code) }()
	d.protected.ServeHTTP(a, r)
}

// answer notes the code of an answer.
type answer struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find the writer below.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// bound bounds the requests of an address.
func (d *Door) bound(w http.ResponseWriter, r *http.Request) {
	address := tlsport.HostOf(r.RemoteAddr)
	if !d.addresses.enter(address) {
		refuseMany(w, "your address has too many requests under way")
		return
	}
	leave := sync.OnceFunc(func() { d.addresses.leave(address) })
	defer leave()
	if d.serveStranger(w, r) {
		return
	}
	caller, problem := d.identify(w, r)
	if problem != nil {
		d.refuse(w, r, problem)
		return
	}
	if d.config.API.OperationOf(r) == httpapi.StreamEventsID {
		leave() // a stream lasts, and has places of its own
		d.stream(w, r, address, caller)
		return
	}
	d.admit(w, r, caller)
}

// identify returns the caller of a request, or why there is none.
func (d *Door) identify(w http.ResponseWriter, r *http.Request) (*callers.Caller, *wire.Problem) {
	token, err := "", moveToken(r.Header)
	switch {
	case err != nil:
	case d.config.Console != nil && len(r.Header.Values("Authorization")) == 0:
		return d.identifyBrowser(w, r)
	default:
		token, err = bearer(r.Header)
	}
	if err != nil {
		return nil, wire.NewProblem(wire.Unauthenticated, err.Error())
	}
	caller, err := d.config.Callers.Identify(r.Context(), token)
	return caller, d.problemOf(err)
}

// problemOf tells why there is no caller; nil without an error.
func (d *Door) problemOf(err error) *wire.Problem {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, callers.ErrRefused):
		return wire.NewProblem(wire.Unauthenticated, err.Error())
	}
	d.config.Log.Warn("api.review.failed", "error", err.Error())
	return wire.NewProblem(wire.Unavailable, "the API server cannot be asked who you are: try again")
}

// admit serves a known caller.
func (d *Door) admit(w http.ResponseWriter, r *http.Request, caller *callers.Caller) {
	user := caller.User.Username
	if !d.users.enter(user) {
		refuseMany(w, "you have too many requests under way")
		return
	}
	defer d.users.leave(user)
	caller.Writes = writes(r)
	r.Header.Del("Authorization") // no handler needs the token
	r.Header.Del("Cookie")
	r.Body = http.MaxBytesReader(w, r.Body, wire.MaxBytes+2) // the API itself refuses a body that is larger than MaxBytes
	r = r.WithContext(callers.With(r.Context(), caller))
	if !caller.Writes {
		d.inner.ServeHTTP(w, r)
		return
	}
	a := &answer{ResponseWriter: w, code: http.StatusOK}
	defer func() { d.audit(r, caller, a.code) }()
	if !caller.MayWrite {
		d.refuse(a, r, cluster.TokenAudience())
		return
	}
	d.inner.ServeHTTP(a, r)
}

// audit logs a request that may have written.
func (d *Door) audit(r *http.Request, caller *callers.Caller, code int) {
	d.config.Log.Info("api.write",
		"user", caller.User.Username, "uid", caller.User.UID, "operation", d.operationOf(r), "path", r.URL.Path,
		"status", code, "from", tlsport.HostOf(r.RemoteAddr))
}

func refuseMany(w http.ResponseWriter, detail string) {
	w.Header().Set("Retry-After", "1")
	httpapi.WriteProblem(w, wire.NewProblem(wire.TooManyRequests, detail))
}
