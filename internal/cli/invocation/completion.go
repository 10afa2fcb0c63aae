// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CompletionPatience bounds how long a press of Tab may take.
const CompletionPatience = 3 * time.Second

// registerFlagCompletions covers the connection flags a person types by hand.
func (inv *Invocation) registerFlagCompletions(root *cobra.Command) {
	MustComplete(root, "namespace", inv.completeNamespaces)
	MustComplete(root, "context", inv.completeContexts)
}

func (inv *Invocation) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionPatience)
	defer cancel()
	c, err := inv.Connect()
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

func (inv *Invocation) completeContexts(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	config, err := inv.ConfigFlags.ToRawKubeConfigLoader().RawConfig()
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

// CompleteValues completes a flag by the values that it takes.
func CompleteValues(cmd *cobra.Command, flag string, values ...string) {
	MustComplete(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// MustComplete panics on a flag that does not exist: the tree is built the same
// way in every run, so any test finds that.
func MustComplete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(fmt.Sprintf("completing --%s of %s: %v", flag, cmd.Name(), err))
	}
}

// MustMarkFilename completes a flag by files with one of the extensions. It panics on a flag
// that does not exist, as [MustComplete] does.
func MustMarkFilename(cmd *cobra.Command, flag string, extensions ...string) {
	if err := cmd.MarkFlagFilename(flag, extensions...); err != nil {
		panic(fmt.Sprintf("completing --%s of %s: %v", flag, cmd.Name(), err))
	}
}

// CompleteFrom lists objects of the cluster and offers the names that names gives them.
func (inv *Invocation) CompleteFrom(cmd *cobra.Command, list client.ObjectList, typed string, names func() []cobra.Completion) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionPatience)
	defer cancel()
	c, err := inv.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if err := c.List(ctx, list); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	fitting := slices.DeleteFunc(names(), func(name cobra.Completion) bool { return !strings.HasPrefix(name, typed) })
	slices.Sort(fitting)
	return fitting, cobra.ShellCompDirectiveNoFileComp
}
