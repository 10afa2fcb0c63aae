// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"strings"

	"github.com/spf13/cobra"
)

// NewGroup returns a command that has verbs, and prints their help.
func NewGroup(name, short, long string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        name + " COMMAND",
		Short:                      short,
		Long:                       long,
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return UsageErrorf(cmd, "unknown command %q for %q%s", args[0], displayPath(cmd), suggestions(cmd, args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// OneArgument returns the only argument of a command. The error names the kind of argument, and the command that lists such objects.
func OneArgument(cmd *cobra.Command, args []string, what string) (string, error) {
	if len(args) != 1 || args[0] == "" {
		return "", UsageErrorf(cmd, "name one %s: \"%s %s list\" lists them", what, DisplayName, what)
	}
	return args[0], nil
}

// NoArguments refuses every argument.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageErrorf(cmd, "unexpected arguments: %s", strings.Join(args, " "))
	}
	return nil
}
