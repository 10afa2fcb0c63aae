// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// keepsOldDefaults is the option of Helm that leaves out the new defaults of a chart, so that an upgrade can fail.
var keepsOldDefaults = regexp.MustCompile(`(^|[^-\w])--reuse-values\b`)

func TestNoPageAndNoMessageTeachesReuseValues(t *testing.T) {
	read := 0
	for _, name := range projectFiles(t) {
		var texts []string
		switch {
		case strings.HasPrefix(name, "docs/") && !strings.HasPrefix(name, "docs/designs/"), strings.HasPrefix(name, "charts/"), strings.HasPrefix(name, "examples/"), name == "README.md":
			texts = []string{readFile(t, name)}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && (strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "pkg/")):
			_, file := parse(t, name)
			ast.Inspect(file, func(n ast.Node) bool {
				texts = append(texts, stringOf(n))
				return true
			})
		default:
			continue
		}
		read++
		for _, text := range texts {
			if at := keepsOldDefaults.FindString(text); at != "" {
				t.Errorf("%s teaches --reuse-values: name --reset-then-reuse-values, which takes the new defaults of the chart", name)
			}
		}
	}
	if read < 500 {
		t.Errorf("only %d files were read", read)
	}
}
