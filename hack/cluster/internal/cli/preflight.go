// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
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
	missing, err := tools.Missing(lifecycle.Needed(nodes))
	if err != nil {
		return err
	}
	need := preflight.Need{Node: nodes > 0, Build: len(missing) > 0}
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
