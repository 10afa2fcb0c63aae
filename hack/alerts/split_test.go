// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// ruleFile is a file of alert rules.
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Rules []yaml.Node          `yaml:"rules"`
	Rest  map[string]yaml.Node `yaml:",inline"`
}

// testFile is a file of tests for promtool.
type testFile struct {
	RuleFiles []string             `yaml:"rule_files"`
	Tests     []yaml.Node          `yaml:"tests"`
	Rest      map[string]yaml.Node `yaml:",inline"`
}

// splitTests writes each alert and its tests to files of their own, and returns the files of tests.
// promtool evaluates all rules of a file in each minute of each test. The other rules only cost
// time, because no alert reads another one: see TestAlertsNameMetricsThatExist.
func splitTests(t *testing.T) (files []string) {
	t.Helper()
	var rules ruleFile
	var tests testFile
	readYAML(t, rulesFile, &rules)
	readYAML(t, testsFile, &tests)
	of := testsByAlert(t, tests.Tests)
	folder := t.TempDir()
	for _, group := range rules.Groups {
		for i := range group.Rules {
			alert := alertOf(t, &group.Rules[i])
			if len(of[alert]) == 0 {
				t.Errorf("%q has no test, or two rules", alert)
				continue
			}
			alone, file := alert+".rules.yaml", filepath.Join(folder, alert+".test.yaml")
			writeYAML(t, filepath.Join(folder, alone), ruleFile{[]ruleGroup{{group.Rules[i : i+1], group.Rest}}})
			writeYAML(t, file, testFile{[]string{alone}, of[alert], tests.Rest})
			files = append(files, file)
			delete(of, alert)
		}
	}
	for alert := range of {
		t.Errorf("no rule has the alert %q of a test", alert)
	}
	return files
}

// testsByAlert groups tests by the one alert that each of them is about.
func testsByAlert(t *testing.T, tests []yaml.Node) map[string][]yaml.Node {
	t.Helper()
	of := map[string][]yaml.Node{}
	for i := range tests {
		var test struct {
			Name  string
			Cases []struct{ Alertname string } `yaml:"alert_rule_test"`
		}
		if err := tests[i].Decode(&test); err != nil {
			t.Fatal(err)
		}
		alerts := map[string]bool{}
		for _, c := range test.Cases {
			alerts[c.Alertname] = true
		}
		if len(alerts) != 1 {
			t.Fatalf("the test %q is about the alerts %v, want one", test.Name, slices.Sorted(maps.Keys(alerts)))
		}
		for alert := range alerts {
			of[alert] = append(of[alert], tests[i])
		}
	}
	return of
}

func alertOf(t *testing.T, rule *yaml.Node) string {
	t.Helper()
	var r struct{ Alert string }
	if err := rule.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r.Alert
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func writeYAML(t *testing.T, path string, value any) {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
