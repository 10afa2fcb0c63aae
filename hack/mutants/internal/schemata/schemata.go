// SPDX-License-Identifier: Apache-2.0

// Package schemata puts many mutants into one program, as mutant schemata do: the program
// has a copy of a function for each of its mutants, and the function calls the copy that the
// environment chooses. So the mutants of a package are compiled and linked once.
package schemata

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

// Variable of the environment has the number of the mutant that runs; without it the program
// is as its source says. The first mutant has the number 1.
const Variable = "PLUMBLINE_MUTANT"

// WriteOverlay writes the files of all mutants below dir, and the file by which the go
// command puts them in the place of those below root. It returns the path of that file.
func WriteOverlay(root, dir string, mutants []mutation.Mutant) (string, error) {
	replace := map[string]string{}
	write := func(path, text string) error {
		replace[filepath.Join(root, path)] = filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		return os.WriteFile(replace[filepath.Join(root, path)], []byte(text), 0o600)
	}
	byFile := map[string][]int{}
	for i := range mutants {
		byFile[mutants[i].File] = append(byFile[mutants[i].File], i)
	}
	for _, path := range slices.Sorted(maps.Keys(byFile)) {
		source, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return "", fmt.Errorf("reading a source file: %w", err)
		}
		text, name, err := combine(path, source, mutants, byFile[path])
		if err == nil {
			err = write(path, text)
		}
		if err == nil {
			err = write(filepath.Join(filepath.Dir(path), "chosen_mutant.go"), chooser(name))
		}
		if err != nil {
			return "", fmt.Errorf("writing the mutants of %s: %w", path, err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("writing an overlay: %w", err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// chooser is a source file that reads which mutant of a package runs.
func chooser(pkg string) string {
	return "package " + pkg + "\n\nimport \"os\"\n\nvar chosenMutant = os.Getenv(" + strconv.Quote(Variable) + ")\n"
}

// combine returns the source with the mutants of some indices, and the name of its package.
func combine(path string, source []byte, mutants []mutation.Mutant, indices []int) (text, pkg string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return "", "", err
	}
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	entries := map[int]string{} // what a function begins with, by the offset
	var copies strings.Builder
	for _, i := range indices {
		m := &mutants[i]
		decl := enclosing(file, offset, m)
		if decl == nil {
			return "", "", fmt.Errorf("%s: %w", m, errNoFunction)
		}
		f := function{source, offset, decl}
		body := offset(decl.Body.Lbrace) + 1
		entries[body] += f.call(i + 1)
		fmt.Fprintf(&copies, "\n//line mutant%d:1\n%s\n", i+1, f.mutate(m, i+1))
	}
	var out strings.Builder
	last := 0
	for _, at := range slices.Sorted(maps.Keys(entries)) {
		out.Write(source[last:at])
		out.WriteString(entries[at])
		last = at
	}
	out.Write(source[last:])
	return out.String() + copies.String(), file.Name.Name, nil
}

var errNoFunction = errors.New("it is not in the body of a function")

// enclosing returns the function in whose body a mutant is; nil if there is none.
func enclosing(file *ast.File, offset func(token.Pos) int, m *mutation.Mutant) *ast.FuncDecl {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if ok && decl.Body != nil && offset(decl.Body.Lbrace) < m.Start && m.End <= offset(decl.Body.Rbrace) {
			return decl
		}
	}
	return nil
}

// function is a function of a source file.
type function struct {
	source []byte
	offset func(token.Pos) int
	*ast.FuncDecl
}

func (f function) text(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

func (f function) nameOf(number int) string { return fmt.Sprintf("%s_mutant%d", f.Name.Name, number) }

// mutate returns the copy of the function with a mutant.
func (f function) mutate(m *mutation.Mutant, number int) string {
	begin, name, end := f.offset(f.Type.Pos()), f.offset(f.Name.Pos()), f.offset(f.End())
	return string(f.source[begin:name]) + f.nameOf(number) + string(f.source[name+len(f.Name.Name):m.Start]) + m.Text + string(f.source[m.End:end])
}

// call is the statement that calls the copy if it is chosen.
func (f function) call(number int) string {
	call := f.nameOf(number) + f.typeArguments() + "(" + f.arguments() + ")"
	if f.Recv != nil {
		call = f.argument(f.Recv.List[0], 0) + "." + call
	}
	if f.Type.Results != nil {
		call = "return " + call
	} else {
		call += "; return"
	}
	return fmt.Sprintf(" if chosenMutant == \"%d\" { %s };", number, call)
}

func (f function) typeArguments() string {
	if f.Type.TypeParams == nil {
		return ""
	}
	var names []string
	for _, field := range f.Type.TypeParams.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func (f function) arguments() string {
	var all []string
	for _, field := range f.Type.Params.List {
		for i := range max(1, len(field.Names)) {
			all = append(all, f.argument(field, i))
		}
	}
	return strings.Join(all, ", ")
}

// argument passes a parameter on. The copy does not read one without a name.
func (f function) argument(field *ast.Field, i int) string {
	variadic, isVariadic := field.Type.(*ast.Ellipsis)
	named := len(field.Names) > 0 && field.Names[i].Name != "_"
	switch {
	case named && isVariadic:
		return field.Names[i].Name + "..."
	case named:
		return field.Names[i].Name
	case isVariadic:
		return "[]" + f.text(variadic.Elt) + "{}..."
	}
	return "(*new(" + f.text(field.Type) + "))"
}
