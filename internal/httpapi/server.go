// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// Prefix is before the path of each operation.
const Prefix = "/api/v1"

// DocumentPath is where the OpenAPI document is, with .yaml or .json behind it.
const DocumentPath = Prefix + "/openapi"

// API answers requests. [New] makes one.
type API struct {
	*server
	*table
	version string
	// forms are those of the document. Each is encoded when it is asked for first.
	forms map[string]func() ([]byte, error)
}

// server has the values that operations share.
type server struct {
	cluster Cluster
	log     *slog.Logger
	streams *streams
}

// New returns the API about a cluster. The version of Plumbline is that of the document.
func New(cluster Cluster, version string, log *slog.Logger) *API {
	s := &server{cluster: cluster, log: log}
	s.streams = newStreams(s)
	a := &API{server: s, table: sharedTable(), version: version}
	a.forms = map[string]func() ([]byte, error){"yaml": sync.OnceValues(a.Document), "json": sync.OnceValues(a.encodeDocument)}
	return a
}

// exampleOf is the path of an operation with the id of an example in it, and the query of the example behind it.
func exampleOf(path, example string) string {
	if !strings.Contains(path, "{id}") {
		return path + example
	}
	id, query, found := strings.Cut(example, "?")
	path = strings.Replace(path, "{id}", id, 1)
	if found {
		path += "?" + query
	}
	return path
}

// serveDocument answers with the OpenAPI document in one of its forms.
func (a *API) serveDocument(w http.ResponseWriter, form string) {
	body, err := a.forms[form]()
	if err != nil {
		a.log.Error("the OpenAPI document is not served", "error", err)
		WriteProblem(w, wire.NewProblem(wire.Internal, "the log of Plumbline says more"))
		return
	}
	w.Header().Set("Content-Type", "application/openapi+"+form)
	_, _ = w.Write(body) // a caller who does not listen needs no answer
}

// encodeDocument encodes the document of all APIs with the version of this one.
func (a *API) encodeDocument() ([]byte, error) {
	document, info := *a.document, *a.document.Info
	info.Version, document.Info = a.version, &info
	raw, err := json.Marshal(&document)
	if err != nil {
		return nil, fmt.Errorf("encoding the OpenAPI document: %w", err)
	}
	return raw, nil
}

// Document returns the OpenAPI document as YAML, with its keys sorted.
func (a *API) Document() ([]byte, error) {
	raw, err := a.encodeDocument()
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(tree); err != nil {
		return nil, fmt.Errorf("encoding the OpenAPI document as YAML: %w", err)
	}
	return text.Bytes(), nil
}

// ServeHTTP implements http.Handler. A write names its body JSON even where it has none: a form of a page
// elsewhere cannot.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if (r.Method == http.MethodPost || r.Method == http.MethodPut) && strings.HasPrefix(r.URL.Path, Prefix+"/") && !isJSON(r.Header.Get("Content-Type")) {
		WriteProblem(w, wire.NewProblem(wire.Unsupported, "send Content-Type: application/json"))
		return
	}
	a.mux.ServeHTTP(w, r.WithContext(withAPI(r.Context(), a)))
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// End ends the streams of events, which would otherwise last as long as their callers.
func (a *API) End() { a.streams.end() }

// Wait returns when the streams of events have ended, after [API.End], or when its context ends.
func (a *API) Wait(ctx context.Context) { a.streams.wait(ctx) }

// Follow has a [Shared] cluster tell its changes to the streams of all callers, until its context ends.
func (a *API) Follow(ctx context.Context) {
	if from, is := a.streams.cluster.(Shared); is {
		a.streams.common.share(ctx, from)
	}
}

// StreamMetrics are those of the streams of events.
func (a *API) StreamMetrics() *StreamMetrics { return a.streams.counts }

// OperationOf returns the id of the operation that a request asks for; empty for a path without one.
func (a *API) OperationOf(r *http.Request) string {
	_, pattern := a.mux.Handler(r)
	return a.ids[pattern]
}

// Routes returns the patterns of all routes, as http.ServeMux has them.
func (a *API) Routes() []string { return slices.Clone(a.mux.patterns) }

// WriteProblem answers with a problem.
func WriteProblem(w http.ResponseWriter, p *wire.Problem) {
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(p) // a caller who does not listen needs no answer
}
