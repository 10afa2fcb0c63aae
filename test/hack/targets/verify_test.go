// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"strings"
	"testing"
)

const remedy = "run 'make generate' for generated files, 'go mod tidy' for module files"

func TestVerifyFailsAndNamesWhatIsStale(t *testing.T) {
	tests := map[string]struct {
		part  string
		spoil func(tree)
		stale []string
	}{
		// A difference longer than the printed part: cutting it must not cut the message.
		"generated files that somebody edited, one with a long path, and a kind that was changed and not generated again": {
			"generated",
			func(c tree) {
				c.edit("charts/plumbline/files/crds/plumbline.dev_specguards.yaml", "    kind: SpecGuard\n", "    kind: SpecGuard\n    shortNames: [mine]\n")
				c.edit("docs/reference/kinds.md", "SpecGuard", "spec guard")
				var fields strings.Builder
				for _, name := range []string{"A", "B", "C", "D", "E", "F", "G", "H"} {
					fields.WriteString("\t// Proof" + name + " is there for the test.\n\t// +optional\n\tProof" + name + " []string `json:\"proof" + name + ",omitempty\"`\n")
				}
				c.edit("pkg/apis/plumbline/v1alpha1/environment_types.go", "type EnvironmentSpec struct {\n", "type EnvironmentSpec struct {\n"+fields.String())
			},
			[]string{
				"charts/plumbline/files/crds/plumbline.dev_specguards.yaml", "charts/plumbline/files/crds/plumbline.dev_environments.yaml",
				"docs/reference/kinds.md", "pkg/apis/plumbline/v1alpha1/zz_generated.deepcopy.go",
			},
		},
		"a module file that needs tidying": {
			"modules",
			func(c tree) {
				c.edit("hack/cluster/go.mod", "golang.org/x/sync", "golang.org/x/sync v0.24.0 // indirect\n\tgolang.org/x/sync")
			},
			[]string{"hack/cluster/go.mod"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := copyTree(t)
			tc.spoil(c)
			r := c.run(nil, "hack/verify.sh", tc.part)
			c.wantFailure(r, 1, append(tc.stale, "verify: stale: ", remedy)...)
			// A person looks at the end.
			lines := strings.Split(strings.TrimSpace(r.output), "\n")
			named := lines[max(0, len(lines)-2)]
			for _, file := range tc.stale {
				if !strings.Contains(named, file) {
					t.Errorf("the last line but one does not name %s: %s", file, named)
				}
			}
		})
	}
}

func TestVerifyNamesAModuleOfTwoVersions(t *testing.T) {
	t.Parallel()
	c := copyTree(t)
	if r := c.run(nil, "go", "-C", "hack/cluster", "get", "golang.org/x/mod@v0.41.0"); r.status != 0 {
		t.Fatal(r.output)
	}
	c.wantFailure(c.run(nil, "hack/align.sh", "check"), 1, "hack/cluster golang.org/x/mod v0.41.0 v0.", "run hack/align.sh")
}

// A list of modules that fails must not look like a list without differences.
func TestVerifyFailsWhenTheModulesOfAProgramCannotBeListed(t *testing.T) {
	t.Parallel()
	c := copyTree(t)
	c.edit("hack/cluster/go.mod", "\ngo 1.", "\ngo x1.")
	c.wantFailure(c.run(nil, "hack/align.sh", "check"), 1, "errors parsing go.mod")
}

func TestVerifyRefusesAPartThatItDoesNotKnow(t *testing.T) {
	c := copyTree(t)
	c.wantFailure(c.run(nil, "hack/verify.sh", "everything"), 2, "want modules or generated")
}

// Golden files are held by tests, not by verify.
func TestAnEditedGoldenFileFailsItsTest(t *testing.T) {
	t.Parallel()
	c := copyTree(t)
	c.edit("hack/cluster/internal/plan/testdata/node.golden", "--leader-elect=false", "--leader-elect=true")
	r := c.run(nil, "go", "-C", "hack/cluster", "test", "-run", "TestGolden", "./internal/plan")
	c.wantFailure(r, 1, "--- FAIL: TestGolden/node", "testdata/node.golden (-want +got)")
}
