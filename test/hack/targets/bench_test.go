// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	benchmarkLine = regexp.MustCompile(`(?m)^func Benchmark(\w+)\(`)
	benchmarked   = regexp.MustCompile(`-bench ["']?([^"' ]+)["']?.*`)
	packageOf     = regexp.MustCompile(`\./[\w/.]+`)
)

// benchmarks lists the benchmarks of each package, by its path below the root.
func benchmarks(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, top := range []string{"cmd", "internal", "pkg", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			of, err := filepath.Rel(root, filepath.Dir(path))
			for _, match := range benchmarkLine.FindAllSubmatch(source, -1) {
				found[of] = append(found[of], string(match[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// A benchmark that no target runs breaks, and the figures that rest on it age, unseen.
func TestEachBenchmarkIsRunByATarget(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	type run struct {
		pattern *regexp.Regexp
		of      []string
	}
	var runs []run
	for line := range strings.Lines(string(makefile)) {
		if match := benchmarked.FindStringSubmatch(line); match != nil {
			pattern, _, _ := strings.Cut(match[1], "/")
			runs = append(runs, run{regexp.MustCompile(pattern), packageOf.FindAllString(line, -1)})
		}
	}
	found := benchmarks(t)
	if len(runs) == 0 || len(found) == 0 {
		t.Fatalf("the Makefile has %d lines with -bench, and %d packages have benchmarks", len(runs), len(found))
	}
	for path, names := range found {
		for _, name := range names {
			if !slices.ContainsFunc(runs, func(r run) bool {
				return r.pattern.MatchString("Benchmark"+name) && slices.ContainsFunc(r.of, func(of string) bool {
					below, all := strings.CutSuffix(of, "/...")
					return "./"+path == of || all && strings.HasPrefix("./"+path+"/", below+"/")
				})
			}) {
				t.Errorf("no line of the Makefile with -bench runs Benchmark%s of %s", name, path)
			}
		}
	}
}
