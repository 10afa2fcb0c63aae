// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// reachable are what a pure package must not reach through any package in between. Other
// effects are linked into every binary, such as net/http by apimachinery, so that only
// an import of the package itself says something.
var reachable = []string{"the Kubernetes API", "Redis", "Envoy types"}

// Every package of pkg is pure unless its doc.go has a paragraph that begins "Adapter.".
func TestPackagesHaveTheEffectsThatTheirDocGoNames(t *testing.T) {
	seen := 0
	for _, folder := range packagesOfPkg(t) {
		comment := packageComment(t, folder)
		uses := usesOf(t, folder)
		for _, problem := range judgePurity(comment, uses) {
			t.Errorf("%s: %s", folder, problem)
		}
		seen++
	}
	if seen < 40 {
		t.Fatalf("only %d packages were checked", seen)
	}
}

func TestPurePackagesReachNoAdapter(t *testing.T) {
	adapters := map[string]bool{}
	for _, folder := range packagesOfPkg(t) {
		_, adapter := declaredEffects(packageComment(t, folder))
		adapters[module+"/"+folder] = adapter
	}
	pure := 0
	for _, p := range listPackages(t) {
		if adapter, ofPkg := adapters[p.ImportPath]; !ofPkg || adapter {
			continue
		}
		pure++
		if i := slices.IndexFunc(p.Deps, func(dep string) bool { return adapters[dep] }); i >= 0 {
			t.Errorf("%s depends on the adapter %s: a pure package has its effects done by others", p.ImportPath, p.Deps[i])
		}
		for _, e := range effects {
			if i := slices.IndexFunc(p.Deps, e.comesWith); i >= 0 && slices.Contains(reachable, e.name) {
				t.Errorf("%s depends on %s: a pure package does not reach %s", p.ImportPath, p.Deps[i], e.name)
			}
		}
	}
	if pure < 20 {
		t.Fatalf("only %d pure packages were checked", pure)
	}
}

// depguard reports an import while a file is edited, and reads no doc.go. So its list of
// adapters is written from the doc.go of each; UPDATE_GOLDEN=1 rewrites it.
func TestTheLinterKnowsTheAdapters(t *testing.T) {
	const name, begin, end = root + "/.golangci.yml", "            # adapters, by their doc.go:\n", "            # end of adapters\n"
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no list of adapters", name)
	}
	var want strings.Builder
	for _, folder := range packagesOfPkg(t) {
		if _, adapter := declaredEffects(packageComment(t, folder)); adapter {
			fmt.Fprintf(&want, "            - \"!**/%s/*.go\"\n", folder)
		}
	}
	if golden.Updates() {
		if err := os.WriteFile(name, []byte(before+begin+want.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), got); diff != "" {
		t.Errorf("%s lists other adapters; UPDATE_GOLDEN=1 rewrites it (-want +got):\n%s", name, diff)
	}
}

func TestAnEffectThatAPackageDoesNotDeclareIsReported(t *testing.T) {
	const pure, clock = "Package p decides.", "Package p waits.\n\nAdapter. It uses the clock and goroutines. It may fail.\n\nMore."
	for name, tc := range map[string]struct {
		comment, source string
		want            []string // a part of each problem
	}{
		"a pure package without effects":            {comment: pure, source: `import "time"; var a = time.Hour`},
		"a pure package with a Kubernetes client":   {comment: pure, source: `import "k8s.io/client-go/rest"; var a rest.Config`, want: []string{"imports k8s.io/client-go/rest"}},
		"a pure package with controller-runtime":    {comment: pure, source: `import "sigs.k8s.io/controller-runtime/pkg/client"; var a client.Client`, want: []string{"uses the Kubernetes API"}},
		"a pure package with Redis":                 {comment: pure, source: `import "github.com/redis/go-redis/v9"; var a redis.Client`, want: []string{"uses Redis"}},
		"a pure package with a server":              {comment: pure, source: `import "net/http"; var a http.Server`, want: []string{"imports net/http"}},
		"a pure package with addresses alone":       {comment: pure, source: `import "net/netip"; var a netip.Addr`},
		"a pure package with Envoy's types":         {comment: pure, source: `import c "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"; var a c.Node`, want: []string{"uses Envoy types"}},
		"a pure package with files":                 {comment: pure, source: `import "os"; var a = os.Args`, want: []string{"imports os"}},
		"a pure package with processes":             {comment: pure, source: `import "os/exec"; var a exec.Cmd`, want: []string{"imports os/exec"}},
		"a pure package that reads the clock":       {comment: pure, source: `import "time"; var a = time.Now()`, want: []string{"uses the clock"}},
		"a pure package that hands the clock on":    {comment: pure, source: `import "time"; var a = time.Now`, want: []string{"uses the clock"}},
		"a pure package that waits":                 {comment: pure, source: `import "time"; var a = time.NewTimer(1)`, want: []string{"uses the clock"}},
		"a pure package with a goroutine":           {comment: pure, source: `func f() { go f() }`, want: []string{"uses goroutines"}},
		"a pure package with a group of goroutines": {comment: pure, source: `import "sync"; func f() { var g sync.WaitGroup; g.Go(f) }`, want: []string{"uses goroutines"}},
		"a pure package with random numbers":        {comment: pure, source: `import "math/rand/v2"; var a = rand.Int()`, want: []string{"uses random numbers"}},
		"an adapter with what it declares":          {comment: clock, source: `import "time"; var a = time.Now(); func f() { go f() }`},
		"an adapter with something else":            {comment: clock, source: `import "os"; import "time"; var a, b = time.Now(), os.Args; func f() { go f() }`, want: []string{"imports os"}},
		"an adapter that needs it no more":          {comment: clock, source: `func f() { go f() }`, want: []string{"names the clock, which the package does not use any more"}},
		"a word that is no effect":                  {comment: "Adapter. It uses magic.", want: []string{`unknown effect "magic"`}},
		"the word in the middle of a paragraph":     {comment: "Package p is no Adapter. It uses the clock.", source: `import "time"; var a = time.Now()`, want: []string{"uses the clock"}},
	} {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "p.go", "package p\n"+tc.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			got := judgePurity(tc.comment, findUses(fset, file))
			if len(got) != len(tc.want) {
				t.Fatalf("%d problems, want %d: %q", len(got), len(tc.want), got)
			}
			for i, part := range tc.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("problem %q, want one with %q", got[i], part)
				}
			}
		})
	}
}

// packagesOfPkg lists the folders below pkg that hold a package, as paths from the root.
func packagesOfPkg(t *testing.T) []string {
	t.Helper()
	var folders []string
	for _, p := range listPackages(t) {
		if inTree(p.ImportPath, "pkg") {
			folders = append(folders, strings.TrimPrefix(p.ImportPath, module+"/"))
		}
	}
	slices.Sort(folders)
	return folders
}

// packageComment reads the comment in doc.go; a package without that file has none.
func packageComment(t *testing.T, folder string) string {
	t.Helper()
	name := filepath.Join(root, folder, "doc.go")
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.PackageClauseOnly)
	switch {
	case os.IsNotExist(err):
		return ""
	case err != nil:
		t.Fatal(err)
	}
	return file.Doc.Text()
}

// usesOf lists the effects of a package, each at its first place.
func usesOf(t *testing.T, folder string) []use {
	t.Helper()
	var all []use
	for _, name := range sourceFiles(t, filepath.Join(root, folder)) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range findUses(fset, file) {
			if !slices.ContainsFunc(all, func(known use) bool { return known.effect == u.effect }) {
				all = append(all, u)
			}
		}
	}
	return all
}

func sourceFiles(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files
}
