// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// value is one documented setting of the chart.
type value struct{ path, standard, text string }

const (
	tableBegin = "<!-- values: begin, generated from charts/plumbline/values.yaml by `make generate` -->\n"
	tableEnd   = "<!-- values: end -->\n"
)

// TestEveryValueIsDocumented checks the table in docs/reference/chart.md against
// the "# --" comments of values.yaml, or rewrites it.
func TestEveryValueIsDocumented(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(rendered.ChartDir(), "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := documented(body)
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(rendered.RepositoryDir(), "docs", "reference", "chart.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", page)
	}
	golden.Check(t, page, before+tableBegin+table(values)+tableEnd+after)
}

func table(values []value) string {
	var b strings.Builder
	b.WriteString("| Value | Default | Meaning |\n|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, v := range values {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.path, cell.Replace(v.standard), cell.Replace(v.text))
	}
	return b.String()
}

// documented lists the leaves of values.yaml with their comments; a leaf is what
// a comment stands at, or what is not a map. A leaf without comment is an error.
func documented(body []byte) ([]value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(body, &document); err != nil {
		return nil, fmt.Errorf("reading values.yaml: %w", err)
	}
	return leaves(document.Content[0], "")
}

func leaves(node *yaml.Node, prefix string) ([]value, error) {
	var found []value
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, child := node.Content[i], node.Content[i+1]
		path := strings.TrimPrefix(prefix+"."+key.Value, ".")
		text, commented := strings.CutPrefix(key.HeadComment, "# -- ")
		switch {
		case commented:
			standard, err := oneLine(child)
			if err != nil {
				return nil, fmt.Errorf("default of %s: %w", path, err)
			}
			found = append(found, value{path, standard, text})
		case child.Kind == yaml.MappingNode && len(child.Content) > 0:
			below, err := leaves(child, path)
			if err != nil {
				return nil, err
			}
			found = append(found, below...)
		default:
			return nil, fmt.Errorf("%s (line %d of values.yaml) has no comment that begins with \"# -- \"", path, key.Line)
		}
	}
	return found, nil
}

func oneLine(node *yaml.Node) (string, error) {
	flow := *node
	setFlow(&flow)
	out, err := yaml.Marshal(&flow)
	if err != nil {
		return "", err
	}
	return strings.Join(strings.Fields(string(out)), " "), nil
}

func setFlow(node *yaml.Node) {
	node.HeadComment, node.LineComment, node.FootComment = "", "", ""
	node.Style |= yaml.FlowStyle
	for _, child := range node.Content {
		setFlow(child)
	}
}

func TestAValueWithoutCommentIsFound(t *testing.T) {
	tests := map[string]struct {
		body string
		want string // error
	}{
		"all documented":             {"# -- A.\na: 1\nb:\n  # -- C.\n  c: {d: 1}\n", ""},
		"a leaf without comment":     {"# -- A.\na: 1\nb: 2\n", `b (line 3 of values.yaml) has no comment`},
		"one below without comment":  {"b:\n  c: 1\n", `b.c (line 2 of values.yaml) has no comment`},
		"a comment of another style": {"# A.\na: 1\n", `a (line 2 of values.yaml) has no comment`},
		"an empty map":               {"a: {}\n", `a (line 1 of values.yaml) has no comment`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := documented([]byte(test.body))
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
}
