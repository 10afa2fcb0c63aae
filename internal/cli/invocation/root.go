// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
)

// DisplayName is how the plugin is called and how it names itself in help.
const DisplayName = wording.CommandName

func suggestions(cmd *cobra.Command, typed string) string {
	near := cmd.SuggestionsFor(typed)
	if len(near) == 0 {
		return ""
	}
	return "\n\nDid you mean this?\n\t" + strings.Join(near, "\n\t") + "\n"
}

// displayPath names a command as the user typed it: kubectl plumbline hash.
func displayPath(cmd *cobra.Command) string { return cmd.CommandPath() }

// usageTemplate is cobra's without the two dozen connection flags, which
// kubectl too keeps in a command of their own.
const usageTemplate = `{{if .HasExample}}Examples:
{{.Example}}

{{end}}{{range $group := .Groups}}{{.Title}}:{{range $.Commands}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

{{end}}{{if and .HasAvailableSubCommands (not .AllChildCommandsHaveGroup)}}Available Commands:{{range .Commands}}{{if and (eq .GroupID "") .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

{{end}}{{if .HasAvailableLocalFlags}}{{if .HasParent}}Options:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}

{{end}}{{end}}Usage:
  {{if .HasParent}}{{.UseLine}}{{else}}{{.CommandPath}} [command] [flags] [options]{{end}}

{{if .HasAvailableSubCommands}}Use "{{.CommandPath}} <command> -h" for more information about a given command.
{{end}}Use "{{.Root.CommandPath}} options" for a list of global command-line options (applies to all commands).
`

// Group is a heading in the help of the plugin, and the verbs below that heading.
type Group struct {
	Title string
	Verbs []*cobra.Command
}

// NewRoot returns the plugin's command, which has verbs in groups, and prints its help.
func (inv *Invocation) NewRoot(groups ...Group) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-plumbline",
		Short: "Shows the changes of objects, their writers, and whether they were authorized",
		Long: `Plumbline detects unauthorized changes of objects in a cluster, and can remediate them.

This plugin shows the state of guarded objects, their differences from the
authorized state, the writer of each change and the proof. It accepts the
observed state as the new authorized state. It shows and controls remediation,
and the rollouts of releases. "hash -f" works without a cluster.`,
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: DisplayName},
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		DisableAutoGenTag:          true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return UsageErrorf(cmd, "unknown command %q for %q%s", args[0], DisplayName, suggestions(cmd, args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(inv.In)
	root.SetOut(inv.Out)
	root.SetErr(inv.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return UsageErrorf(cmd, "%v", err) })
	root.SetUsageTemplate(usageTemplate)
	root.CompletionOptions.DisableDefaultCmd = true
	inv.ConfigFlags.AddFlags(root.PersistentFlags())
	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.Title, Title: group.Title})
		for _, verb := range group.Verbs {
			verb.GroupID = group.Title
		}
		root.AddCommand(group.Verbs...)
		root.SetHelpCommandGroupID(group.Title) // cobra's own verb, which no help shows
	}
	inv.registerFlagCompletions(root)
	return root
}

// Run carries out one command line on root, args without the program's name. It prints an
// error in kubectl's words and returns the exit code. A command that the user has interrupted
// prints no error, as kubectl does.
func (inv *Invocation) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	return Report(cmd, err, inv.ErrOut)
}
