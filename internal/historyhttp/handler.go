// SPDX-License-Identifier: Apache-2.0

package historyhttp

import (
	"encoding/json"
	"net/http"

	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
)

// Prefix is before the name of a release.
const Prefix = "/history/"

// Document is the answer of one replica.
type Document struct {
	Replica string `json:"replica"`
	// Leads says that the replica leads. One that does not has an empty series.
	Leads bool `json:"leads"`
	history.Series
}

// History has the last hour of releases; false while this replica does not lead.
type History interface {
	Read(of history.Release) (history.Series, bool)
}

// Routes answers requests about a history in the name of a replica.
func Routes(replica string, of History) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix+"{namespace}/{name}/{uid}", func(w http.ResponseWriter, r *http.Request) {
		d := Document{Replica: replica, Series: history.Series{Cells: []history.Cell{}, Looks: []history.Look{}}}
		if series, leads := of.Read(history.Release{Namespace: r.PathValue("namespace"), Name: r.PathValue("name"), UID: r.PathValue("uid")}); leads {
			d.Leads, d.Series = true, series
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&d) // a caller who does not listen any more needs no answer
	})
	return proxieshttp.LocalOnly(mux)
}
