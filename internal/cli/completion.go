// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

// CompletionName is the executable that kubectl asks for completions of the
// plugin. The plugin answers when it is started by this name.
const CompletionName = "kubectl_complete-plumbline"

const completionScript = `#!/bin/sh
# kubectl runs this to complete "kubectl plumbline ...".
# Save it as ` + CompletionName + ` somewhere on PATH and make it executable.
exec kubectl plumbline __complete "$@"
`

var shells = []string{"bash", "zsh", "fish", "powershell"}

func completionCommand(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	return &cobra.Command{
		Use:   "completion [bash|zsh|fish|powershell]",
		Short: "Print the script for completion of kubectl plumbline",
		Long: `Print the script by which kubectl completes "kubectl plumbline ...": commands,
flags, and the types and names of guarded objects. kubectl looks for it on PATH
as ` + CompletionName + `; a link of this name to the plugin does as well.

With the name of a shell, print its script for completing kubectl-plumbline when
it is called by that name, without kubectl.`,
		Example: invocation.Examples(
			"# Install completion beside the plugin", `%s completion > /usr/local/bin/kubectl_complete-plumbline && chmod +x /usr/local/bin/kubectl_complete-plumbline`,
			"# Completion for kubectl-plumbline itself, in bash", "source <(kubectl-plumbline completion bash)"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return invocation.UsageErrorf(cmd, "name one shell at most")
			}
			if len(args) == 0 {
				return a.Print(completionScript)
			}
			if !slices.Contains(shells, args[0]) {
				return invocation.UsageErrorf(cmd, "unsupported shell type %q, want one of %s", args[0], strings.Join(shells, ", "))
			}
			return a.shellCompletion(cmd, args[0])
		},
	}
}

func (a *app) shellCompletion(cmd *cobra.Command, shell string) error {
	root := cmd.Root()
	// The shell knows the executable's name, not the one kubectl gives it.
	delete(root.Annotations, cobra.CommandDisplayNameAnnotation)
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(a.Out, true)
	case "zsh":
		return root.GenZshCompletion(a.Out)
	case "fish":
		return root.GenFishCompletion(a.Out, true)
	default:
		return root.GenPowerShellCompletionWithDesc(a.Out)
	}
}
