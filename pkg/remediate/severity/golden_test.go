// SPDX-License-Identifier: Apache-2.0

package severity_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// One age in each band.
var (
	ages     = []time.Duration{0, 5 * time.Minute, 30 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour}
	ageNames = []string{"<5m", "<30m", "<1h", "<4h", "<24h", "24h+"}
)

// typeOf is the drift type that usually comes with a class.
var typeOf = map[v1alpha1.FindingClass]v1alpha1.DriftType{
	v1alpha1.ClassObjectMissing:    v1alpha1.DriftMissing,
	v1alpha1.ClassContainerMissing: v1alpha1.DriftMissing,
	v1alpha1.ClassImageRepository:  v1alpha1.DriftImage,
	v1alpha1.ClassImageVersion:     v1alpha1.DriftImage,
	v1alpha1.ClassObjectUnexpected: v1alpha1.DriftUnexpected,
	v1alpha1.ClassScale:            v1alpha1.DriftScale,
}

// TestScore_WholeGrid holds every score and band against a golden file: all
// types, ages and environments, three weights of components, every blast radius.
func TestScore_WholeGrid(t *testing.T) {
	golden.Check(t, filepath.Join("testdata", "scores.txt"), scoreGrid())
}

func scoreGrid() string {
	var b strings.Builder
	b.WriteString("Score and band (Critical, High, Medium, Low, Info) without a floor.\n")
	b.WriteString("Columns: criticality of the component / number of dependents.\n")
	components, dependents := []int{0, 50, 100}, []int{0, 1, 3, 10, 25}
	for i := range driftTypes {
		driftType := driftTypes[len(driftTypes)-1-i]
		for j := range criticalities {
			criticality := criticalities[len(criticalities)-1-j]
			fmt.Fprintf(&b, "\n%-24s", string(driftType)+", "+string(criticality))
			for _, c := range components {
				for _, d := range dependents {
					fmt.Fprintf(&b, "%7s", fmt.Sprintf("%d/%d", c, d))
				}
			}
			for k, age := range ages {
				fmt.Fprintf(&b, "\n  %-22s", ageNames[k])
				for _, c := range components {
					for _, d := range dependents {
						s := severity.Score(severity.Input{
							DriftType: driftType, Class: v1alpha1.ClassTemplateMetadata, Age: age,
							Criticality: criticality, ComponentCriticality: &c, Dependents: d,
						})
						fmt.Fprintf(&b, "%7s", fmt.Sprintf("%d %s", s.Score, severity.Band(s.Score)[:1]))
					}
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// TestReferencePage: the tables of docs/reference/severity.md are what the code
// does. They stand between markers and are rewritten with the golden files.
func TestReferencePage(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "reference", "severity.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	text = between(t, text, "floors", floorTable())
	text = between(t, text, "levels", levelTable())
	golden.Check(t, path, text)
}

func floorTable() string {
	var b strings.Builder
	b.WriteString("| Class | Production | Staging | elsewhere |\n|---|---|---|---|\n")
	for i := range classes {
		class := classes[len(classes)-1-i]
		fmt.Fprintf(&b, "| %s | %s | %s | – |\n", class,
			severity.Floor(class, v1alpha1.CriticalityProduction), severity.Floor(class, v1alpha1.CriticalityStaging))
	}
	return b.String()
}

func levelTable() string {
	var b strings.Builder
	for j := range criticalities {
		criticality := criticalities[len(criticalities)-1-j]
		fmt.Fprintf(&b, "%s:\n\n| Class (type) | %s |\n|---|%s\n", criticality, strings.Join(ageNames, " | "), strings.Repeat("---|", len(ages)))
		for i := range classes {
			class := classes[len(classes)-1-i]
			driftType := cmp.Or(typeOf[class], v1alpha1.DriftOther)
			fmt.Fprintf(&b, "| %s (%s) |", class, driftType)
			for _, age := range ages {
				s := severity.Score(severity.Input{DriftType: driftType, Class: class, Age: age, Criticality: criticality})
				fmt.Fprintf(&b, " %d %s |", s.Score, s.Level)
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// between replaces what stands between a pair of markers.
func between(t *testing.T, text, name, replacement string) string {
	t.Helper()
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("the page has no pair of markers %q, %q", begin, end)
	}
	return before + begin + replacement + end + after
}
