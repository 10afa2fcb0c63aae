// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// SGR sequences, as diff --color has them.
const (
	colourRemoved = "\x1b[31m"
	colourAdded   = "\x1b[32m"
	colourPlace   = "\x1b[36m"
	colourHeader  = "\x1b[1m"
	colourReset   = "\x1b[0m"
)

// diffWriter writes lines, coloured on a terminal.
type diffWriter struct {
	strings.Builder
	colour bool
}

func (w *diffWriter) line(colour, text string) {
	text = printable(text)
	if w.colour && colour != "" {
		text = colour + text + colourReset
	}
	w.WriteString(text + "\n")
}

func (a *app) renderDiff(r diffReport) string {
	w := &diffWriter{colour: printers.AllowsColorOutput(a.Out)}
	if !r.Different && len(r.Expected) == 0 {
		return ""
	}
	if r.Different {
		w.line(colourHeader, "--- "+r.Object+"  "+a.authorisedWords(r.Authorised))
		w.line(colourHeader, "+++ "+r.Object+"  "+liveWords(r.Live))
	}
	w.changes(r.Changes)
	for _, mask := range r.Expected {
		w.line("", fmt.Sprintf("# expected: %s %s by %s (rule %s)", mask.Path, mask.Value, actorName(mask.By), mask.Rule))
	}
	return w.String()
}

func (a *app) authorisedWords(r *authorisedReport) string {
	if r == nil {
		return "never authorised"
	}
	return fmt.Sprintf("authorised (revision %d, by %s, %s)", r.Revision, actorName(r.By), a.ago(r.At))
}

func liveWords(r *liveReport) string {
	if r == nil {
		return "gone"
	}
	if r.Writer == "" {
		return fmt.Sprintf("live (generation %d)", r.Generation)
	}
	return fmt.Sprintf("live (generation %d, last written by %s)", r.Generation, r.Writer)
}

func (w *diffWriter) changes(changes []changeReport) {
	for _, change := range changes {
		place := "@@ " + pathName(change.Path) + " @@"
		switch {
		case change.Reordered:
			place += " reordered"
		case change.Path == "" && change.Operation == string(diff.Added):
			place += " exists, and nobody trusted has created it"
		case change.Path == "" && change.Operation == string(diff.Removed):
			place += " is gone, and nobody trusted has removed it"
		}
		w.line(colourPlace, place)
		w.value(colourRemoved, "-", change.Before)
		w.value(colourAdded, "+", change.After)
	}
}

// value writes objects and lists over several lines, scalars on one.
func (w *diffWriter) value(colour, sign, value string) {
	if value == "" {
		return
	}
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(value), "", "  ") != nil {
		indented.Reset()
		indented.WriteString(value)
	}
	for line := range strings.SplitSeq(indented.String(), "\n") {
		w.line(colour, sign+line)
	}
}

func (a *app) renderRevisionDiff(r diffReport, from, to string) string {
	if !r.Different {
		return ""
	}
	w := &diffWriter{colour: printers.AllowsColorOutput(a.Out)}
	w.line(colourHeader, "--- "+r.Object+"  revision "+from)
	w.line(colourHeader, "+++ "+r.Object+"  revision "+to)
	w.changes(r.Changes)
	return w.String()
}
