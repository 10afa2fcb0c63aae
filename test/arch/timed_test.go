// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"slices"
)

// timed is an assertion that bounds real time from above.
type timed struct {
	pos      token.Pos
	function string
}

// measure is the meaning of a value that comes from a real clock.
type measure int

const (
	// reading is a point in time.
	reading measure = iota + 1
	// span is a length of time that grows while a test works.
	span
	// rest is a length of time that shrinks meanwhile: the time until a point.
	rest
)

// clocks are the names of a package that hold values of a real clock. Names are enough:
// tests that give one name to a measured time and to another value rename one of them.
type clocks struct {
	// variables are those of one function.
	variables map[string]measure
	// fields, and the results of functions, are those of the package.
	fields  map[string]measure
	results map[string][]measure
	// bubbles are the functions that run on the clock of package synctest, and starters
	// those that run a function of their caller so.
	bubbles, starters map[string]bool
}

// timedAssertions finds the conditions of the files of one package that fail a test when
// a measured time is too long, or not exact.
func timedAssertions(files []*ast.File) (found []timed) {
	functions := functionsOf(files)
	c := newClocks(functions)
	// A function may measure by another one, and a field may be set below its use.
	for range 3 {
		for _, f := range functions {
			c.learn(f)
		}
	}
	for _, f := range functions {
		if c.bubbles[f.Name.Name] {
			continue
		}
		c.learn(f)
		for _, pos := range c.assertions(f.Body) {
			found = append(found, timed{pos, f.Name.Name})
		}
	}
	return found
}

func functionsOf(files []*ast.File) (all []*ast.FuncDecl) {
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, is := decl.(*ast.FuncDecl); is && f.Body != nil {
				all = append(all, f)
			}
		}
	}
	return all
}

// newClocks finds the functions that run in bubbles, by themselves or through others.
func newClocks(functions []*ast.FuncDecl) *clocks {
	c := &clocks{fields: map[string]measure{}, results: map[string][]measure{}, bubbles: map[string]bool{}, starters: map[string]bool{}}
	for grown := true; grown; {
		before := len(c.bubbles) + len(c.starters)
		for _, f := range functions {
			ast.Inspect(f.Body, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is || !c.bubbles[f.Name.Name] && !c.startsBubble(call) {
					return true
				}
				c.enter(call)
				if c.startsBubble(call) && slices.ContainsFunc(f.Type.Params.List, isFunction) {
					c.starters[f.Name.Name] = true
				}
				return true
			})
		}
		grown = len(c.bubbles)+len(c.starters) > before
	}
	return c
}

func isFunction(f *ast.Field) bool {
	_, is := f.Type.(*ast.FuncType)
	return is
}

func (c *clocks) startsBubble(call *ast.CallExpr) bool {
	return isCall(call, "synctest", "Test") || c.starters[nameOf(call.Fun)]
}

// enter marks each function that a call in a bubble names.
func (c *clocks) enter(call *ast.CallExpr) {
	ast.Inspect(call, func(n ast.Node) bool {
		inner, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		if !c.startsBubble(inner) {
			c.bubbles[nameOf(inner.Fun)] = true
		}
		for _, arg := range inner.Args {
			if name, is := arg.(*ast.Ident); is {
				c.bubbles[name.Name] = true
			}
		}
		return true
	})
}

// visit shows all nodes but those in bubbles.
func (c *clocks) visit(body ast.Node, show func(ast.Node)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is && c.startsBubble(call) {
			return false
		}
		if n != nil {
			show(n)
		}
		return true
	})
}

// nameOf is the last name of an expression that is a name, a selector, or an element.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return nameOf(e.X)
	default:
		return ""
	}
}

// learn collects the variables of one function, its results, and the fields that it sets.
func (c *clocks) learn(f *ast.FuncDecl) {
	c.variables = map[string]measure{}
	if c.bubbles[f.Name.Name] {
		return
	}
	for range 2 {
		c.visit(f.Body, func(n ast.Node) {
			switch n := n.(type) {
			case *ast.AssignStmt:
				c.assign(n)
			case *ast.CompositeLit:
				c.compose(n)
			case *ast.RangeStmt:
				if m := c.measureOf(n.X); m != 0 && n.Value != nil {
					c.variables[nameOf(n.Value)] = m
				}
			}
		})
	}
	c.learnResults(f.Name.Name, f.Type, f.Body)
}

