// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// CompleteObject completes TYPE/NAME and TYPE NAME from the Baselines of the
// namespace: only guarded objects have anything to show.
func CompleteObject(inv *invocation.Invocation) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), invocation.CompletionPatience)
		defer cancel()
		c, err := inv.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := &v1alpha1.BaselineList{}
		if err := c.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		kind, _, slash := strings.Cut(typed, "/")
		switch {
		case slash:
			return completeNames(c, list.Items, kind, kind+"/", typed), cobra.ShellCompDirectiveNoFileComp
		case len(args) > 0 && !strings.Contains(args[0], "/"):
			return completeNames(c, list.Items, args[0], "", typed), cobra.ShellCompDirectiveNoFileComp
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

func completeNames(c *invocation.Cluster, baselines []v1alpha1.Baseline, kind, prefix, typed string) []cobra.Completion {
	wanted := schema.GroupKind{Kind: kind}
	if mapping, err := lookUpType(c, kind); err == nil {
		wanted = mapping.GroupVersionKind.GroupKind()
	}
	var names []cobra.Completion
	for i := range baselines {
		b := &baselines[i]
		if name := prefix + b.Spec.Target.Name; wording.KindOf(b).GroupKind() == wanted && strings.HasPrefix(name, typed) {
			names = append(names, cobra.CompletionWithDesc(name, wording.DescribeState(b)))
		}
	}
	slices.Sort(names)
	return names
}
