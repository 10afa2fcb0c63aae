// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// logMethods write a line.
	logMethods = []string{"Debug", "Info", "Warn", "Error", "Log", "LogAttrs"}
	// logEvent is a message that is a name, and no sentence.
	logEvent = regexp.MustCompile(`^[a-z]+(\.[a-z_]+)+$`)
)

// TestThePagesOfLogsNameEachEvent looks for the names of log lines in docs/reference/logs.md, or in
// rollouts.md. Names that are made at run time are those of the tables about plans, works and breakers.
func TestThePagesOfLogsNameEachEvent(t *testing.T) {
	pages := readFile(t, "docs/reference/logs.md") + readFile(t, "docs/reference/rollouts.md")
	found := 0
	for _, name := range productFiles(t) {
		_, file := parse(t, name)
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			if called, is := call.Fun.(*ast.SelectorExpr); !is || !slices.Contains(logMethods, called.Sel.Name) {
				return true
			}
			for _, argument := range call.Args[:min(3, len(call.Args))] { // behind a context, a level or an error
				event := stringOf(argument)
				if !logEvent.MatchString(event) {
					continue
				}
				found++
				if !strings.Contains(pages, "`"+event+"`") {
					t.Errorf("%s: the pages do not name the log event %s", name, event)
				}
			}
			return true
		})
	}
	if found < 40 {
		t.Errorf("only %d log events were found", found)
	}
}
