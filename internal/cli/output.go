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
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func (a *app) print(parts ...string) error {
	_, err := io.WriteString(a.Out, strings.Join(parts, ""))
	return err
}

func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.ErrOut, "Warning: %s\n", printable(fmt.Sprintf(format, args...)))
}

// printStructured writes v as kubectl writes objects: four spaces, no HTML
// escapes. In JSON, what a terminal would not show as it is gets escaped, which
// no reader of JSON can tell.
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
	return a.print(string(escapeUnprintable(b.Bytes())))
}

// escapeUnprintable writes as \uXXXX what a JSON encoder leaves in strings and a
// terminal may obey: DEL, C1 controls, and all that hides or reorders text.
func escapeUnprintable(document []byte) []byte {
	escaped := make([]byte, 0, len(document))
	for _, r := range string(document) {
		switch {
		case r < 0x7f || unicode.IsPrint(r):
			escaped = utf8.AppendRune(escaped, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
	}
	return escaped
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
		table.Rows = append(table.Rows, metav1.TableRow{Cells: printableCells(cells)})
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

// printable makes text safe for one line of a terminal, see [diff.Printable].
func printable(text string) string { return diff.Printable(text) }

// printableText is printable for texts of several lines, tabs included.
func printableText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// printableCells holds for every table, whatever a caller forgets: the printer of
// kubectl escapes ESC alone.
func printableCells(cells []any) []any {
	shown := make([]any, len(cells))
	for i, cell := range cells {
		if text, ok := cell.(string); ok {
			cell = printable(text)
		}
		shown[i] = cell
	}
	return shown
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
