// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

const (
	guideFile  = "../../docs/guides/kubectl-plumbline.md"
	guideBegin = "<!-- generated from the commands' help; rewrite with UPDATE_GOLDEN=1 go test ./internal/cli -->\n"
	guideEnd   = "<!-- end of the generated part -->\n"
)

// TestGuide_ReferenceIsTheCommandsHelp fails when a flag or a sentence of help
// has changed and the guide has not.
func TestGuide_ReferenceIsTheCommandsHelp(t *testing.T) {
	content, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	prose, rest, begins := strings.Cut(string(content), guideBegin)
	_, after, ends := strings.Cut(rest, guideEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the marks around its generated part", guideFile)
	}
	golden.Check(t, guideFile, prose+guideBegin+renderReference()+guideEnd+after)
}

// TestGuide_ProseNamesCommandsAndFlagsThatExist parses each command line of the
// guide's prose against the command tree.
func TestGuide_ProseNamesCommandsAndFlagsThatExist(t *testing.T) {
	content, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	prose, _, _ := strings.Cut(string(content), guideBegin)
	seen := 0
	for line := range strings.Lines(prose) {
		_, typed, found := strings.Cut(line, invocation.DisplayName+" ")
		if !found || !strings.HasPrefix(strings.TrimSpace(line), "kubectl") {
			continue
		}
		typed, _, _ = strings.Cut(typed, " #")
		typed, _, _ = strings.Cut(typed, " > ")
		typed, _, _ = strings.Cut(typed, " | ")
		seen++
		cmd, args, err := NewCommand(invocation.Environment{}).Find(strings.Fields(strings.ReplaceAll(typed, "'", "")))
		if err != nil || cmd.Name() == "kubectl-plumbline" || cmd.HasSubCommands() {
			t.Errorf("%q is no command: %v", typed, err)
			continue
		}
		if err := cmd.ParseFlags(args); err != nil {
			t.Errorf("%q: %v", typed, err)
		}
	}
	if seen < 10 {
		t.Errorf("only %d command lines were found in the prose", seen)
	}
}

func renderReference() string {
	var b strings.Builder
	for _, cmd := range NewCommand(invocation.Environment{}).Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		renderCommand(&b, cmd)
	}
	return b.String()
}

// fullName is a command with its groups: plan show.
func fullName(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), invocation.DisplayName), " ")
}

func renderCommand(b *strings.Builder, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	fmt.Fprintf(b, "\n### %s\n\n", fullName(cmd))
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	// Two spaces end a line in Markdown; help text is wrapped already.
	fmt.Fprintf(b, "%s\n\n```\n%s\n```\n", long, cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.TrimPrefix(strings.ReplaceAll(cmd.Example, "\n  ", "\n"), "  "))
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(b, "\n```\n%s```\n", cmd.LocalFlags().FlagUsages())
	}
	b.WriteByte('\n')
	for _, verb := range cmd.Commands() {
		renderCommand(b, verb)
	}
}
