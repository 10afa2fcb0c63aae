// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// states are the values behind a reason that is made of a word and a state. A list leaves out the
// states that no Event reports.
var states = map[string][]string{
	"Plan":        {"PlanPhase"},
	"Breaker":     {"BreakerState"},
	"Remediation": {"=Verified", "=Skipped", "=Failed", "=Fenced", "=Ineffective", "=Invalidated"},
	"Work":        {"=Succeeded", "=Refused", "=Failed"},
}

// handed are the files that get the reason from their callers: the types of the reasons, and the
// maps that hold them.
var handed = map[string][]string{
	"internal/controller/baseline/announce.go":      {"specguard.EventReason", "EventReason in pkg/specguard"},
	"internal/controller/abrelease/tell.go":         {"EventReason in pkg/traffic/release", "map eventReasons"},
	"internal/controller/releasework/reconciler.go": {"prefix Work"},
}

// reasons collects what the files of the product declare.
type reasons struct {
	constants map[string]string   // by folder and name, and by name
	typed     map[string][]string // by type, and by type in folder
	mapped    map[string][]string // the literals of a variable
}

func (r *reasons) read(name string, file *ast.File) {
	folder := filepath.ToSlash(filepath.Dir(name))
	for _, decl := range file.Decls {
		general, is := decl.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, spec := range general.Specs {
			if value, is := spec.(*ast.ValueSpec); is {
				r.declare(folder, general.Tok, value)
			}
		}
	}
}

func (r *reasons) declare(folder string, kind token.Token, spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		if i >= len(spec.Values) {
			continue
		}
		if kind == token.VAR {
			ast.Inspect(spec.Values[i], func(n ast.Node) bool {
				if literal := stringOf(n); literal != "" {
					r.mapped[name.Name] = append(r.mapped[name.Name], literal)
				}
				return true
			})
			continue
		}
		literal := stringOf(spec.Values[i])
		if literal == "" {
			continue
		}
		r.constants[folder+"."+name.Name], r.constants[name.Name] = literal, literal
		if kind := typeName(spec.Type); kind != "" {
			r.typed[kind] = append(r.typed[kind], literal)
			r.typed[kind+" in "+folder] = append(r.typed[kind+" in "+folder], literal)
		}
	}
}

// of returns the reasons of an expression. It returns none if the value comes from elsewhere.
func (r *reasons) of(folder string, e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return []string{stringOf(e)}
	case *ast.BinaryExpr:
		return r.prefixed(stringOf(e.X))
	case *ast.CallExpr: // string(reason)
		return r.of(folder, e.Args[0])
	case *ast.SelectorExpr:
		return r.constant(e.Sel.Name)
	case *ast.Ident:
		return r.constant(folder+"."+e.Name, e.Name)
	}
	return nil
}

func (r *reasons) constant(keys ...string) []string {
	for _, key := range keys {
		if value, is := r.constants[key]; is {
			return []string{value}
		}
	}
	return nil
}

func (r *reasons) prefixed(prefix string) (out []string) {
	for _, state := range states[prefix] {
		if literal, is := strings.CutPrefix(state, "="); is {
			out = append(out, prefix+literal)
			continue
		}
		for _, value := range r.typed[state] {
			out = append(out, prefix+value)
		}
	}
	return out
}

func (r *reasons) handedTo(file string) (out []string) {
	for _, source := range handed[file] {
		if variable, is := strings.CutPrefix(source, "map "); is {
			out = append(out, r.mapped[variable]...)
		} else if prefix, is := strings.CutPrefix(source, "prefix "); is {
			out = append(out, r.prefixed(prefix)...)
		} else {
			out = append(out, r.typed[source]...)
		}
	}
	return out
}

// stringOf returns the value of a literal string, or an empty one.
func stringOf(n ast.Node) string {
	literal, is := n.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}

// typeName returns a type as it is written, with its package.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	}
	return ""
}

// reasonCell is the first cell of a row that names reasons.
var reasonCell = regexp.MustCompile("(?m)^\\| (`[A-Za-z]+`(?:, `[A-Za-z]+`)*) \\|")

// TestThePageOfEventsNamesEachReason compares docs/reference/events.md with the calls of Eventf. The
// reasons of conditions of ABReleases, which the page names by their conditions, are left out.
func TestThePageOfEventsNamesEachReason(t *testing.T) {
	r := &reasons{map[string]string{}, map[string][]string{}, map[string][]string{}}
	files := map[string]*ast.File{}
	for _, name := range productFiles(t) {
		_, files[name] = parse(t, name)
		r.read(name, files[name])
	}
	emitted := map[string]bool{}
	for name, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			if called, is := call.Fun.(*ast.SelectorExpr); !is || called.Sel.Name != "Eventf" || len(call.Args) < 6 {
				return true
			}
			found := r.of(filepath.ToSlash(filepath.Dir(name)), call.Args[3])
			if len(found) == 0 {
				found = r.handedTo(name)
			}
			if len(found) == 0 {
				t.Errorf("%s: the reason of an Event is not known: add the file to handed, or the word to states", name)
			}
			for _, reason := range found {
				emitted[reason] = true
			}
			return true
		})
	}
	page := readFile(t, "docs/reference/events.md")
	named := map[string]bool{}
	for _, row := range reasonCell.FindAllStringSubmatch(page, -1) {
		for reason := range strings.SplitSeq(row[1], ", ") {
			named[strings.Trim(reason, "`")] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(emitted)), slices.Sorted(maps.Keys(named))); diff != "" {
		t.Errorf("the page of Events (-emitted +named):\n%s", diff)
	}
}
