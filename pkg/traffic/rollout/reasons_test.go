// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Two reasons were missing from the list, so no metric told of releases that wait for them.
func TestAllReasonsToWaitAreListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "wait.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared, listed []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return true
		}
		kind, isNamed := spec.Type.(*ast.Ident)
		value, isText := spec.Values[0].(*ast.BasicLit)
		if isNamed && isText && kind.Name == "WaitReason" {
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, text)
		}
		return true
	})
	for _, reason := range rollout.WaitReasons() {
		listed = append(listed, string(reason))
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if diff := cmp.Diff(declared, listed); diff != "" || len(declared) < 20 {
		t.Errorf("%d reasons (-declared +listed):\n%s", len(declared), diff)
	}
}