// compose collects the fields of a struct of the package; those of other packages have
// names that say nothing here.
func (c *clocks) compose(n *ast.CompositeLit) {
	if _, foreign := n.Type.(*ast.SelectorExpr); foreign {
		return
	}
	for _, e := range n.Elts {
		if pair, is := e.(*ast.KeyValueExpr); is && c.measureOf(pair.Value) != 0 && nameOf(pair.Key) != "" {
			c.fields[nameOf(pair.Key)] = c.measureOf(pair.Value)
		}
	}
}

// learnResults collects what a function returns, by the place of each result.
func (c *clocks) learnResults(name string, signature *ast.FuncType, body *ast.BlockStmt) {
	if signature.Results == nil {
		return
	}
	var results []measure
	for _, result := range signature.Results.List {
		for range max(1, len(result.Names)) {
			results = append(results, 0)
		}
		for i, named := range result.Names {
			results[len(results)-len(result.Names)+i] = c.variables[named.Name]
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if returned, is := n.(*ast.ReturnStmt); is && len(returned.Results) == len(results) {
			for i, e := range returned.Results {
				results[i] = max(results[i], c.measureOf(e))
			}
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	if slices.ContainsFunc(results, func(m measure) bool { return m != 0 }) {
		c.results[name] = results
	}
}

func (c *clocks) assign(n *ast.AssignStmt) {
	for i, left := range n.Lhs {
		var m measure
		if len(n.Rhs) == len(n.Lhs) {
			m = c.measureOf(n.Rhs[i])
			if literal, is := n.Rhs[i].(*ast.FuncLit); is {
				c.learnResults(nameOf(left), literal.Type, literal.Body)
			}
		} else if call, is := n.Rhs[0].(*ast.CallExpr); is && i < len(c.results[nameOf(call.Fun)]) {
			m = c.results[nameOf(call.Fun)][i]
		}
		if m == 0 || nameOf(left) == "_" {
			continue
		}
		if field, is := left.(*ast.SelectorExpr); is {
			c.fields[field.Sel.Name] = m
		} else {
			c.variables[nameOf(left)] = m
		}
	}
}

// measureOf is the meaning of an expression; 0 if it does not come from a clock. What is
// made of a length of time is one too: a maximum, a number of seconds, a list.
func (c *clocks) measureOf(e ast.Expr) (m measure) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CompositeLit:
			_, foreign := n.Type.(*ast.SelectorExpr)
			return !foreign
		case *ast.Ident:
			m = max(m, c.variables[n.Name])
		case *ast.SelectorExpr:
			m = max(m, c.fields[n.Sel.Name])
			if name, is := n.X.(*ast.Ident); is {
				m = max(m, c.variables[name.Name])
			}
			return false
		case *ast.CallExpr:
			var whole bool
			if m, whole = c.measureOfCall(n, m); whole {
				return false
			}
		}
		return true
	})
	return m
}

// measureOfCall tells whether a call is understood as a whole.
func (c *clocks) measureOfCall(call *ast.CallExpr, m measure) (_ measure, whole bool) {
	method, is := call.Fun.(*ast.SelectorExpr)
	switch results := c.results[nameOf(call.Fun)]; {
	case isCall(call, "time", "Now"):
		return max(m, reading), true
	case isCall(call, "time", "Since"):
		return max(m, span), true
	case isCall(call, "time", "Until"):
		return max(m, rest), true
	case len(results) > 0:
		return max(m, results[0]), true
	case is && method.Sel.Name == "Sub" && len(call.Args) == 1:
		if c.measureOf(method.X) == reading || c.measureOf(call.Args[0]) == reading {
			return max(m, span), true
		}
		return m, true
	case is && slices.Contains([]string{"After", "Before", "Equal", "IsZero", "Compare"}, method.Sel.Name):
		return m, true
	default:
		return max(m, c.measureOfMade(call)), true
	}
}

// measureOfMade is the meaning of a value that a call makes of its receiver or arguments,
// if that call is arithmetic; an object that somebody makes with a time is no time.
func (c *clocks) measureOfMade(call *ast.CallExpr) (m measure) {
	method, is := call.Fun.(*ast.SelectorExpr)
	if is && c.measureOf(method.X) != 0 {
		return c.measureOf(method.X) // took.Seconds()
	}
	arithmetic := []string{"slices", "math", "quantile", "time", "fmt", "cmp"}
	if is && !slices.Contains(arithmetic, nameOf(method.X)) {
		return 0
	}
	if _, local := call.Fun.(*ast.Ident); local && !slices.Contains([]string{"append", "max", "min", "int", "int64", "float64"}, nameOf(call.Fun)) {
		return 0
	}
	for _, arg := range call.Args {
		m = max(m, c.measureOf(arg))
	}
	return m
}
