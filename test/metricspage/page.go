// SPDX-License-Identifier: Apache-2.0

// Package metricspage holds docs/reference/metrics.md equal to the code. The
// tests of each process pass its registry to [Check], which compares the part of
// the page that is about this process, or rewrites it with UPDATE_GOLDEN=1.
//
// Registries are asked for their descriptions and not for samples: a counter
// that has not counted yet is documented all the same.
package metricspage

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// page is below the root of the repository.
var page = filepath.Join("docs", "reference", "metrics.md")

// description is how prometheus.Desc prints itself; it has no other accessors.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)",(?: unit: "[^"]*",)? constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}`)

// Check compares the part of the page about one component with its registry.
// Only families of our own are documented: those of the Go runtime and the
// process differ from one version of Go to the next.
func Check(t *testing.T, component string, registry prometheus.Collector) {
	t.Helper()
	path := filepath.Join(root(t), page)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin := fmt.Sprintf("<!-- %s: begin, generated from the code by `make golden` -->\n", component)
	end := fmt.Sprintf("<!-- %s: end -->\n", component)
	before, rest, begins := strings.Cut(string(raw), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no place for the metrics of the %s", page, component)
	}
	golden.Check(t, path, before+begin+table(t, registry)+end+after)
}

func table(t *testing.T, registry prometheus.Collector) string {
	t.Helper()
	rows := map[string]string{}
	for _, desc := range descriptions(registry) {
		found := description.FindStringSubmatch(desc)
		if found == nil {
			t.Fatalf("a description of another form: %s", desc)
		}
		name, help, labels := found[1], strings.ReplaceAll(found[2], `\"`, `"`), found[3]
		if !strings.HasPrefix(name, "plumbline_") {
			continue
		}
		for label := range strings.SplitSeq(labels, ",") {
			if label == "name" || label == "namespace" || label == "object" || label == "user" {
				t.Errorf("%s has the label %s: a label that grows with the cluster is a way to run Prometheus out of memory", name, label)
			}
		}
		if labels != "" {
			labels = "`" + strings.ReplaceAll(labels, ",", "`, `") + "`"
		}
		rows[name] = fmt.Sprintf("| `%s` | %s | %s |\n", name, labels, strings.ReplaceAll(help, "|", `\|`))
	}
	if len(rows) < 3 {
		t.Fatalf("only %d families of our own", len(rows))
	}
	var b strings.Builder
	b.WriteString("| Name | Labels | Meaning |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		b.WriteString(rows[name])
	}
	return b.String()
}

func descriptions(registry prometheus.Collector) []string {
	described := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(described)
		close(described)
	}()
	var all []string
	for desc := range described {
		all = append(all, desc.String())
	}
	return all
}

// root is the nearest directory above the working directory with a go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("no go.mod above the working directory (%v)", err)
	return ""
}
