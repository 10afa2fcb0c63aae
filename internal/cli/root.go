// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// displayName is how the plugin is called and how it names itself in help.
const displayName = "kubectl plumbline"

// Environment is what a process lends to the plugin.
type Environment struct {
	In       io.Reader
	Out, Err io.Writer
	// Now is the clock that relative ages are counted from.
	Now func() time.Time
	// Version of the plugin, as "kubectl plumbline version" prints it.
	Version string
}

// app is what the commands share.
type app struct {
	genericiooptions.IOStreams
	now     func() time.Time
	version string
	config  *genericclioptions.ConfigFlags
	// connect reaches the cluster that the flags and the kubeconfig name. It
	// is called by the commands that need one: hash -f works without.
	connect func() (*cluster, error)
	// interactive tells whether somebody can answer a question.
	interactive func() bool
}

// Run carries out one command line, args without the program's name, and
// returns the exit code: 0 is success, 1 failure; diff and status --exit-code
// answer with 1 and fail with 2.
func Run(ctx context.Context, args []string, env Environment) int {
	a := newApp(env)
	return a.run(ctx, args)
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

func newApp(env Environment) *app {
	a := &app{
		IOStreams: genericiooptions.IOStreams{In: env.In, Out: env.Out, ErrOut: env.Err},
		now:       env.Now,
		version:   env.Version,
		config:    genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(clientBurst).WithDiscoveryQPS(clientQPS),
	}
	a.connect = a.connectByFlags
	a.interactive = isInteractive(env.In)
	return a
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.command() //nolint:contextcheck // commands get theirs from cobra, which gets it below
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return report(cmd, err, a.ErrOut)
}

// NewCommand returns the command tree, for the documentation generator.
func NewCommand(env Environment) *cobra.Command {
	return newApp(env).command()
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-plumbline",
		Short: "Shows who changed what, and whether it was authorized",
		Long: `Plumbline keeps what runs in a cluster true to what was authorized.

This plugin shows the state of guarded objects, what differs from the
authorized state, who made each change and how that is known; and it accepts
what runs now as the new authorized state. "hash -f" works without a cluster.`,
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: displayName},
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		DisableAutoGenTag:          true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageErrorf(cmd, "unknown command %q for %q%s", args[0], displayName, suggestions(cmd, args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageErrorf(cmd, "%v", err) })
	root.SetUsageTemplate(usageTemplate)
	root.CompletionOptions.DisableDefaultCmd = true
	a.config.AddFlags(root.PersistentFlags())
	root.AddCommand(
		a.statusCommand(), a.diffCommand(), a.blameCommand(), a.historyCommand(), a.acceptCommand(), a.remediateCommand(), a.checkCommand(),
		a.planCommand(), a.policyCommand(), a.haltCommand(), a.unhaltCommand(), a.evidenceCommand(),
		a.proxiesCommand(), a.adoptCommand(), a.doctorCommand(),
		a.hashCommand(), a.completionCommand(), a.optionsCommand(), a.versionCommand(),
	)
	a.registerFlagCompletions(root)
	return root
}

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

{{end}}{{if .HasAvailableSubCommands}}Available Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

{{end}}{{if .HasAvailableLocalFlags}}{{if .HasParent}}Options:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}

{{end}}{{end}}Usage:
  {{if .HasParent}}{{.UseLine}}{{else}}{{.CommandPath}} [command] [flags] [options]{{end}}

{{if .HasAvailableSubCommands}}Use "{{.CommandPath}} <command> -h" for more information about a given command.
{{end}}Use "{{.Root.CommandPath}} options" for a list of global command-line options (applies to all commands).
`

func (a *app) optionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "options",
		Short:                 "Print the list of flags inherited by all commands",
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.print("The following options can be passed to any command:\n\n", cmd.InheritedFlags().FlagUsages())
		},
	}
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf(cmd, "unexpected arguments: %s", strings.Join(args, " "))
	}
	return nil
}
