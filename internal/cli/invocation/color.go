// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"io"
	"regexp"

	"k8s.io/cli-runtime/pkg/printers"
)

// SGR sequences of the words that tell a state.
const (
	bad      = "\x1b[31m"
	doubtful = "\x1b[33m"
	good     = "\x1b[32m"
	plain    = "\x1b[0m"
)

// stateWords are the words that tell a state, by their colors.
var stateWords = []struct {
	color string
	words *regexp.Regexp
}{
	{bad, regexp.MustCompile(`\b(Critical|CRITICAL|Drifted|Missing|Failed|RolledBack)\b|✗`)},
	{doubtful, regexp.MustCompile(`\b(High|WARNING|Unknown|UNKNOWN|Paused)\b`)},
	{good, regexp.MustCompile(`\b(InSync|Succeeded|Completed|OK)\b|✓`)},
}

// Paint colors the words that tell a state, on a terminal that has colors. The environment variable NO_COLOR switches
// colors off.
func (inv *Invocation) Paint(text string) string {
	if inv.AllowsColor == nil || !inv.AllowsColor() {
		return text
	}
	for _, s := range stateWords {
		text = s.words.ReplaceAllString(text, s.color+"${0}"+plain)
	}
	return text
}

func allowsColor(out io.Writer) func() bool {
	return func() bool { return printers.AllowsColorOutput(out) }
}
