// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readFile returns a text file of the project.
func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A page that the index leaves out is found by chance.
func TestTheIndexLinksEachPage(t *testing.T) {
	linked := map[string]bool{}
	for _, link := range readPage(readFile(t, "docs/README.md")).links {
		path, _, _ := strings.Cut(link, "#")
		linked[filepath.Join(root, "docs", path)] = true
	}
	for _, folder := range []string{"guides", "reference"} {
		pages, err := filepath.Glob(filepath.Join(root, "docs", folder, "*.md"))
		if err != nil || len(pages) == 0 {
			t.Fatalf("%d pages in %s, %v", len(pages), folder, err)
		}
		for _, page := range pages {
			if !linked[page] {
				t.Errorf("docs/README.md does not link %s", page)
			}
		}
	}
}

// kubernetesVersion is the line of a go.mod with the Kubernetes that tests build.
var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes v(\S+)`)

func TestThePagesNameTheVersionsOfKubernetesThatTestsRun(t *testing.T) {
	for _, component := range []string{"kubernetes", "kubernetes-oldest"} {
		match := kubernetesVersion.FindStringSubmatch(readFile(t, "hack/cluster/components/"+component+"/go.mod"))
		if match == nil {
			t.Fatalf("the go.mod of %s names no Kubernetes", component)
		}
		for _, page := range []string{"README.md", "docs/guides/install.md", "docs/guides/faq.md"} {
			if !strings.Contains(readFile(t, page), match[1]) {
				t.Errorf("%s does not name Kubernetes %s, which the tests run as %s", page, match[1], component)
			}
		}
	}
}
