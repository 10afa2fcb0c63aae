// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

// SGR sequences, as diff --color has them.
const (
	colorRemoved = "\x1b[31m"
	colorAdded   = "\x1b[32m"
	colorPlace   = "\x1b[36m"
	ColorHeader  = "\x1b[1m"
	colorReset   = "\x1b[0m"
)

// Writer writes lines, colored on a terminal.
type Writer struct {
	strings.Builder
	Color bool
}

// WriteLine writes one line, in color where the writer has colors.
func (w *Writer) WriteLine(color, text string) {
	text = invocation.Printable(text)
	if w.Color && color != "" {
		text = color + text + colorReset
	}
	w.WriteString(text + "\n")
}

// WriteChanges writes the path of each change, and its values before and after.
func (w *Writer) WriteChanges(changes []actions.Change) {
	for _, change := range changes {
		place := "@@ " + wording.NamePath(change.Path) + " @@"
		if note := wording.NoteChange(&change); note != "" {
			place += " " + note
		}
		w.WriteLine(colorPlace, place)
		w.writeValue(colorRemoved, "-", change.Before)
		w.writeValue(colorAdded, "+", change.After)
	}
}

// writeValue writes objects and lists over several lines, scalars on one.
func (w *Writer) writeValue(color, sign, value string) {
	if value == "" {
		return
	}
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(value), "", "  ") != nil {
		indented.Reset()
		indented.WriteString(value)
	}
	for line := range strings.SplitSeq(indented.String(), "\n") {
		w.WriteLine(color, sign+line)
	}
}
