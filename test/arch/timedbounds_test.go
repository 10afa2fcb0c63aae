// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"slices"
)

// assertions finds the conditions of one function.
func (c *clocks) assertions(body *ast.BlockStmt) (found []token.Pos) {
	waits := waitsOf(body)
	c.visit(body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.IfStmt:
			if !waits[n] && c.bounds(n.Cond, false) && fails(n.Body.List) {
				found = append(found, n.Pos())
			}
		case *ast.CaseClause:
			if slices.ContainsFunc(n.List, func(e ast.Expr) bool { return c.bounds(e, false) }) && fails(n.Body) {
				found = append(found, n.Pos())
			}
		}
	})
	return found
}

// waitsOf finds the conditions by which a loop, or a check that is made again, gives up:
// they read the clock, and the time began before.
func waitsOf(body *ast.BlockStmt) map[*ast.IfStmt]bool {
	waits := map[*ast.IfStmt]bool{}
	mark := func(repeated *ast.BlockStmt) {
		own := map[string]bool{}
		ast.Inspect(repeated, func(n ast.Node) bool {
			if assign, is := n.(*ast.AssignStmt); is && assign.Tok == token.DEFINE {
				for _, left := range assign.Lhs {
					own[nameOf(left)] = true
				}
			}
			return true
		})
		ast.Inspect(repeated, func(n ast.Node) bool {
			if stmt, is := n.(*ast.IfStmt); is && readsClock(stmt) && !names(stmt.Cond, own) {
				waits[stmt] = true
			}
			return true
		})
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			mark(n.Body)
		case *ast.FuncLit:
			if isCheck(n.Type) {
				markReturns(n.Body, waits)
			}
		}
		return true
	})
	return waits
}

// isCheck tells whether a function is a check of package poll: it gives an error alone.
func isCheck(f *ast.FuncType) bool {
	return f.Results != nil && len(f.Results.List) == 1 && nameOf(f.Results.List[0].Type) == "error"
}

// markReturns marks the conditions of a check that only return an error, which makes the
// check come again.
func markReturns(check *ast.BlockStmt, waits map[*ast.IfStmt]bool) {
	ast.Inspect(check, func(n ast.Node) bool {
		if stmt, is := n.(*ast.IfStmt); is && len(stmt.Body.List) == 1 {
			if _, returns := stmt.Body.List[0].(*ast.ReturnStmt); returns {
				waits[stmt] = true
			}
		}
		return true
	})
}

// names tells whether an expression names a variable of a set.
func names(e ast.Expr, of map[string]bool) (does bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		name, is := n.(*ast.Ident)
		does = does || is && of[name.Name]
		return !does
	})
	return does
}

// bounds tells whether a condition is true when a measured time is too long, or not exact.
// With negated, whether the condition is false then.
func (c *clocks) bounds(e ast.Expr, negated bool) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.bounds(e.X, negated)
	case *ast.UnaryExpr:
		return e.Op == token.NOT && c.bounds(e.X, !negated)
	case *ast.BinaryExpr:
		return c.compares(e, negated)
	case *ast.CallExpr:
		method, is := e.Fun.(*ast.SelectorExpr)
		late := "After"
		if negated {
			late = "Before"
		}
		return is && method.Sel.Name == late && isCall(asCall(method.X), "time", "Now")
	case *ast.Ident:
		return c.variables[e.Name] == span
	default:
		return false
	}
}

// asCall is an expression as a call; an empty one if it is none.
func asCall(e ast.Expr) *ast.CallExpr {
	if call, is := e.(*ast.CallExpr); is {
		return call
	}
	return &ast.CallExpr{}
}

func (c *clocks) compares(e *ast.BinaryExpr, negated bool) bool {
	left, right := c.measureOf(e.X), c.measureOf(e.Y)
	greater, less := left, right // the sides at which a long time makes the condition true
	switch e.Op {
	case token.LAND, token.LOR:
		return c.bounds(e.X, negated) || c.bounds(e.Y, negated)
	case token.EQL, token.NEQ:
		return left >= span || right >= span
	case token.GTR, token.GEQ:
	case token.LSS, token.LEQ:
		greater, less = right, left
	default:
		return false
	}
	if negated {
		greater, less = less, greater
	}
	// Two measured times are the order of events.
	return greater == span && less == 0 || less == rest && greater == 0
}

// fails tells whether statements fail a test, or make an error.
func fails(stmts []ast.Stmt) (does bool) {
	for _, stmt := range stmts {
		ast.Inspect(stmt, func(n ast.Node) bool {
			inner, is := n.(ast.Stmt)
			does = does || is && failure(inner) != nil
			return !does
		})
	}
	return does
}
