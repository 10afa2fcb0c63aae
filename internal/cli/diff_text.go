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
	colorRemoved = "\x1b[31m"
	colorAdded   = "\x1b[32m"
	colorPlace   = "\x1b[36m"
	colorHeader  = "\x1b[1m"
	colorReset   = "\x1b[0m"
)

// diffWriter writes lines, colored on a terminal.
type diffWriter struct {
	strings.Builder
	color bool
}

func (w *diffWriter) line(color, text string) {
	text = printable(text)
	if w.color && color != "" {
		text = color + text + colorReset
	}
	w.WriteString(text + "\n")
}

func (a *app) renderDiff(r diffReport) string {
	w := &diffWriter{color: printers.AllowsColorOutput(a.Out)}
	if !r.Different && len(r.Expected) == 0 {
		return ""
	}
	if r.Different {
		w.line(colorHeader, "--- "+r.Object+"  "+a.authorizedWords(r.Authorized))
		w.line(colorHeader, "+++ "+r.Object+"  "+liveWords(r.Live))
	}
	w.changes(r.Changes)
	for _, mask := range r.Expected {
		w.line("", fmt.Sprintf("# expected: %s %s by %s (rule %s)", mask.Path, mask.Value, actorName(mask.By), mask.Rule))
	}
	return w.String()
}

func (a *app) authorizedWords(r *authorizedReport) string {
	if r == nil {
		return "never authorized"
	}
	return fmt.Sprintf("authorized (revision %d, by %s, %s)", r.Revision, actorName(r.By), a.ago(r.At))
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
		w.line(colorPlace, place)
		w.value(colorRemoved, "-", change.Before)
		w.value(colorAdded, "+", change.After)
	}
}

// value writes objects and lists over several lines, scalars on one.
func (w *diffWriter) value(color, sign, value string) {
	if value == "" {
		return
	}
	var indented bytes.Buffer
	if json.Indent(&indented, []byte(value), "", "  ") != nil {
		indented.Reset()
		indented.WriteString(value)
	}
	for line := range strings.SplitSeq(indented.String(), "\n") {
		w.line(color, sign+line)
	}
}

func (a *app) renderRevisionDiff(object string, changes []changeReport, from, to string) string {
	if len(changes) == 0 {
		return ""
	}
	w := &diffWriter{color: printers.AllowsColorOutput(a.Out)}
	w.line(colorHeader, "--- "+object+"  revision "+from)
	w.line(colorHeader, "+++ "+object+"  revision "+to)
	w.changes(changes)
	return w.String()
}
