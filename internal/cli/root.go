// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/cli/accept"
	"github.com/plumbline-dev/plumbline/internal/cli/adopt"
	"github.com/plumbline-dev/plumbline/internal/cli/assess"
	"github.com/plumbline-dev/plumbline/internal/cli/blame"
	"github.com/plumbline-dev/plumbline/internal/cli/console"
	"github.com/plumbline-dev/plumbline/internal/cli/diff"
	"github.com/plumbline-dev/plumbline/internal/cli/doctor"
	"github.com/plumbline-dev/plumbline/internal/cli/evidence"
	"github.com/plumbline-dev/plumbline/internal/cli/halt"
	"github.com/plumbline-dev/plumbline/internal/cli/hash"
	"github.com/plumbline-dev/plumbline/internal/cli/history"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/lift"
	"github.com/plumbline-dev/plumbline/internal/cli/plan"
	"github.com/plumbline-dev/plumbline/internal/cli/policy"
	"github.com/plumbline-dev/plumbline/internal/cli/proxies"
	"github.com/plumbline-dev/plumbline/internal/cli/release"
	"github.com/plumbline-dev/plumbline/internal/cli/remediate"
	"github.com/plumbline-dev/plumbline/internal/cli/router"
	"github.com/plumbline-dev/plumbline/internal/cli/status"
)

// Environment has the streams and the clock that a process lends to the plugin.
type Environment = invocation.Environment

// app carries out the commands about the plugin itself with an invocation.
type app struct{ *invocation.Invocation }

// groups are the commands of the tree, by their headings in the help.
var groups = []struct {
	title string
	verbs []func(*invocation.Invocation) *cobra.Command
}{
	{"Drift Commands", []func(*invocation.Invocation) *cobra.Command{
		status.Command, diff.Command, blame.Command, history.Command, status.CheckCommand, accept.Command, adopt.Command,
	}},
	{"Remediation Commands", []func(*invocation.Invocation) *cobra.Command{
		remediate.Command, plan.Command, policy.Command, assess.Command, halt.Command, halt.ResumeCommand, lift.Command, evidence.Command,
	}},
	{"Traffic Commands", []func(*invocation.Invocation) *cobra.Command{release.Command, router.Command, proxies.Command}},
	{"Installation Commands", []func(*invocation.Invocation) *cobra.Command{doctor.Command, console.Command, versionCommand}},
	{"Other Commands", []func(*invocation.Invocation) *cobra.Command{hash.Command, completionCommand, optionsCommand}},
}

// Run carries out one command line, args without the program's name, and
// returns the exit code: 0 is success, 1 failure; diff and status --exit-code
// answer with 1 and fail with 2.
func Run(ctx context.Context, args []string, env Environment) int {
	inv := invocation.New(env)
	root := newRoot(inv)
	return inv.Run(ctx, root, args)
}

// Arguments gives the command line of a process whose arguments, its name
// first, are args. Called by [CompletionName] it answers for completion: that
// is kubectl's convention for plugins.
func Arguments(args []string) []string {
	if filepath.Base(args[0]) == CompletionName {
		return append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return args[1:]
}

// NewCommand returns the command tree, for the documentation generator.
func NewCommand(env Environment) *cobra.Command {
	return newRoot(invocation.New(env))
}

func newRoot(inv *invocation.Invocation) *cobra.Command {
	made := make([]invocation.Group, 0, len(groups))
	for _, g := range groups {
		group := invocation.Group{Title: g.title}
		for _, verb := range g.verbs {
			group.Verbs = append(group.Verbs, verb(inv))
		}
		made = append(made, group)
	}
	return inv.NewRoot(made...)
}

func optionsCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "options",
		Short:                 "Print the list of flags inherited by all commands",
		DisableFlagsInUseLine: true,
		Args:                  invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return inv.Print("The following options can be passed to any command:\n\n", cmd.InheritedFlags().FlagUsages())
		},
	}
	return cmd
}
