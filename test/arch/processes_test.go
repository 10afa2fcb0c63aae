// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// unbound lists what may start processes that outlive a test: files and folders, each
// with its reason.
var unbound = map[string]string{
	"test/e2e":              "the cluster of the tests may be kept",
	"test/hack/demo":        "the clusters of the demo are daemons, and the test removes them",
	"test/harness/local.go": "the cluster outlives the command that makes the cluster",
	"test/harness/child":    "the package that binds processes",
	"hack/alerts":           "a module of its own",
	"hack/cluster":          "a module of its own",
	"hack/release":          "a module of its own",
	"hack/tools":            "a module of its own",
}

// threads lists who may lock a goroutine to a thread: a process ends with the thread
// that started the process, see test/harness/child.
var threads = map[string]string{
	"test/harness/child":          "unlocks each goroutine",
	"test/harness/netns/netns.go": "unlocks each goroutine; a test fails if it cannot",
}

// A process that a test started would outlive a test that is killed, and hold ports,
// memory and locks of the next one.
func TestEachProcessOfATestEndsWithTheTest(t *testing.T) {
	bound := 0
	for _, name := range testFiles(t) {
		if !listed(unbound, name) {
			bound += checkProcesses(t, name)
		}
	}
	if bound == 0 {
		t.Error("no process was checked")
	}
}

func TestNoGoroutineOfATestEndsItsThread(t *testing.T) {
	for _, name := range testFiles(t) {
		fset, file := parse(t, name)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is && isCall(call, "runtime", "LockOSThread") && !listed(threads, name) {
				t.Errorf("%s: locks a goroutine to a thread; processes end with the thread that started them", fset.Position(n.Pos()))
			}
			return true
		})
	}
}

// checkProcesses demands child.Bind around each command, and counts the commands.
func checkProcesses(t *testing.T, name string) (bound int) {
	t.Helper()
	fset, file := parse(t, name)
	inside := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if isCall(n, "child", "Bind") && len(n.Args) == 1 {
				inside[n.Args[0]] = true
			}
			if !isCall(n, "exec", "Command") && !isCall(n, "exec", "CommandContext") {
				return true
			}
			bound++
			if !inside[n] {
				t.Errorf("%s: write child.Bind(exec.Command(…)), so that the process ends with the test", fset.Position(n.Pos()))
			}
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if field, is := to.(*ast.SelectorExpr); is && field.Sel.Name == "SysProcAttr" {
					t.Errorf("%s: replaces what child.Bind sets; set the field alone", fset.Position(n.Pos()))
				}
			}
		}
		return true
	})
	return bound
}

func isCall(call *ast.CallExpr, pkg, function string) bool {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is || selector.Sel.Name != function {
		return false
	}
	name, is := selector.X.(*ast.Ident)
	return is && name.Name == pkg
}

func listed(list map[string]string, name string) bool {
	for path := range list {
		if name == path || strings.HasPrefix(name, path+"/") {
			return true
		}
	}
	return false
}

func parse(t *testing.T, name string) (*token.FileSet, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	return fset, parseInto(t, fset, name)
}

func parseInto(t *testing.T, fset *token.FileSet, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// testFiles lists all Go files below test, and the tests elsewhere.
func testFiles(t *testing.T) (names []string) {
	t.Helper()
	for _, top := range []string{"cmd", "hack", "internal", "pkg", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			name = filepath.ToSlash(name)
			if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".go") && top == "test" {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Contains(names, "test/harness/child/child.go") {
		t.Fatal("the files of the tests were not found")
	}
	return names
}
