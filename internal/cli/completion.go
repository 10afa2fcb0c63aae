// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// CompletionName is the executable that kubectl asks for completions of the
// plugin. The plugin answers when it is started by this name.
const CompletionName = "kubectl_complete-plumbline"

const completionScript = `#!/bin/sh
# kubectl runs this to complete "kubectl plumbline ...".
# Save it as ` + CompletionName + ` somewhere on PATH and make it executable.
exec kubectl plumbline __complete "$@"
`

// completionPatience bounds how long a press of Tab may take.
const completionPatience = 3 * time.Second

var shells = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion [bash|zsh|fish|powershell]",
		Short: "Print what completion of kubectl plumbline needs",
		Long: `Print the script by which kubectl completes "kubectl plumbline ...": commands,
flags, and the types and names of guarded objects. kubectl looks for it on PATH
as ` + CompletionName + `; a link of this name to the plugin does as well.

With the name of a shell, print its script for completing kubectl-plumbline when
it is called by that name, without kubectl.`,
		Example: examples(
			"# Install completion beside the plugin", `%s completion > /usr/local/bin/kubectl_complete-plumbline && chmod +x /usr/local/bin/kubectl_complete-plumbline`,
			"# Completion for kubectl-plumbline itself, in bash", "source <(kubectl-plumbline completion bash)"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageErrorf(cmd, "name one shell at most")
			}
			if len(args) == 0 {
				return a.print(completionScript)
			}
			if !slices.Contains(shells, args[0]) {
				return usageErrorf(cmd, "unsupported shell type %q, want one of %s", args[0], strings.Join(shells, ", "))
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

// completeObject completes TYPE/NAME and TYPE NAME from the Baselines of the
// namespace: only guarded objects have anything to show.
func (a *app) completeObject() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		c, err := a.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := &v1alpha1.BaselineList{}
		if err := c.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		kind, _, slash := strings.Cut(typed, "/")
		switch {
		case slash:
			return c.completeNames(list.Items, kind, kind+"/", typed), cobra.ShellCompDirectiveNoFileComp
		case len(args) > 0 && !strings.Contains(args[0], "/"):
			return c.completeNames(list.Items, args[0], "", typed), cobra.ShellCompDirectiveNoFileComp
		default:
			return completeTypes(list.Items, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
	}
}

func completeTypes(baselines []v1alpha1.Baseline, typed string) []cobra.Completion {
	var types []cobra.Completion
	for i := range baselines {
		kind := strings.ToLower(baselines[i].Spec.Target.Kind) + "/"
		if strings.HasPrefix(kind, typed) && !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	slices.Sort(types)
	return types
}

func (c *cluster) completeNames(baselines []v1alpha1.Baseline, kind, prefix, typed string) []cobra.Completion {
	wanted := schema.GroupKind{Kind: kind}
	if mapping, err := c.lookUpType(kind); err == nil {
		wanted = mapping.GroupVersionKind.GroupKind()
	}
	var names []cobra.Completion
	for i := range baselines {
		b := &baselines[i]
		if name := prefix + b.Spec.Target.Name; targetKind(b).GroupKind() == wanted && strings.HasPrefix(name, typed) {
			names = append(names, cobra.CompletionWithDesc(name, stateWords(b)))
		}
	}
	slices.Sort(names)
	return names
}

// registerFlagCompletions covers the connection flags a person types by hand.
func (a *app) registerFlagCompletions(root *cobra.Command) {
	mustComplete(root, "namespace", a.completeNamespaces)
	mustComplete(root, "context", a.completeContexts)
}

func (a *app) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	c, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list := &corev1.NamespaceList{}
	if err := c.List(ctx, list); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, typed) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeContexts(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, err := a.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for name := range config.Contexts {
		if strings.HasPrefix(name, typed) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completeValues(cmd *cobra.Command, flag string, values ...string) {
	mustComplete(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// mustComplete panics on a flag that does not exist: the tree is built the same
// way in every run, so any test finds that.
func mustComplete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(fmt.Sprintf("completing --%s of %s: %v", flag, cmd.Name(), err))
	}
}

func mustMarkFilename(cmd *cobra.Command, flag string, extensions ...string) {
	if err := cmd.MarkFlagFilename(flag, extensions...); err != nil {
		panic(fmt.Sprintf("completing --%s of %s: %v", flag, cmd.Name(), err))
	}
}
