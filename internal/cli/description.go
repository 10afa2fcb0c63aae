// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
)

// description is text for people: labeled lines and indented ones. Whatever is
// put in, each call writes whole lines of its own and nothing that a terminal
// would obey.
type description struct{ text strings.Builder }

// labelWidth is that of the longest label, so that all values begin in one column.
const labelWidth = 16

// field writes "Label:  value"; a value of nothing is left out.
func (d *description) field(label, value string) {
	if value != "" {
		fmt.Fprintf(&d.text, "%-*s%s\n", labelWidth, label+":", printable(value))
	}
}

// section begins a part of its own.
func (d *description) section(title string) {
	fmt.Fprintf(&d.text, "\n%s\n", printable(title))
}

// line writes one line, indented by so many levels.
func (d *description) line(level int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.text.WriteString(strings.TrimRight(strings.Repeat("  ", level)+printable(text), " ") + "\n")
}

func (d *description) String() string { return d.text.String() }
