// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// constants of package inject, by their name.
func constants(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if out[spec.Names[0].Name], err = strconv.Unquote(literal.Value); err != nil {
				t.Fatal(err)
			}
		}
		return true
	})
	return out
}

// TestTheGuideHasEveryNameAndEveryReason, and none that there is not.
func TestTheGuideHasEveryNameAndEveryReason(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "guides", "mesh.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	var keys []string
	for _, value := range constants(t, "names.go") {
		switch {
		case strings.HasPrefix(value, "plumbline.dev/"):
			keys = append(keys, value)
		case strings.HasPrefix(value, "pl") && !strings.Contains(page, "`"+value):
			t.Errorf("the guide does not speak of %s", value)
		}
	}
	_, section, _ := strings.Cut(page, "## Give pods a proxy")
	section, refusals, ok := strings.Cut(section, "## Pods that cannot have a proxy")
	refusals, _, _ = strings.Cut(refusals, "\n## ")
	if !ok || len(keys) < 12 {
		t.Fatalf("the guide has no such sections, or there are no keys: %q", keys)
	}
	var named []string
	for _, m := range regexp.MustCompile("`(plumbline\\.dev/[a-z-]+)[`:]").FindAllStringSubmatch(section, -1) {
		named = append(named, m[1])
	}
	slices.Sort(keys)
	slices.Sort(named)
	if diff := cmp.Diff(keys, slices.Compact(named)); diff != "" {
		t.Errorf("labels and annotations (-code +guide):\n%s", diff)
	}
	reasons := constants(t, "decide.go")
	for _, other := range []string{"Inject", "Leave", "Refuse", "Asked", "NotAsked", "OptedOut", "AlreadyInjected"} {
		delete(reasons, other)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(refusals, -1) {
		rows[m[1]] = m[1]
	}
	if diff := cmp.Diff(reasons, rows); diff != "" {
		t.Errorf("reasons (-code +guide):\n%s", diff)
	}
}
