// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

func (a *app) print(parts ...string) error {
	_, err := io.WriteString(a.Out, strings.Join(parts, ""))
	return err
}

func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.ErrOut, "Warning: "+format+"\n", args...)
}

// printStructured writes v as kubectl writes objects: four spaces, no HTML
// escapes.
func (a *app) printStructured(format string, v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("printing %s: %w", format, err)
	}
	if format == "yaml" {
		converted, err := yaml.JSONToYAML(b.Bytes())
		if err != nil {
			return fmt.Errorf("printing yaml: %w", err)
		}
		return a.print(string(converted))
	}
	return a.print(b.String())
}

// column is one column of a table; wide ones show with -o wide only.
type column struct {
	name string
	wide bool
}

type tableOptions struct {
	wide, noHeaders bool
}

func (a *app) printTable(o tableOptions, columns []column, rows [][]any) error {
	table := &metav1.Table{}
	for _, c := range columns {
		definition := metav1.TableColumnDefinition{Name: c.name, Type: "string"}
		if c.wide {
			definition.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	for _, cells := range rows {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: o.wide, NoHeaders: o.noHeaders})
	return printer.PrintObj(table, a.Out)
}

func addOutputFlag(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "Output format. One of: ("+strings.Join(formats, ", ")+").")
	completeValues(cmd, "output", formats...)
}

func addNoHeadersFlag(cmd *cobra.Command, noHeaders *bool) {
	cmd.Flags().BoolVar(noHeaders, "no-headers", false, "When using the default or wide output format, don't print headers and the summary.")
}

func checkOutput(cmd *cobra.Command, output string, formats ...string) error {
	if output == "" || slices.Contains(formats, output) {
		return nil
	}
	return usageErrorf(cmd, "unable to match a printer suitable for the output format %q, allowed formats are: %s", output, strings.Join(formats, ","))
}

// age is the time since at as kubectl prints it.
func (a *app) age(at metav1.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(a.now().Sub(at.Time))
}

func (a *app) ago(at metav1.Time) string {
	if at.IsZero() {
		return "at an unknown time"
	}
	return a.age(at) + " ago"
}

func timestamp(at metav1.Time) string { return at.UTC().Format(time.RFC3339) }

// printable replaces what could move a cursor, hide text or add a line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			return '\ufffd'
		}
		return r
	}, text)
}

// short cuts text to limit characters, for table cells.
func short(text string, limit int) string {
	runes := []rune(printable(text))
	if len(runes) <= limit {
		return string(runes)
	}
	return string(runes[:limit-1]) + "…"
}

// examples joins pairs of comment and command, with the plugin's name filled in.
func examples(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
			if i%2 == 0 {
				b.WriteByte('\n')
			}
		}
		b.WriteString("  " + strings.ReplaceAll(line, "%s", displayName))
	}
	return b.String()
}
