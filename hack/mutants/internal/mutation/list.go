// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// ListMutants lists all mutants of a source file, in the order of their places. A
// generated file has none. Not every mutant compiles: the type checker is not asked.
func ListMutants(file string, source []byte) ([]Mutant, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	if ast.IsGenerated(tree) {
		return nil, nil
	}
	l := &lister{file: fset.File(tree.Pos()), name: file, source: source, code: slices.Clone(source)}
	l.blankComments(tree)
	for _, decl := range tree.Decls {
		l.listDeclaration(decl)
	}
	slices.SortStableFunc(l.mutants, func(a, b Mutant) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	numberMutants(l.mutants)
	return l.mutants, nil
}

// numberMutants numbers the mutants whose keys are equal.
func numberMutants(mutants []Mutant) {
	seen := map[Key]int{}
	for i := range mutants {
		k := mutants[i].Key
		seen[k]++
		mutants[i].Number = seen[k]
	}
}

type lister struct {
	file     *token.File
	name     string
	source   []byte
	code     []byte // the source with spaces in the place of comments
	function string
	mutants  []Mutant
}

func (l *lister) listDeclaration(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Body == nil {
			return
		}
		l.function = nameFunction(d)
		ast.Inspect(d.Body, l.visit)
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || d.Tok == token.TYPE {
			return
		}
		for _, spec := range d.Specs {
			values := spec.(*ast.ValueSpec)
			l.function = values.Names[0].Name
			for _, value := range values.Values {
				ast.Inspect(value, l.visit)
			}
		}
	}
}

// nameFunction names a method by its type and its name.
func nameFunction(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

// blankComments keeps comments out of the keys of mutants: comments change more often
// than code.
func (l *lister) blankComments(tree *ast.File) {
	for _, group := range tree.Comments {
		for i := l.file.Offset(group.Pos()); i < l.file.Offset(group.End()); i++ {
			if l.code[i] != '\n' {
				l.code[i] = ' '
			}
		}
	}
}

// replace adds the mutant in which a text replaces the source between two positions.
func (l *lister) replace(from, to token.Pos, text string) {
	start, end := l.file.Offset(from), l.file.Offset(to)
	first, last := lineBounds(l.code, start, end)
	old := joinSpace(l.code[first:last])
	changed := joinSpace(slices.Concat(l.code[first:start], []byte(text), l.code[end:last]))
	l.add(start, end, text, old, changed)
}

// drop adds the mutant that lacks a statement.
func (l *lister) drop(n ast.Node) {
	start, end := l.file.Offset(n.Pos()), l.file.Offset(n.End())
	l.add(start, end, "", joinSpace(l.code[start:end]), Dropped)
}

func (l *lister) add(start, end int, text, old, changed string) {
	l.mutants = append(l.mutants, Mutant{
		Key:  Key{File: l.name, Function: l.function, Old: old, New: changed},
		Line: l.file.Line(l.file.Pos(start)), Start: start, End: end, Text: text,
	})
}

// text returns the source of a node.
func (l *lister) text(n ast.Node) string {
	return string(l.source[l.file.Offset(n.Pos()):l.file.Offset(n.End())])
}

// lineBounds returns the bounds of the whole lines around a part of the source.
func lineBounds(source []byte, start, end int) (first, last int) {
	first = bytes.LastIndexByte(source[:start], '\n') + 1
	last = len(source)
	if i := bytes.IndexByte(source[end:], '\n'); i >= 0 {
		last = end + i
	}
	return first, last
}

func joinSpace(text []byte) string {
	return strings.Join(strings.Fields(string(text)), " ")
}
