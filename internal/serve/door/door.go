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
	// Hosts are those that are served, as the Host header has them.
	Hosts   []string
	Bounds  Bounds
	Metrics Metrics
	Log     *slog.Logger
}

// Door serves the API to callers with a token.
type Door struct {
	config                    Config
	protected                 http.Handler
	addresses, users, streams *places
}

// New makes a Door.
func New(c Config) *Door {
	d := &Door{config: c, addresses: newPlaces(c.Bounds.OfAddress), users: newPlaces(c.Bounds.OfUser), streams: newPlaces(c.Bounds.StreamsOfAddress)}
	d.protected = httpapi.Protect(http.HandlerFunc(d.bound), c.Hosts...)
	return d
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Strict-Transport-Security", strictTransport)
	operation := d.config.API.OperationOf(r)
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
	caller, problem := d.identify(r)
	if problem != nil {
		if problem.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		httpapi.WriteProblem(w, problem)
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
func (d *Door) identify(r *http.Request) (*callers.Caller, *wire.Problem) {
	token, err := "", moveToken(r.Header)
	if err == nil {
		token, err = bearer(r.Header)
	}
	if err != nil {
		return nil, wire.NewProblem(wire.Unauthenticated, err.Error())
	}
	caller, err := d.config.Callers.Identify(r.Context(), token)
	switch {
	case errors.Is(err, callers.ErrRefused):
		return nil, wire.NewProblem(wire.Unauthenticated, err.Error())
	case err != nil:
		d.config.Log.Warn("api.review.failed", "error", err.Error())
		return nil, wire.NewProblem(wire.Unavailable, "the API server cannot be asked who you are: try again")
	}
	return caller, nil
}

// admit serves a known caller.
func (d *Door) admit(w http.ResponseWriter, r *http.Request, caller *callers.Caller) {
	user := caller.User.Username
	if !d.users.enter(user) {
		refuseMany(w, "you have too many requests under way")
		return
	}
	defer d.users.leave(user)
	caller.Writes = r.Method != http.MethodGet && r.Method != http.MethodHead
	r.Header.Del("Authorization")                            // no handler needs the token
	r.Body = http.MaxBytesReader(w, r.Body, wire.MaxBytes+2) // the API itself refuses a body that is larger than MaxBytes
	r = r.WithContext(callers.With(r.Context(), caller))
	if !caller.Writes {
		d.config.API.ServeHTTP(w, r)
		return
	}
	a := &answer{ResponseWriter: w, code: http.StatusOK}
	defer func() { d.audit(r, caller, a.code) }()
	if !caller.MayWrite {
		httpapi.WriteProblem(a, cluster.TokenAudience())
		return
	}
	d.config.API.ServeHTTP(a, r)
}

// audit logs a request that may have written.
func (d *Door) audit(r *http.Request, caller *callers.Caller, code int) {
	d.config.Log.Info("api.write",
		"user", caller.User.Username, "uid", caller.User.UID, "operation", d.config.API.OperationOf(r), "path", r.URL.Path,
		"status", code, "from", tlsport.HostOf(r.RemoteAddr))
}

func refuseMany(w http.ResponseWriter, detail string) {
	w.Header().Set("Retry-After", "1")
	httpapi.WriteProblem(w, wire.NewProblem(wire.TooManyRequests, detail))
}
