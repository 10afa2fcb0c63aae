// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// CompletePlan completes the names of plans in the namespace.
func CompletePlan(inv *invocation.Invocation) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), invocation.CompletionPatience)
		defer cancel()
		c, err := inv.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		plans, err := ListPlans(ctx, c, client.InNamespace(c.Namespace))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		wording.SortPlans(plans)
		var names []cobra.Completion
		for i := range plans {
			if strings.HasPrefix(plans[i].Name, typed) {
				names = append(names, cobra.CompletionWithDesc(plans[i].Name, wording.DescribePhase(&plans[i])))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// CompletePolicy completes the names of policies, as argument or as flag.
func CompletePolicy(inv *invocation.Invocation) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !cmd.HasParent() {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := &v1alpha1.RemediationPolicyList{}
		return inv.CompleteFrom(cmd, list, typed, func() []cobra.Completion {
			var names []cobra.Completion
			for i := range list.Items {
				names = append(names, cobra.CompletionWithDesc(list.Items[i].Name, string(actions.ModeOf(&list.Items[i]))))
			}
			return names
		})
	}
}

// CompleteEnvironment completes the names of Environments.
func CompleteEnvironment(inv *invocation.Invocation) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		list := &v1alpha1.EnvironmentList{}
		return inv.CompleteFrom(cmd, list, typed, func() []cobra.Completion {
			var names []cobra.Completion
			for i := range list.Items {
				names = append(names, cobra.CompletionWithDesc(list.Items[i].Name, string(list.Items[i].Spec.Criticality)))
			}
			return names
		})
	}
}
