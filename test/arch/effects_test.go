// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// effect is a way in which the world reaches a package, or a package the world.
type effect struct {
	name string
	// imports are the packages that bring the effect, with all below a path that ends in /.
	imports []string
	// found finds the effect in the syntax; nil if only imports bring it.
	found func(ast.Node) bool
}

// effects are the words that an Adapter paragraph may use.
var effects = []effect{
	{name: "the Kubernetes API", imports: []string{"k8s.io/client-go/", "sigs.k8s.io/controller-runtime/"}},
	{name: "Redis", imports: []string{"github.com/redis/"}},
	{name: "Envoy types", imports: []string{"github.com/envoyproxy/"}},
	{name: "the network", imports: []string{
		"net", "net/http", "net/http/", "net/smtp", "crypto/tls", "google.golang.org/grpc", "google.golang.org/grpc/", "github.com/aws/", "github.com/mdlayher/netlink",
	}},
	{name: "the operating system", imports: []string{"os", "os/", "syscall", "github.com/google/nftables", "github.com/google/nftables/"}},
	{name: "logs", imports: []string{"log", "log/slog", "github.com/go-logr/"}},
	{name: "metrics", imports: []string{"github.com/prometheus/"}},
	// A key of pkg/evidence comes from crypto/rand, which no decision reads.
	{name: "random numbers", imports: []string{"math/rand", "math/rand/v2"}},
	{name: "the clock", imports: []string{"time/tzdata"}, found: usesClock},
	{name: "goroutines", found: startsGoroutine},
}

func (e effect) comesWith(imported string) bool {
	return slices.ContainsFunc(e.imports, func(path string) bool {
		return imported == path || strings.HasSuffix(path, "/") && strings.HasPrefix(imported, path)
	})
}

// usesClock reports whether a node names a function of package time that reads the clock
// or waits for it. A decision that reads the clock cannot be replayed.
func usesClock(n ast.Node) bool {
	selector, is := n.(*ast.SelectorExpr)
	if !is {
		return false
	}
	pkg, is := selector.X.(*ast.Ident)
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}
	return is && pkg.Name == "time" && slices.Contains(clock, selector.Sel.Name)
}

// startsGoroutine finds go statements, and the method Go of a WaitGroup or errgroup.
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		selector, is := n.Fun.(*ast.SelectorExpr)
		return is && selector.Sel.Name == "Go" && len(n.Args) == 1
	default:
		return false
	}
}

// use is the place where a package has an effect.
type use struct {
	effect string
	place  token.Position
	// imported is the package that brings the effect; empty if the syntax does.
	imported string
}

// findUses lists the effects of one file, each at its first place.
func findUses(fset *token.FileSet, file *ast.File) []use {
	var uses []use
	for _, e := range effects {
		if first := e.findUse(fset, file); first != nil {
			uses = append(uses, *first)
		}
	}
	return uses
}

func (e effect) findUse(fset *token.FileSet, file *ast.File) *use {
	for _, spec := range file.Imports {
		if imported := strings.Trim(spec.Path.Value, `"`); e.comesWith(imported) {
			return &use{effect: e.name, place: fset.Position(spec.Pos()), imported: imported}
		}
	}
	if e.found == nil {
		return nil
	}
	var first *use
	ast.Inspect(file, func(n ast.Node) bool {
		if first == nil && n != nil && e.found(n) {
			first = &use{effect: e.name, place: fset.Position(n.Pos())}
		}
		return first == nil
	})
	return first
}

// adapterMark begins the paragraph of a package comment that names the effects of an
// adapter; the effects end with the sentence.
const adapterMark = "Adapter. It uses "

// declaredEffects reads the comment of a package; adapter is false for a pure package.
func declaredEffects(comment string) (names []string, adapter bool) {
	for paragraph := range strings.SplitSeq(comment, "\n\n") {
		rest, marked := strings.CutPrefix(paragraph, adapterMark)
		if !marked {
			continue
		}
		list, _, _ := strings.Cut(strings.ReplaceAll(rest, "\n", " "), ".")
		for name := range strings.SplitSeq(strings.ReplaceAll(list, " and ", ", "), ", ") {
			names = append(names, strings.TrimSpace(name))
		}
		return names, true
	}
	return nil, false
}

// judgePurity compares the effects that a package declares with those that it has.
func judgePurity(comment string, uses []use) (problems []string) {
	declared, _ := declaredEffects(comment)
	for _, u := range uses {
		if !slices.Contains(declared, u.effect) {
			problem := u.place.String() + ": uses " + u.effect
			if u.imported != "" {
				problem += " (imports " + u.imported + ")"
			}
			problems = append(problems, problem+", and the paragraph \"Adapter.\" of doc.go does not say so")
		}
	}
	for _, name := range declared {
		switch {
		case !slices.ContainsFunc(effects, func(e effect) bool { return e.name == name }):
			problems = append(problems, "the paragraph \"Adapter.\" names the unknown effect \""+name+"\"")
		case !slices.ContainsFunc(uses, func(u use) bool { return u.effect == name }):
			problems = append(problems, "the paragraph \"Adapter.\" names "+name+", which the package does not use any more")
		}
	}
	return problems
}
