// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// keyParameter is the query that carries the key once.
const keyParameter = "key"

// Door lets callers with its key in.
type Door struct {
	key  string
	port int
}

// NewDoor makes the door of a port, with a key of its own.
func NewDoor(port int) (*Door, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Door{base64.RawURLEncoding.EncodeToString(secret), port}, nil
}

// URL returns the address with the key. A caller with the address acts as the user.
func (d *Door) URL() string {
	return (&url.URL{Scheme: "http", Host: d.hosts()[0], Path: "/", RawQuery: url.Values{keyParameter: {d.key}}.Encode()}).String()
}

func (d *Door) hosts() []string {
	port := strconv.Itoa(d.port)
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("localhost", port)}
}

// cookieName has the port, since browsers send a cookie to all ports of a host.
func (d *Door) cookieName() string { return fmt.Sprintf("plumbline-console-%d", d.port) }

// Guard serves next to callers with the key.
func (d *Door) Guard(next http.Handler) http.Handler {
	return httpapi.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && d.opens(r.URL.Query().Get(keyParameter)) {
			d.letIn(w, r)
			return
		}
		if cookie, err := r.Cookie(d.cookieName()); err == nil && d.opens(cookie.Value) {
			next.ServeHTTP(w, r)
			return
		}
		httpapi.WriteProblem(w, wire.NewProblem(wire.Unauthenticated, "open the address that kubectl plumbline console printed"))
	}), d.hosts()...)
}

func (d *Door) opens(key string) bool {
	return subtle.ConstantTimeCompare([]byte(key), []byte(d.key)) == 1
}

// letIn sets the cookie, and leads to the same path without the key, so that the key stays in no
// address bar.
func (d *Door) letIn(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: d.cookieName(), Value: d.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	query := r.URL.Query()
	query.Del(keyParameter)
	// A path of two slashes would lead to another host.
	to := url.URL{Path: "/" + trimSlashes(r.URL.Path), RawQuery: query.Encode()}
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusSeeOther)
}

func trimSlashes(path string) string {
	for len(path) > 0 && (path[0] == '/' || path[0] == '\\') {
		path = path[1:]
	}
	return path
}
