// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const bareWait = "a wait fails without a value that it saw; use test/harness/poll, or say what was seen last"

// A wait in vain is red on a slow machine alone, and only what it saw tells why.
func TestEachWaitSaysWhatItSawLast(t *testing.T) {
	seen := 0
	for _, name := range testFiles(t) {
		fset, file := parse(t, name)
		bare, ends := bareWaits(file)
		seen += ends
		for _, pos := range bare {
			t.Errorf("%s: %s", fset.Position(pos), bareWait)
		}
	}
	if seen == 0 {
		t.Error("no end of a wait was checked")
	}
}

func TestBareWaitsAreFound(t *testing.T) {
	tests := map[string]struct {
		body string
		want []int // lines of the body
	}{
		"a select that fails with a text alone": {"select {\ncase <-done:\ncase <-time.After(limit):\nt.Fatal(`late`)\n}", []int{4}},
		"the limit is no value that was seen":   {"select {\ncase <-done:\ncase <-time.After(limit):\nt.Fatalf(`late by %s`, limit)\n}", []int{4}},
		"a value that was seen is enough":       {"select {\ncase <-done:\ncase <-time.After(limit):\nt.Fatalf(`late: %v`, last)\n}", nil},
		"a context":                             {"select {\ncase <-done:\ncase <-ctx.Done():\nw.t.Error(`late`)\n}", []int{4}},
		"a channel made before":                 {"late := time.After(limit)\nselect {\ncase <-done:\ncase <-late:\nt.Fatal(`late`)\n}", []int{5}},
		"a timer made before":                   {"late := time.NewTimer(limit)\nselect {\ncase <-done:\ncase <-late.C:\nt.Fatal(`late`)\n}", []int{5}},
		"an error that is returned":             {"select {\ncase <-done:\ncase <-ctx.Done():\nreturn errors.New(`late`)\n}", []int{4}},
		"an error of the context is no value":   {"select {\ncase <-done:\ncase <-ctx.Done():\nreturn fmt.Errorf(`late: %w`, ctx.Err())\n}", []int{4}},
		"what other channels say may be bare":   {"select {\ncase <-done:\nt.Fatal(`it ended`)\ncase <-time.After(limit):\n}", nil},
		"a loop until a time":                   {"for !holds() {\nif time.Now().After(deadline) {\nt.Fatal(`late`)\n}\n}", []int{3}},
		"a loop that gives up by its condition": {"for time.Since(begin) < limit {\nlook()\n}\nt.Fatal(`late`)", []int{4}},
		"a loop that returns what it saw":       {"for time.Since(begin) < limit {\nlook()\n}\nreturn fmt.Errorf(`late: %v`, last)", nil},
		"a measured time is no wait":            {"if time.Since(begin) > limit {\nt.Error(`slow`)\n}", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "", "package p\nfunc f() error {\n"+tc.body+"\n}", parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			bare, _ := bareWaits(file)
			for _, pos := range bare {
				got = append(got, fset.Position(pos).Line-2)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// bareWaits finds the ends of waits that fail and name no value, and counts all ends.
func bareWaits(file *ast.File) (bare []token.Pos, ends int) {
	limits := limitsOf(file)
	check := func(stmts []ast.Stmt, worthless ...string) {
		ends++
		for _, stmt := range stmts {
			if call := failure(stmt); call != nil && !slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return isSeen(arg, worthless) }) {
				bare = append(bare, call.Pos())
			}
		}
	}
	loops := 0
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CommClause:
			if limit, is := limitOf(n.Comm, limits); is {
				check(n.Body, limit...)
			}
		case *ast.ForStmt:
			loops++
			ast.Inspect(n.Body, visit)
			loops--
			return false
		case *ast.IfStmt:
			if loops > 0 && readsClock(n.Cond) {
				check(n.Body.List)
			}
		case *ast.BlockStmt:
			for i, stmt := range n.List[:max(0, len(n.List)-1)] {
				if loop, is := stmt.(*ast.ForStmt); is && loop.Cond != nil && readsClock(loop.Cond) {
					check(n.List[i+1 : i+2])
				}
			}
		}
		return true
	}
	ast.Inspect(file, visit)
	return bare, ends
}

// limitsOf finds the variables that are channels of time.After, or timers, with the
// length of each.
func limitsOf(file *ast.File) map[string]string {
	limits := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		assign, is := n.(*ast.AssignStmt)
		if !is || len(assign.Lhs) != len(assign.Rhs) {
			return true
		}
		for i, value := range assign.Rhs {
			name, named := assign.Lhs[i].(*ast.Ident)
			if call, is := value.(*ast.CallExpr); is && named && (isCall(call, "time", "After") || isCall(call, "time", "NewTimer")) {
				limits[name.Name] = types.ExprString(call.Args[0])
			}
		}
		return true
	})
	return limits
}

// limitOf tells whether a clause of a select receives the end of a wait, and which
// expressions only repeat the limit.
func limitOf(clause ast.Stmt, limits map[string]string) (worthless []string, is bool) {
	expr, is := clause.(*ast.ExprStmt)
	if !is {
		return nil, false
	}
	receive, is := expr.X.(*ast.UnaryExpr)
	if !is || receive.Op != token.ARROW {
		return nil, false
	}
	switch from := receive.X.(type) {
	case *ast.CallExpr:
		if isCall(from, "time", "After") {
			return []string{types.ExprString(from.Args[0])}, true
		}
		method, is := from.Fun.(*ast.SelectorExpr)
		if is && method.Sel.Name == "Done" {
			of := types.ExprString(method.X)
			return []string{of + ".Err()", fmt.Sprintf("context.Cause(%s)", of)}, true
		}
	case *ast.Ident:
		length, is := limits[from.Name]
		return []string{length}, is
	case *ast.SelectorExpr:
		length, is := limits[types.ExprString(from.X)]
		return []string{length}, is && from.Sel.Name == "C"
	}
	return nil, false
}

// failure is the call by which a statement fails a test, or makes an error.
func failure(stmt ast.Stmt) *ast.CallExpr {
	switch stmt := stmt.(type) {
	case *ast.ExprStmt:
		if call, is := stmt.X.(*ast.CallExpr); is {
			if method, is := call.Fun.(*ast.SelectorExpr); is && slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf"}, method.Sel.Name) {
				return call
			}
		}
	case *ast.ReturnStmt:
		if len(stmt.Results) == 0 {
			return nil
		}
		if call, is := stmt.Results[len(stmt.Results)-1].(*ast.CallExpr); is && (isCall(call, "errors", "New") || isCall(call, "fmt", "Errorf")) {
			return call
		}
	}
	return nil
}

func isSeen(arg ast.Expr, worthless []string) bool {
	if _, literal := arg.(*ast.BasicLit); literal {
		return false
	}
	return !slices.Contains(worthless, types.ExprString(arg))
}

// readsClock tells whether a condition, or a statement, depends on the time.
func readsClock(condition ast.Node) (reads bool) {
	ast.Inspect(condition, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		reads = reads || is && (isCall(call, "time", "Since") || isCall(call, "time", "Now"))
		return !reads
	})
	return reads
}
