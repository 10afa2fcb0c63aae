// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// completeProxy completes the names of injected pods.
func (a *app) completeProxy(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), invocation.CompletionPatience)
	defer cancel()
	c, err := a.Connect()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	pods, err := proxies.ListInjected(ctx, c, c.Namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for i := range pods {
		if strings.HasPrefix(pods[i].Name, typed) {
			names = append(names, pods[i].Name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeManagedServices completes the Services that proxies get routes for.
func (a *app) completeManagedServices(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), invocation.CompletionPatience)
	defer cancel()
	c, err := a.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var services corev1.ServiceList
	if err := c.List(ctx, &services, client.InNamespace(c.Namespace), client.MatchingLabels{ir.Managed: "true"}); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for i := range services.Items {
		if strings.HasPrefix(services.Items[i].Name, typed) {
			names = append(names, services.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}
