// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.yaml.in/yaml/v3"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// Prefix is before the path of each operation.
const Prefix = "/api/v1"

// DocumentPath is where the OpenAPI document is, with .yaml or .json behind it.
const DocumentPath = Prefix + "/openapi"

// API answers requests. [New] makes one.
type API struct {
	mux      *routes
	document *huma.OpenAPI
	streams  *streams
	// ids are those of the operations, by the patterns of their routes.
	ids map[string]string
}

// server has the values that operations share.
type server struct {
	cluster Cluster
	log     *slog.Logger
	streams *streams
}

// routes is a mux that knows its patterns.
type routes struct {
	*http.ServeMux
	patterns []string
}

// HandleFunc adds a route.
func (r *routes) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.HandleFunc(pattern, handler)
}

// New returns the API about a cluster. The version of Plumbline is that of the document.
func New(cluster Cluster, version string, log *slog.Logger) *API {
	mux := &routes{ServeMux: http.NewServeMux()}
	s := &server{cluster: cluster, log: log}
	s.streams = newStreams(s)
	registered := humago.New(mux, configuration(version))
	ids := map[string]string{}
	for _, o := range operations() {
		o.register(registered, describe(&o), s)
		ids[o.method+" "+o.path] = o.id
		if o.soon != 0 { // the body is the same
			op := operationAt(registered.OpenAPI(), &o)
			op.Responses[strconv.Itoa(o.soon)].Content = op.Responses[strconv.Itoa(o.status)].Content
		}
	}
	a := &API{mux: mux, document: registered.OpenAPI(), streams: s.streams, ids: ids}
	a.serveDocument(log)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		WriteProblem(w, wire.NewProblem(wire.NotFound, fmt.Sprintf("no operation is at %s %s", r.Method, r.URL.Path)))
	})
	return a
}

// configuration has huma serve operations alone: no page that loads scripts from
// elsewhere, no schemas, and no $schema in answers.
func configuration(version string) huma.Config {
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: wire.Unmarshal}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Plumbline", Version: version,
				Description: "Drift, remediation and releases, as the caller may read them. All errors are problems of RFC 9457.",
				License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			Components: &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json", RejectUnknownQueryParameters: true,
	}
}

// statuses are those of the problems that a read can have, beside those that huma documents itself.
var statuses = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMisdirectedRequest,
	http.StatusTooManyRequests, http.StatusServiceUnavailable,
}

// writeStatuses are those of the problems that a write can have in addition.
var writeStatuses = []int{http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}

func describe(o *operation) huma.Operation {
	op := huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Summary: o.summary, Tags: []string{o.tag}, Errors: slices.Clone(statuses),
		DefaultStatus: o.status, MaxBodyBytes: wire.MaxBytes + 1, // huma refuses bodies of this size
		Responses:  map[string]*huma.Response{},
		Extensions: map[string]any{"x-codeSamples": []map[string]string{{"lang": "Shell", "source": o.curl()}}},
	}
	if o.method == http.MethodGet {
		op.Responses[strconv.Itoa(http.StatusNotModified)] = &huma.Response{Description: "The caller has the representation."}
		return op
	}
	op.Errors = append(op.Errors, writeStatuses...)
	if _, conditional := o.headers[ifMatch]; conditional {
		op.Errors = append(op.Errors, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	}
	if o.soon != 0 {
		op.Responses[strconv.Itoa(o.soon)] = &huma.Response{Description: "It has happened."}
	}
	return op
}

// curl writes the example as a command.
func (o *operation) curl() string {
	var b strings.Builder
	b.WriteString("curl ")
	if o.method != http.MethodGet {
		fmt.Fprintf(&b, "--request %s --header 'Content-Type: application/json' ", o.method)
	}
	for _, name := range slices.Sorted(maps.Keys(o.headers)) {
		fmt.Fprintf(&b, "--header '%s: %s' ", name, o.headers[name])
	}
	if o.body != "" {
		fmt.Fprintf(&b, "--data '%s' ", o.body)
	}
	return b.String() + o.example
}

// operationAt returns the operation of the document.
func operationAt(d *huma.OpenAPI, o *operation) *huma.Operation {
	switch item := d.Paths[o.path]; o.method {
	case http.MethodPost:
		return item.Post
	case http.MethodPut:
		return item.Put
	case http.MethodDelete:
		return item.Delete
	default:
		return item.Get
	}
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

// serveDocument serves the OpenAPI document in both of its forms. Each is encoded when it is asked for first.
func (a *API) serveDocument(log *slog.Logger) {
	for form, encode := range map[string]func() ([]byte, error){"yaml": a.Document, "json": a.encodeDocument} {
		encoded := sync.OnceValues(encode)
		a.mux.HandleFunc("GET "+DocumentPath+"."+form, func(w http.ResponseWriter, _ *http.Request) {
			body, err := encoded()
			if err != nil {
				log.Error("the OpenAPI document is not served", "error", err)
				WriteProblem(w, wire.NewProblem(wire.Internal, "the log of Plumbline says more"))
				return
			}
			w.Header().Set("Content-Type", "application/openapi+"+form)
			_, _ = w.Write(body) // a caller who does not listen needs no answer
		})
	}
}

func (a *API) encodeDocument() ([]byte, error) {
	raw, err := json.Marshal(a.document)
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
	a.mux.ServeHTTP(w, r)
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
