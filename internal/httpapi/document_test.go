// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

const (
	documentFile = "../../docs/reference/openapi.yaml"
	pageFile     = "../../docs/reference/api.md"
)

// documentVersion stands in the committed document for the version of each build.
const documentVersion = "v1"

func newDocument(t *testing.T) *API {
	t.Helper()
	return New(newCluster(t, interceptor.Funcs{}), documentVersion, nil)
}

func TestTheDocumentIsTheCommittedOne(t *testing.T) {
	text, err := newDocument(t).Document()
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, documentFile, "# Generated from internal/httpapi; rewrite with UPDATE_GOLDEN=1 go test ./internal/httpapi.\n"+string(text))
}

func TestThePageIsMadeFromTheDocument(t *testing.T) {
	golden.Check(t, pageFile, render(newDocument(t).document))
}

func TestEachExampleIsAnsweredAsTheDocumentHasIt(t *testing.T) {
	reader := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	for _, o := range operations() {
		if o.id == StreamEventsID {
			continue // its answer does not end, see TestAStreamTellsWhatHappens
		}
		t.Run(o.id, func(t *testing.T) {
			a := &answers{API: reader.API, t: t}
			if o.method != http.MethodGet {
				a = newAnswers(t, newCluster(t, interceptor.Funcs{}, shopAtWork(t)...))
			}
			w := a.sendExample(&o)
			if w.Code != o.status {
				t.Fatalf("%s: %d %s", o.example, w.Code, w.Body)
			}
			if o.status == http.StatusNoContent {
				return
			}
			if w.Header().Get("ETag") == "" {
				t.Error("the answer has no ETag")
			}
			var body any
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if items, is := body.([]any); is && len(items) == 0 {
				t.Errorf("%s: the list is empty", o.example)
			}
			checkSchema(t, a.document, &o, body)
		})
	}
}

// checkSchema demands that an answer is as the document describes it.
func checkSchema(t *testing.T, document *huma.OpenAPI, o *operation, body any) {
	t.Helper()
	schema := answerOf(document, o)
	result := &huma.ValidateResult{}
	huma.Validate(document.Components.Schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, body, result)
	for _, err := range result.Errors {
		t.Errorf("the answer is not as documented: %v", err)
	}
}

// answerOf is the schema of the usual answer of an operation; nil for one without a body.
func answerOf(d *huma.OpenAPI, o *operation) *huma.Schema {
	if content := operationAt(d, o).Responses[strconv.Itoa(o.status)].Content["application/json"]; content != nil {
		return content.Schema
	}
	return nil
}

// render writes the page of the document.
func render(d *huma.OpenAPI) string {
	var b strings.Builder
	b.WriteString("# REST API\n\n<!-- Generated from internal/httpapi; rewrite with UPDATE_GOLDEN=1 go test ./internal/httpapi. -->\n\n" +
		"[How to use it](../guides/api.md). The same as [OpenAPI 3.1](openapi.yaml).\n\n## Operations\n\n" +
		"| Request | Does | Body | Answer |\n|---|---|---|---|\n")
	for _, o := range operations() {
		fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s |\n", o.method, o.path, o.summary, bodyShape(d, &o), answerShape(d, &o))
	}
	b.WriteString("\n## Parameters\n\nA list takes `limit`, `continue` and its filters.\n\n| Parameter | Operations | Values | Meaning |\n|---|---|---|---|\n")
	renderParameters(&b, d)
	b.WriteString("\n## Problems\n\nThe field `type` is `" + wire.ProblemBase + "` with one of these names behind it. Names do not change.\n\n| Name | Status |\n|---|---|\n")
	types := wire.ProblemTypes()
	for _, t := range slices.SortedFunc(maps.Keys(types), func(x, y wire.ProblemType) int {
		return cmp.Or(cmp.Compare(types[x], types[y]), cmp.Compare(x, y))
	}) {
		fmt.Fprintf(&b, "| `%s` | %d |\n", t, types[t])
	}
	b.WriteString("\n## Objects\n")
	schemas := d.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		renderObject(&b, name, schemas[name])
	}
	return b.String()
}

