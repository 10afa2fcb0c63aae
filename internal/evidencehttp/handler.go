// SPDX-License-Identifier: Apache-2.0

package evidencehttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// Prefix of all paths.
const Prefix = "/evidence/"

// Handler serves the records and bodies of a store, and nothing else that may be in it.
func Handler(store evidence.Store) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix+"{$}", func(w http.ResponseWriter, r *http.Request) { list(w, r, store) })
	mux.HandleFunc("GET "+Prefix+"{chain}/{record}", func(w http.ResponseWriter, r *http.Request) { read(w, r, store) })
	return mux
}

func list(w http.ResponseWriter, r *http.Request, store evidence.Store) {
	var names strings.Builder
	for name, err := range store.List(r.Context(), r.URL.Query().Get("chain")) {
		if err != nil {
			http.Error(w, "the records cannot be listed", http.StatusServiceUnavailable)
			return
		}
		names.WriteString(name + "\n")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprint(w, names.String()) // who does not listen any more needs no answer
}

func read(w http.ResponseWriter, r *http.Request, store evidence.Store) {
	name := r.PathValue("chain") + "/" + r.PathValue("record")
	_, _, isRecord := evidence.ParseName(name)
	_, _, isBody := evidence.ParseBodyName(name)
	if !isRecord && !isBody {
		http.NotFound(w, r) // only names of records and bodies are ever looked up
		return
	}
	data, err := store.Read(r.Context(), name)
	switch {
	case errors.Is(err, evidence.ErrNotFound):
		http.NotFound(w, r)
	case err != nil:
		http.Error(w, "the record cannot be read", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data) //nolint:gosec // a record or body as it is stored, told to be JSON
	}
}
