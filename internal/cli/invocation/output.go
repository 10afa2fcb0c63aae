// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Print writes parts to standard output.
func (inv *Invocation) Print(parts ...string) error {
	_, err := io.WriteString(inv.Out, strings.Join(parts, ""))
	return err
}

// Warn writes a warning of one line to standard error.
func (inv *Invocation) Warn(format string, args ...any) {
	fmt.Fprintf(inv.ErrOut, "Warning: %s\n", Printable(fmt.Sprintf(format, args...)))
}

// PrintStructured writes v as kubectl writes objects: four spaces, no HTML
// escapes. In JSON, what a terminal would not show as it is gets escaped, which
// no reader of JSON can tell.
func (inv *Invocation) PrintStructured(format string, v any) error {
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
		return inv.Print(string(converted))
	}
	return inv.Print(string(escapeUnprintable(b.Bytes())))
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

// Column is one column of a table; wide ones show with -o wide only.
type Column struct {
	Name string
	Wide bool
}

// TableOptions are the flags that alter a table: -o wide and --no-headers.
type TableOptions struct {
	Wide, NoHeaders bool
}

// PrintTable prints a table as kubectl does.
func (inv *Invocation) PrintTable(o TableOptions, columns []Column, rows [][]any) error {
	table := &metav1.Table{}
	for _, c := range columns {
		definition := metav1.TableColumnDefinition{Name: c.Name, Type: "string"}
		if c.Wide {
			definition.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	for _, cells := range rows {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: printableCells(cells)})
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: o.Wide, NoHeaders: o.NoHeaders})
	return printer.PrintObj(table, inv.Out)
}

// AddOutputFlag adds -o with its formats, which [CheckOutput] checks.
func AddOutputFlag(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "Output format. One of: ("+strings.Join(formats, ", ")+").")
	CompleteValues(cmd, "output", formats...)
}

// AddNoHeadersFlag adds --no-headers.
func AddNoHeadersFlag(cmd *cobra.Command, noHeaders *bool) {
	cmd.Flags().BoolVar(noHeaders, "no-headers", false, "When using the default or wide output format, don't print headers and the summary.")
}

// CheckOutput refuses a format that is none of formats.
func CheckOutput(cmd *cobra.Command, output string, formats ...string) error {
	if output == "" || slices.Contains(formats, output) {
		return nil
	}
	return UsageErrorf(cmd, "unable to match a printer suitable for the output format %q, allowed formats are: %s", output, strings.Join(formats, ","))
}

// Printable makes text safe for one line of a terminal, see [diff.Printable].
func Printable(text string) string { return diff.Printable(text) }

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
			cell = Printable(text)
		}
		shown[i] = cell
	}
	return shown
}

// Examples joins pairs of comment and command, with the plugin's name filled in.
func Examples(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
			if i%2 == 0 {
				b.WriteByte('\n')
			}
		}
		b.WriteString("  " + strings.ReplaceAll(line, "%s", DisplayName))
	}
	return b.String()
}
