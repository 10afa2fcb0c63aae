// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
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
		place := "@@ " + invocation.NamePath(change.Path) + " @@"
		switch {
		case change.Reordered:
			place += " reordered"
		case change.Path == "" && change.Operation == string(diff.Added):
			place += " exists, and no trusted writer has created it"
		case change.Path == "" && change.Operation == string(diff.Removed):
			place += " is gone, and no trusted writer has removed it"
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
