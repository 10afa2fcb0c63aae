// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/servetest"
)

const (
	root = "../../.."
	host = "plumbline-api.plumbline-system.svc"
)

// opened is a door about a world, with its log.
type opened struct {
	*Door
	*servetest.World
	t   *testing.T
	api *httpapi.API
	log *bytes.Buffer
}

func open(t *testing.T, bounds Bounds) *opened {
	t.Helper()
	return openWith(t, bounds, nil)
}

// openWith opens a door with a console, if there is one.
func openWith(t *testing.T, bounds Bounds, consoleOf func(*servetest.World, *httpapi.API, *slog.Logger) *Console) *opened {
	t.Helper()
	log := &bytes.Buffer{}
	lines := slog.New(slog.NewJSONHandler(log, nil))
	o := openAbout(t, servetest.New(t, lines, servetest.Shop(t, root)...), bounds, lines, consoleOf)
	o.log = log
	return o
}

// openAbout opens a door about a world. Streams follow the world until the test ends.
func openAbout(t *testing.T, w *servetest.World, bounds Bounds, log *slog.Logger, consoleOf func(*servetest.World, *httpapi.API, *slog.Logger) *Console) *opened {
	t.Helper()
	api := httpapi.New(w.Cluster, "v0.0.0-test", log)
	var following sync.WaitGroup
	following.Go(func() { api.Follow(t.Context()) })
	t.Cleanup(following.Wait)
	c := Config{API: api, Callers: w.Callers, Hosts: []string{host, "plumbline.example:8443"}, Bounds: bounds, Metrics: NewMetrics(), Log: log}
	if consoleOf != nil {
		c.Console = consoleOf(w, api, log)
	}
	return &opened{Door: New(c), World: w, t: t, api: api}
}

// request makes a request with a token, and with headers, each with its value behind it.
func (o *opened) request(method, target, token, body string, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(o.t.Context(), method, target, strings.NewReader(body))
	r.Host = host
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// answer sends a request through the door.
func (o *opened) answer(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	o.ServeHTTP(w, r)
	return w
}

func (o *opened) send(method, target, token, body string, headers ...string) *httptest.ResponseRecorder {
	return o.answer(o.request(method, target, token, body, headers...))
}

// wantProblem demands a problem of a type.
func (o *opened) wantProblem(w *httptest.ResponseRecorder, want wire.ProblemType) {
	o.t.Helper()
	var p wire.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Type != wire.ProblemBase+string(want) || p.Status != w.Code {
		o.t.Errorf("%d %s (%v), want %s", w.Code, w.Body, err, want)
	}
}

// route is one of the mux, with a name for each wildcard.
type route struct{ method, target string }

// routes are all that there are, and one that is none.
func (o *opened) routes() []route {
	o.t.Helper()
	all := []route{{http.MethodGet, "/none"}}
	for _, pattern := range o.api.Routes() {
		method, path, found := strings.Cut(pattern, " ")
		if !found {
			method, path = http.MethodGet, pattern
		}
		all = append(all, route{method, strings.NewReplacer("{id}", "shop.web", "{$}", "").Replace(path)})
	}
	if len(all) < 40 {
		o.t.Fatalf("only %d routes were found", len(all))
	}
	return all
}
