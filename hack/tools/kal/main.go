// SPDX-License-Identifier: Apache-2.0

// Command kal runs kube-api-linter over the API types.
//
// kube-api-linter is published as a plugin of golangci-lint, which is built
// into it by a git clone. This program runs the same analyzers directly, so
// that a Go module download is all that is needed, and holds the exceptions
// with their reasons; an exception that no longer matches is an error.
//
//	go -C hack/tools/kal run . -C ../../.. ./pkg/apis/...
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
	kal "sigs.k8s.io/kube-api-linter/pkg/plugin/base"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kal:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("kal", flag.ContinueOnError)
	dir := flags.String("C", ".", "directory of the module to lint")
	all := flags.Bool("all", false, "print what the exceptions silence, too")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("parsing flags: %w", err)
	}
	pkgs, err := load(*dir, flags.Args())
	if err != nil {
		return err
	}
	found, err := analyze(pkgs)
	if err != nil {
		return err
	}
	rest, stale := filter(found, exceptions)
	if *all {
		rest = found
	}
	for _, f := range rest {
		fmt.Fprintln(out, f)
	}
	for _, e := range stale {
		fmt.Fprintf(out, "exception matches nothing any more: %s %q\n", e.linter, e.message)
	}
	if len(rest)+len(stale) > 0 {
		return fmt.Errorf("%d findings, %d stale exceptions", len(rest), len(stale))
	}
	return nil
}

// finding is one diagnostic of one analyzer.
type finding struct{ position, linter, message string }

func (f finding) String() string {
	return fmt.Sprintf("%s: %s: %s", f.position, f.linter, f.message)
}

// load type-checks the packages; a package that does not compile is an error,
// because analyzers are silent about what they cannot see.
func load(dir string, patterns []string) ([]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Dir: dir}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("loading packages: %w", err)
	}
	if len(pkgs) == 0 {
		return nil, errors.New("loading packages: none matched")
	}
	if n := packages.PrintErrors(pkgs); n > 0 {
		return nil, fmt.Errorf("loading packages: %d errors", n)
	}
	return pkgs, nil
}

func analyze(pkgs []*packages.Package) ([]finding, error) {
	plugin, err := kal.New(settings)
	if err != nil {
		return nil, fmt.Errorf("configuring kube-api-linter: %w", err)
	}
	analyzers, err := plugin.BuildAnalyzers()
	if err != nil {
		return nil, fmt.Errorf("configuring kube-api-linter: %w", err)
	}
	graph, err := checker.Analyze(analyzers, pkgs, nil)
	if err != nil {
		return nil, fmt.Errorf("running kube-api-linter: %w", err)
	}
	var found []finding
	for act := range graph.All() {
		if act.Err != nil {
			return nil, fmt.Errorf("running %s on %s: %w", act.Analyzer.Name, act.Package.ID, act.Err)
		}
		if act.IsRoot {
			found = append(found, findings(act)...)
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(found), nil
}

func findings(act *checker.Action) []finding {
	out := make([]finding, 0, len(act.Diagnostics))
	for _, d := range act.Diagnostics {
		out = append(out, finding{
			position: act.Package.Fset.Position(d.Pos).String(),
			linter:   act.Analyzer.Name,
			message:  message(d),
		})
	}
	return out
}

func message(d analysis.Diagnostic) string { return strings.TrimSpace(d.Message) }

// filter splits off the findings that an exception silences, and names the
// exceptions that silence nothing.
func filter(found []finding, exceptions []exception) (rest []finding, stale []exception) {
	used := make([]bool, len(exceptions))
	for _, f := range found {
		i := slices.IndexFunc(exceptions, func(e exception) bool {
			return e.linter == f.linter && strings.Contains(f.message, e.message)
		})
		if i < 0 {
			rest = append(rest, f)
			continue
		}
		used[i] = true
	}
	for i, e := range exceptions {
		if !used[i] {
			stale = append(stale, e)
		}
	}
	return rest, stale
}
