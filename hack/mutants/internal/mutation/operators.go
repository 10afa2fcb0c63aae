// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"go/ast"
	"go/token"
	"strconv"
)

// operators holds the replacements of each binary operator.
var operators = map[token.Token][]token.Token{
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.AND: {token.OR}, token.OR: {token.AND}, token.XOR: {token.AND}, token.AND_NOT: {token.AND},
	token.SHL: {token.SHR}, token.SHR: {token.SHL},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
}

// assignments holds the replacement of each assignment operator.
var assignments = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.MUL_ASSIGN: token.QUO_ASSIGN,
	token.QUO_ASSIGN: token.MUL_ASSIGN, token.AND_ASSIGN: token.OR_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN,
	token.SHL_ASSIGN: token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN,
}

// visit lists the mutants of one node. It returns whether the caller visits the children.
func (l *lister) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		l.mutateBinary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT || n.Op == token.SUB {
			l.replace(n.Pos(), n.X.Pos(), "")
		}
	case *ast.BasicLit:
		l.mutateInteger(n)
	case *ast.Ident:
		l.mutateBoolean(n)
	case *ast.IfStmt:
		l.negate(n.Cond)
	case *ast.CallExpr:
		return l.visitCall(n)
	case ast.Stmt:
		l.mutateStatement(n)
	}
	return true
}

// negate negates a condition, but for a comparison and a negation: their own mutants
// are the same.
func (l *lister) negate(cond ast.Expr) {
	switch cond := cond.(type) {
	case *ast.UnaryExpr:
		return
	case *ast.BinaryExpr:
		if cond.Op != token.LAND && cond.Op != token.LOR {
			return
		}
	}
	l.replace(cond.Pos(), cond.End(), "!("+l.text(cond)+")")
}

// mutateBinary changes the operator; of two conditions it leaves out one.
func (l *lister) mutateBinary(n *ast.BinaryExpr) {
	for _, op := range operators[n.Op] {
		l.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
	}
	if n.Op == token.LAND || n.Op == token.LOR {
		l.replace(n.Pos(), n.Y.Pos(), "")
		l.replace(n.X.End(), n.End(), "")
	}
}

func (l *lister) mutateInteger(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	value, err := strconv.ParseInt(n.Value, 0, 64)
	if err != nil { // it is larger than an int64
		return
	}
	l.replace(n.Pos(), n.End(), strconv.FormatInt(value+1, 10))
}

func (l *lister) mutateBoolean(n *ast.Ident) {
	switch n.Name {
	case "true":
		l.replace(n.Pos(), n.End(), "false")
	case "false":
		l.replace(n.Pos(), n.End(), "true")
	}
}

// mutateStatement drops a statement without which the rest may still compile, and
// turns around statements that have an opposite.
func (l *lister) mutateStatement(n ast.Stmt) {
	switch n := n.(type) {
	case *ast.ExprStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt:
		l.drop(n)
	case *ast.AssignStmt:
		l.mutateAssignment(n)
	case *ast.IncDecStmt:
		opposite := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
		l.replace(n.TokPos, n.End(), opposite)
		l.drop(n)
	case *ast.BranchStmt:
		l.mutateBranch(n)
	case *ast.ReturnStmt:
		if len(n.Results) == 0 {
			l.drop(n)
		}
	}
}

func (l *lister) mutateAssignment(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE || isBlank(n) {
		return
	}
	if op, ok := assignments[n.Tok]; ok {
		l.replace(n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), op.String())
	}
	l.drop(n)
}

func (l *lister) mutateBranch(n *ast.BranchStmt) {
	end := n.TokPos + token.Pos(len(n.Tok.String()))
	switch n.Tok {
	case token.BREAK:
		l.replace(n.TokPos, end, token.CONTINUE.String())
		l.drop(n)
	case token.CONTINUE:
		l.replace(n.TokPos, end, token.BREAK.String())
		l.drop(n)
	case token.FALLTHROUGH:
		l.drop(n)
	default: // a goto has no opposite
	}
}

// isBlank tells whether an assignment only satisfies the compiler.
func isBlank(n *ast.AssignStmt) bool {
	for _, left := range n.Lhs {
		if name, ok := left.(*ast.Ident); !ok || name.Name != "_" {
			return false
		}
	}
	return true
}

// visitCall lists the mutants inside a call, but for a capacity: another one changes
// no result.
func (l *lister) visitCall(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name != "Grow"
	case *ast.Ident:
		if f.Name != "make" || len(call.Args) < 2 {
			return true
		}
		if _, ok := call.Args[0].(*ast.MapType); !ok {
			ast.Inspect(call.Args[1], l.visit)
		}
		return false
	}
	return true
}
