// SPDX-License-Identifier: Apache-2.0

package door

import (
	"net/http"

	"github.com/plumbline-dev/plumbline/internal/serve/callers"
)

// stream serves the stream of events of a known caller. The API bounds the streams of a user.
func (d *Door) stream(w http.ResponseWriter, r *http.Request, address string, caller *callers.Caller) {
	if !d.streams.enter(address) {
		refuseMany(w, "your address has too many streams")
		return
	}
	defer d.streams.leave(address)
	r.Header.Del("Authorization") // no handler needs the token
	r.Header.Del("Cookie")
	d.config.API.ServeHTTP(w, r.WithContext(callers.With(r.Context(), caller)))
}
