// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// removers are the files that remove Reconciling and Stalled, whose absence kstatus wants.
var removers = []string{"internal/condition/condition.go", "pkg/remediate/exec/conditions.go"}

// The API conventions of Kubernetes read an absent condition as Unknown, and a wait for a
// condition that is False never ends while the condition is absent.
func TestNoCodeRemovesACondition(t *testing.T) {
	var found []string
	for _, name := range productFiles(t) {
		_, file := parse(t, name)
		ast.Inspect(file, func(n ast.Node) bool {
			if s, is := n.(*ast.SelectorExpr); is && s.Sel.Name == "RemoveStatusCondition" {
				found = append(found, name)
			}
			return true
		})
	}
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, removers) {
		t.Errorf("%v remove conditions, want %v alone: write False, with what holds instead", found, removers)
	}
}

// productFiles lists the Go files of what is installed, without generated code.
func productFiles(t *testing.T) (names []string) {
	t.Helper()
	for _, top := range []string{"cmd", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			base := filepath.Base(path)
			if err != nil || entry.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "zz_generated") {
				return err
			}
			name, err := filepath.Rel(root, path)
			names = append(names, filepath.ToSlash(name))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}