// renderParameters writes a row for each parameter, with the operations where it has one meaning.
func renderParameters(b *strings.Builder, d *huma.OpenAPI) {
	var rows []string
	takers := map[string][]string{}
	for _, o := range operations() {
		for _, p := range operationAt(d, &o).Parameters {
			if p.In != "query" && (p.In != "header" || o.method == http.MethodGet) {
				continue
			}
			row := fmt.Sprintf("| `%s` | OPERATIONS | %s | %s |\n", p.Name, values(p.Schema), p.Description)
			if takers[row] == nil {
				rows = append(rows, row)
			}
			takers[row] = append(takers[row], "`"+o.id+"`")
		}
	}
	for _, row := range rows {
		b.WriteString(strings.Replace(row, "OPERATIONS", strings.Join(takers[row], ", "), 1))
	}
}

func renderObject(b *strings.Builder, name string, s *huma.Schema) {
	fmt.Fprintf(b, "\n### %s\n\n| Field | Type | Values |\n|---|---|---|\n", name)
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		f := s.Properties[field]
		note := strings.TrimSpace(values(f) + " " + f.Description)
		optional := ""
		if !slices.Contains(s.Required, field) {
			optional = ", may be absent"
		}
		if f.Nullable {
			optional += ", may be null"
		}
		fmt.Fprintf(b, "| `%s` | %s%s | %s |\n", field, shape(f), optional, note)
	}
}

// bodyShape names the body of a request.
func bodyShape(d *huma.OpenAPI, o *operation) string {
	body := operationAt(d, o).RequestBody
	if body == nil {
		return ""
	}
	name := shape(body.Content["application/json"].Schema)
	if !body.Required {
		name += ", may be absent"
	}
	return name
}

// answerShape names the answers to a request.
func answerShape(d *huma.OpenAPI, o *operation) string {
	text := strconv.Itoa(o.status)
	if o.soon != 0 {
		text += " or " + strconv.Itoa(o.soon)
	}
	if schema := answerOf(d, o); schema != nil {
		text += ": " + shape(schema)
	}
	if content := operationAt(d, o).Responses[strconv.Itoa(o.status)].Content[eventType]; content != nil {
		text += " or 101: each a stream of " + shape(content.Schema)
	}
	return text
}

// shape names the type of a schema.
func shape(s *huma.Schema) string {
	switch {
	case s.Ref != "":
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	case s.Type == huma.TypeArray:
		return "list of " + shape(s.Items)
	case len(s.AnyOf) > 0:
		return shape(s.AnyOf[0]) + ", may be null"
	case s.Format != "":
		return s.Type + ", " + s.Format
	case s.Type == "":
		return "any JSON"
	}
	return s.Type
}

// values lists the words and the bounds of a schema.
func values(s *huma.Schema) string {
	if s.Type == huma.TypeArray && s.Items != nil {
		return values(s.Items)
	}
	var words []string
	for _, v := range s.Enum {
		words = append(words, fmt.Sprintf("`%v`", v))
	}
	if len(words) > 0 {
		return strings.Join(words, ", ")
	}
	if s.Minimum != nil && s.Maximum != nil {
		return fmt.Sprintf("%v to %v", *s.Minimum, *s.Maximum)
	}
	return ""
}

func TestEachAPIHasItsOwnVersionAndCluster(t *testing.T) {
	empty := New(newCluster(t, interceptor.Funcs{}), "v1.0.0", nil)
	full := New(newCluster(t, interceptor.Funcs{}, shop(t)...), "v2.0.0", nil)
	type sight struct {
		Version string
		Found   int
	}
	sights := map[*API]sight{empty: {"v1.0.0", http.StatusNotFound}, full: {"v2.0.0", http.StatusOK}}
	for range 2 { // in turns
		for api, expected := range sights {
			a := &answers{API: api, t: t}
			document := want[struct{ Info struct{ Version string } }](a, a.get(DocumentPath+".json"), http.StatusOK)
			if got := (sight{document.Info.Version, a.get(Prefix + "/environments/production").Code}); got != expected {
				t.Errorf("%+v, want %+v", got, expected)
			}
		}
	}
}
