// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
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
	api, err := New(newCluster(t, interceptor.Funcs{}), documentVersion, nil)
	if err != nil {
		t.Fatal(err)
	}
	return api
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
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	for _, o := range operations() {
		t.Run(o.id, func(t *testing.T) {
			w := a.get(o.example)
			if w.Code != http.StatusOK || w.Header().Get("ETag") == "" {
				t.Fatalf("%s: %d %s", o.example, w.Code, w.Body)
			}
			var body any
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if items, is := body.([]any); is && len(items) == 0 {
				t.Errorf("%s: the list is empty", o.example)
			}
			checkSchema(t, a.document, o.path, body)
		})
	}
}

// checkSchema demands that an answer is as the document describes it.
func checkSchema(t *testing.T, document *huma.OpenAPI, path string, body any) {
	t.Helper()
	schema := document.Paths[path].Get.Responses["200"].Content["application/json"].Schema
	result := &huma.ValidateResult{}
	huma.Validate(document.Components.Schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, body, result)
	for _, err := range result.Errors {
		t.Errorf("the answer is not as documented: %v", err)
	}
}

// render writes the page of the document.
func render(d *huma.OpenAPI) string {
	var b strings.Builder
	b.WriteString("# REST API\n\n<!-- Generated from internal/httpapi; rewrite with UPDATE_GOLDEN=1 go test ./internal/httpapi. -->\n\n" +
		"[How to use it](../guides/api.md). The same as [OpenAPI 3.1](openapi.yaml).\n\n## Operations\n\n" +
		"| Request | Does | Answer |\n|---|---|---|\n")
	for _, o := range operations() {
		op := d.Paths[o.path].Get
		fmt.Fprintf(&b, "| `%s %s` | %s | %s |\n", o.method, o.path, op.Summary, shape(op.Responses["200"].Content["application/json"].Schema))
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
		for _, p := range d.Paths[o.path].Get.Parameters {
			if p.In != "query" {
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
