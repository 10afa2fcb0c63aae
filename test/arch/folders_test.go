// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Folders of the tests that import each other are one folder: neither can be read, moved
// or compiled by itself. The compiler forbids circles of packages alone.
func TestFoldersOfTheTestsImportInNoCircle(t *testing.T) {
	imports := map[string]map[string]bool{}
	for _, p := range testPackages(t) {
		for _, file := range p.files {
			for _, spec := range file.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				from, to := testFolder(p.dir), testFolder(strings.TrimPrefix(imported, module+"/"))
				if from != "" && to != "" && from != to {
					if imports[from] == nil {
						imports[from] = map[string]bool{}
					}
					imports[from][to] = true
				}
			}
		}
	}
	if len(imports) == 0 {
		t.Error("no folder imports another one")
	}
	if circle := findCircle(imports); circle != nil {
		t.Errorf("the folders %s import in a circle", strings.Join(circle, ", "))
	}
}

func TestCirclesAreFound(t *testing.T) {
	graph := func(edges ...string) map[string]map[string]bool {
		imports := map[string]map[string]bool{}
		for _, edge := range edges {
			from, to, _ := strings.Cut(edge, " ")
			if imports[from] == nil {
				imports[from] = map[string]bool{}
			}
			imports[from][to] = true
		}
		return imports
	}
	tests := map[string]struct {
		imports map[string]map[string]bool
		want    []string
	}{
		"no import":                       {graph(), nil},
		"two ways to one folder":          {graph("a b", "a c", "b d", "c d"), nil},
		"two folders":                     {graph("a b", "b a"), []string{"a", "b"}},
		"three folders, behind another":   {graph("a b", "b c", "c d", "d b"), []string{"b", "c", "d"}},
		"a circle that is entered midway": {graph("a c", "b c", "c b"), []string{"b", "c"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, findCircle(tc.imports)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// testFolder is the folder below test that holds a package; empty if none does.
func testFolder(path string) string {
	parts := strings.SplitN(path, "/", 3)
	if len(parts) < 2 || parts[0] != "test" {
		return ""
	}
	return parts[1]
}

// findCircle returns the sorted names of folders that lie on one circle; nil if there is
// no circle.
func findCircle(imports map[string]map[string]bool) []string {
	done := map[string]bool{}
	var way, circle []string
	var walk func(string) bool
	walk = func(folder string) bool {
		if at := slices.Index(way, folder); at >= 0 {
			circle = slices.Sorted(slices.Values(way[at:]))
			return true
		}
		if done[folder] {
			return false
		}
		done[folder] = true
		way = append(way, folder)
		defer func() { way = way[:len(way)-1] }()
		return slices.ContainsFunc(slices.Sorted(maps.Keys(imports[folder])), walk)
	}
	if slices.ContainsFunc(slices.Sorted(maps.Keys(imports)), walk) {
		return circle
	}
	return nil
}
