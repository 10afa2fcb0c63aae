// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// table has the routes of the operations and the document about them. Both are the same for each API, and making
// them takes longer than most requests. The context of a request has the API that answers the request.
type table struct {
	mux      *routes
	document *huma.OpenAPI
	// ids are those of the operations, by the patterns of their routes.
	ids map[string]string
}

// sharedTable returns the table of the process. No caller changes it.
var sharedTable = sync.OnceValue(newTable)

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

func newTable() *table {
	mux := &routes{ServeMux: http.NewServeMux()}
	registered := humago.New(mux, configuration())
	ids := map[string]string{}
	for _, o := range operations() {
		o.register(registered, describe(&o))
		ids[o.method+" "+o.path] = o.id
		if o.soon != 0 { // the body is the same
			op := operationAt(registered.OpenAPI(), &o)
			op.Responses[strconv.Itoa(o.soon)].Content = op.Responses[strconv.Itoa(o.status)].Content
		}
	}
	for _, form := range []string{"yaml", "json"} {
		mux.HandleFunc("GET "+DocumentPath+"."+form, func(w http.ResponseWriter, r *http.Request) {
			apiOf(r.Context()).serveDocument(w, form)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		WriteProblem(w, wire.NewProblem(wire.NotFound, fmt.Sprintf("no operation is at %s %s", r.Method, r.URL.Path)))
	})
	return &table{mux: mux, document: registered.OpenAPI(), ids: ids}
}

// apiKey is the key of the API in the context of a request.
type apiKey struct{}

func withAPI(ctx context.Context, a *API) context.Context { return context.WithValue(ctx, apiKey{}, a) }

// apiOf returns the API that answers a request. [API.ServeHTTP] has put it there.
func apiOf(ctx context.Context) *API { return ctx.Value(apiKey{}).(*API) }

// configuration has huma serve operations alone: no page that loads scripts from
// elsewhere, no schemas, and no $schema in answers.
func configuration() huma.Config {
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: wire.Unmarshal}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:       "Plumbline",
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
