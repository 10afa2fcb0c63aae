// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"fmt"
	"strings"
)

// Description is text for people: labeled lines and indented ones. For any
// input, each call writes whole lines of its own without sequences that a terminal
// obeys.
type Description struct{ text strings.Builder }

// labelWidth is that of the longest label, so that all values begin in one column.
const labelWidth = 16

// Field writes "Label:  value"; an empty value is left out.
func (d *Description) Field(label, value string) {
	if value != "" {
		fmt.Fprintf(&d.text, "%-*s%s\n", labelWidth, label+":", Printable(value))
	}
}

// Section begins a part of its own.
func (d *Description) Section(title string) {
	fmt.Fprintf(&d.text, "\n%s\n", Printable(title))
}

// Line writes one line, indented by so many levels.
func (d *Description) Line(level int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.text.WriteString(strings.TrimRight(strings.Repeat("  ", level)+Printable(text), " ") + "\n")
}

func (d *Description) String() string { return d.text.String() }
