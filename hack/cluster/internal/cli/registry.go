// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/registry"
)

func (g *globals) registryCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:   "registry",
		Short: "Serve a registry in memory, until interrupted, to a cluster started with --host-registry",
		Example: "  cluster up --name other --host-registry 5001\n" +
			"  cluster registry --name other &\n" +
			"  make demo CLUSTER=current REGISTRY=localhost:5001",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			manager, err := g.manager(command)
			if err != nil {
				return err
			}
			record, err := manager.Read(name)
			if err != nil {
				return err
			}
			if record.Options.HostRegistry == 0 {
				return fmt.Errorf("cluster %s pulls from no registry of this machine: bring it up with --host-registry PORT", name)
			}
			inside := record.HostRegistryAddress()
			// One address to push to, one to pull from; nobody else can reach it.
			loopback := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), inside.Port())
			server, err := registry.Listen(command.Context(), []netip.AddrPort{loopback, inside})
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), record.Options.HostRegistryName())
			return server.Serve(command.Context())
		},
	}
	nameFlag(command, &name)
	return command
}
