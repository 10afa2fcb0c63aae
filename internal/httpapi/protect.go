// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// contentSecurityPolicy lets a page use the same origin alone.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// headers are those of each answer, of errors as well.
var headers = map[string]string{
	"Cache-Control":              "no-store",
	"Content-Security-Policy":    contentSecurityPolicy,
	"Cross-Origin-Opener-Policy": "same-origin",
	"Referrer-Policy":            "no-referrer",
	"X-Content-Type-Options":     "nosniff",
}

// Protect bounds the requests to which a browser may be led. It serves the hosts that are named alone,
// which ends DNS rebinding, refuses requests of pages of other origins, and lets no page elsewhere
// frame, read or cache an answer.
func Protect(next http.Handler, hosts ...string) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteProblem(w, wire.NewProblem(wire.CrossOrigin, "a page of another origin sent this request"))
	}))
	protected := origins.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if !slices.Contains(hosts, r.Host) {
			WriteProblem(w, wire.NewProblem(wire.Misdirected, fmt.Sprintf("the host %q is not served", r.Host)))
			return
		}
		protected.ServeHTTP(w, r)
	})
}
