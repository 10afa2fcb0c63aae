// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Check says why a part is not ready; nil when it is. It must be quick and
// safe to call from several goroutines.
type Check func() error

// Health collects readiness checks. The zero value has none and is ready.
type Health struct {
	mu     sync.RWMutex
	checks map[string]Check
}

// Add registers a readiness check; a second one of the same name replaces the first.
func (h *Health) Add(name string, check Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checks == nil {
		h.checks = map[string]Check{}
	}
	h.checks[name] = check
}

// Ready runs all checks and returns the reasons of those that fail, by name.
func (h *Health) Ready() map[string]error {
	h.mu.RLock()
	checks := maps.Clone(h.checks)
	h.mu.RUnlock()
	failed := map[string]error{}
	for name, check := range checks {
		if err := check(); err != nil {
			failed[name] = err
		}
	}
	return failed
}

// Handler serves /healthz (the process answers) and /readyz (all checks pass;
// else 503 with one line per failing check).
func (h *Health) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "ok") // The prober may have hung up; nobody else reads this.
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		failed := h.Ready()
		if len(failed) == 0 {
			_, _ = fmt.Fprintln(w, "ok")
			return
		}
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(failed)) {
			fmt.Fprintf(&b, "%s: %v\n", name, failed[name])
		}
		http.Error(w, b.String(), http.StatusServiceUnavailable)
	})
	return mux
}
