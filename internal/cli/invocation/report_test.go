// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

type sample struct {
	Object string `json:"object"`
	Items  []int  `json:"items,omitempty"`
}

func TestPrintReport_HasTheFormatsOfKubectl(t *testing.T) {
	whole := sample{Object: "a<b>", Items: []int{1, 2}}
	for name, tc := range map[string]struct {
		format string
		report any
		want   string
	}{
		"JSON names its kind first":  {"json", whole, "{\n    \"apiVersion\": \"cli.plumbline.dev/v1alpha1\",\n    \"kind\": \"Sample\",\n    \"object\": \"a<b>\",\n    \"items\": [\n        1,\n        2\n    ]\n}\n"},
		"YAML has the same":          {"yaml", whole, "apiVersion: cli.plumbline.dev/v1alpha1\nitems:\n- 1\n- 2\nkind: Sample\nobject: a<b>\n"},
		"a report without fields":    {"json", map[string]any{}, "{\n    \"apiVersion\": \"cli.plumbline.dev/v1alpha1\",\n    \"kind\": \"Sample\"\n}\n"},
		"a path to a field":          {"jsonpath={.object} {.kind}", whole, "a<b> Sample"},
		"a path to no field":         {"jsonpath={.missing}", whole, ""},
		"a template":                 {"go-template={{range .items}}{{.}};{{end}}", whole, "1;2;"},
		"a number stays one":         {"jsonpath={.items}", whole, "[1,2]"},
		"a terminal obeys no report": {"jsonpath={.object}", sample{Object: "\x1b[2Ja"}, "\ufffd[2Ja"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			inv := &Invocation{IOStreams: genericiooptions.IOStreams{Out: &out}}
			if err := inv.PrintReport(tc.format, "Sample", tc.report); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	inv := &Invocation{IOStreams: genericiooptions.IOStreams{Out: &bytes.Buffer{}}}
	if err := inv.PrintReport("json", "Sample", json.RawMessage("[]")); err == nil {
		t.Error("a list was printed as a report")
	}
}

func TestCheckOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		output  string
		formats []string
		want    string
	}{
		"a format":                        {"yaml", []string{"json", "yaml"}, ""},
		"no format":                       {"", []string{"json"}, ""},
		"a path":                          {"jsonpath={.a}", []string{"json"}, ""},
		"a path without a template":       {"jsonpath", []string{"json"}, "unable to match a printer suitable for the output format \"jsonpath\", allowed formats are: json,jsonpath=,go-template=\nSee 'x -h' for help and examples"},
		"an empty path":                   {"jsonpath=", []string{"json"}, "unable to match a printer suitable for the output format \"jsonpath=\", allowed formats are: json,jsonpath=,go-template=\nSee 'x -h' for help and examples"},
		"a path that cannot be read":      {"jsonpath={.a", []string{"json"}, "unclosed action\nSee 'x -h' for help and examples"},
		"a template of a command without": {"go-template={{.}}", []string{"html"}, "unable to match a printer suitable for the output format \"go-template={{.}}\", allowed formats are: html\nSee 'x -h' for help and examples"},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			if err := CheckOutput(&cobra.Command{Use: "x"}, tc.output, tc.formats...); err != nil {
				said = err.Error()
			}
			if said != tc.want {
				t.Errorf("got %q, want %q", said, tc.want)
			}
		})
	}
}
