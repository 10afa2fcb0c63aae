// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// typed are the commands of a page: the lines of blocks, and the code in sentences.
func typed(page string) (commands []string) {
	prose, _, _ := strings.Cut(page, guideBegin)
	for line := range strings.Lines(prose) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if command, found := strings.CutPrefix(line, invocation.DisplayName+" "); found {
			for _, end := range []string{" #", " > ", " | ", " && "} {
				command, _, _ = strings.Cut(command, end)
			}
			commands = append(commands, command)
			continue
		}
		for _, span := range commandSpan.FindAllStringSubmatch(line, -1) {
			commands = append(commands, span[1])
		}
	}
	return commands
}

// commandSpan is a command in a sentence.
var commandSpan = regexp.MustCompile("`" + invocation.DisplayName + " ([^`]+)`")

// TestPagesNameCommandsAndFlagsThatExist parses each command line of the pages against the command tree.
func TestPagesNameCommandsAndFlagsThatExist(t *testing.T) {
	seen := 0
	for _, glob := range []string{"README.md", "docs/*.md", "docs/guides/*.md", "docs/reference/*.md", "docs/runbooks/*.md"} {
		files, err := filepath.Glob("../../" + glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d pages, %v", glob, len(files), err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range typed(string(content)) {
				seen++
				if err := parseCommand(command); err != nil {
					t.Errorf("%s: %q: %v", filepath.Base(file), command, err)
				}
			}
		}
	}
	if seen < 200 {
		t.Errorf("only %d commands were found in the pages", seen)
	}
}

// parseCommand checks the verb and the flags of a command.
func parseCommand(command string) error {
	words := strings.Fields(strings.NewReplacer("'", "", "…", "", `\`, "").Replace(command))
	cmd, args, err := NewCommand(invocation.Environment{}).Find(words)
	if err != nil {
		return fmt.Errorf("finding the command: %w", err)
	}
	if len(args) > 0 && cmd.HasSubCommands() {
		return fmt.Errorf("%s has no verb %s", cmd.Name(), args[0])
	}
	if err := cmd.ParseFlags(args); err != nil {
		return fmt.Errorf("parsing the flags: %w", err)
	}
	return nil
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
