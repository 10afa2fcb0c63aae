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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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

// reportVersion is the apiVersion of the reports that commands compose. No API server serves them.
const reportVersion = "cli.plumbline.dev/v1alpha1"

// PrintReport writes a report of the kind as [Invocation.PrintStructured] writes objects, with an
// apiVersion and the kind before the fields of the report, which is a struct or a map.
func (inv *Invocation) PrintReport(format, kind string, report any) error {
	document, err := encode(report)
	if err != nil {
		return fmt.Errorf("printing %s: %w", format, err)
	}
	fields, isObject := bytes.CutPrefix(document, []byte("{"))
	if !isObject {
		return fmt.Errorf("printing %s: a report is an object, not %.20q", format, document)
	}
	head := fmt.Sprintf(`{"apiVersion":%q,"kind":%q`, reportVersion, kind)
	if !bytes.HasPrefix(fields, []byte("}")) {
		head += ","
	}
	return inv.PrintStructured(format, json.RawMessage(head+string(fields)))
}

// PrintStructured writes v as kubectl writes objects: four spaces, no HTML
// escapes. In JSON, characters that a terminal would not show as they are get escaped, which
// no reader of JSON can tell. The formats jsonpath and go-template print fields of v.
func (inv *Invocation) PrintStructured(format string, v any) error {
	document, err := encode(v)
	if err != nil {
		return fmt.Errorf("printing %s: %w", format, err)
	}
	name, template, _ := strings.Cut(format, "=")
	switch name {
	case jsonPath, goTemplate:
		return inv.printFields(name, template, document)
	case "yaml":
		converted, err := yaml.JSONToYAML(document)
		if err != nil {
			return fmt.Errorf("printing yaml: %w", err)
		}
		return inv.Print(string(converted))
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, document, "", "    "); err != nil {
		return fmt.Errorf("printing %s: %w", format, err)
	}
	return inv.Print(string(escapeUnprintable(indented.Bytes())), "\n")
}

// encode returns v as JSON without HTML escapes, in one line.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// printFields prints fields of a document by a template, as kubectl get does.
func (inv *Invocation) printFields(format, template string, document []byte) error {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(document, &object.Object); err != nil {
		return fmt.Errorf("printing %s: %w", format, err)
	}
	printer, err := newFieldPrinter(format, template)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := printer.PrintObj(object, &text); err != nil {
		return err
	}
	return inv.Print(printableText(text.String()))
}

func newFieldPrinter(format, template string) (printers.ResourcePrinter, error) {
	if format == goTemplate {
		return printers.NewGoTemplatePrinter([]byte(template))
	}
	printer, err := printers.NewJSONPathPrinter(template)
	if err == nil {
		printer.AllowMissingKeys(true)
	}
	return printer, err
}

// escapeUnprintable writes as \uXXXX the characters that a JSON encoder leaves in strings and a
// terminal may obey: DEL, C1 controls, and characters that hide or reorder text.
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
	var text bytes.Buffer
	if err := printer.PrintObj(table, &text); err != nil {
		return err
	}
	return inv.Print(inv.Paint(text.String()))
}

// The formats with a template behind an equals sign, which each command with the format json has.
const (
	jsonPath   = "jsonpath"
	goTemplate = "go-template"
)

// AddOutputFlag adds -o with its formats, which [CheckOutput] checks. With json come the formats that
// print fields of the same document.
func AddOutputFlag(cmd *cobra.Command, output *string, formats ...string) {
	formats = withTemplates(formats)
	cmd.Flags().StringVarP(output, "output", "o", "", "Output format. One of: ("+strings.Join(formats, ", ")+").")
	CompleteValues(cmd, "output", formats...)
}

func withTemplates(formats []string) []string {
	if slices.Contains(formats, "json") {
		return append(slices.Clone(formats), jsonPath+"=", goTemplate+"=")
	}
	return formats
}

// IsStructured tells whether an output is a document, or fields of one, and no text for people.
func IsStructured(output string) bool {
	name, _, _ := strings.Cut(output, "=")
	return slices.Contains([]string{"json", "yaml", jsonPath, goTemplate}, name)
}

// AddNoHeadersFlag adds --no-headers.
func AddNoHeadersFlag(cmd *cobra.Command, noHeaders *bool) {
	cmd.Flags().BoolVar(noHeaders, "no-headers", false, "When using the default or wide output format, don't print headers and the summary.")
}

// CheckOutput refuses a format that formats does not have, and a template that cannot be read.
func CheckOutput(cmd *cobra.Command, output string, formats ...string) error {
	name, template, _ := strings.Cut(output, "=")
	formats = withTemplates(formats)
	switch {
	case output == "" || !strings.Contains(output, "=") && slices.Contains(formats, output):
		return nil
	case template != "" && slices.Contains(formats, name+"="):
		if _, err := newFieldPrinter(name, template); err != nil {
			return UsageErrorf(cmd, "%v", err)
		}
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

// printableCells makes each cell of each table printable, since the printer of kubectl escapes
// ESC alone.
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
