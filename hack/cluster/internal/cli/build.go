// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

func (g *globals) buildCommand() *cobra.Command {
	only := string(component.SetAll)
	command := &cobra.Command{
		Use:   "build",
		Short: "Compile the cluster's programs, and fetch the proxies, into the cache",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			components, err := component.Of(component.Set(only))
			if err != nil {
				return err
			}
			folders, err := g.ensure(command, components)
			if err != nil {
				return err
			}
			for _, c := range components {
				fmt.Fprintln(command.OutOrStdout(), folders[c.Name])
			}
			return nil
		},
	}
	command.Flags().StringVar(&only, "only", only, fmt.Sprintf("what to build: one of %v", component.Sets()))
	return command
}

func (g *globals) assetsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Print the folder for KUBEBUILDER_ASSETS: etcd, kube-apiserver, kubectl",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			folder, err := g.ensureOne(command, component.Kubernetes)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), folder)
			return nil
		},
	}
}

func (g *globals) binCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "bin",
		Short:   "Print the folders of kubectl, helm and ctr, to be put into PATH",
		Example: "  PATH=\"$(cluster bin):$PATH\" helm version",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			names := []string{component.Kubernetes, component.Helm, component.Containerd}
			folders, err := g.ensure(command, component.Pick(names...))
			if err != nil {
				return err
			}
			path := make([]string, 0, len(names))
			for _, name := range names {
				path = append(path, folders[name])
			}
			fmt.Fprintln(command.OutOrStdout(), strings.Join(path, string(filepath.ListSeparator)))
			return nil
		},
	}
}

func (g *globals) whichCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "which PROGRAM",
		Short:   "Print the path of a program such as kubectl, helm, ctr or envoy",
		Example: "  $(cluster which helm) version",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			provider, known := component.Providing(arguments[0])
			if !known {
				return fmt.Errorf("no component has a program named %q", arguments[0])
			}
			folder, err := g.ensureOne(command, provider.Name)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), filepath.Join(folder, arguments[0]))
			return nil
		},
	}
}

func (g *globals) ensureOne(command *cobra.Command, name string) (string, error) {
	folders, err := g.ensure(command, component.Pick(name))
	return folders[name], err
}

func (g *globals) ensure(command *cobra.Command, components []component.Component) (map[string]string, error) {
	tools, err := g.builder(command)
	if err != nil {
		return nil, err
	}
	if err := installPip(command.Context(), tools, components); err != nil {
		return nil, err
	}
	return tools.Ensure(command.Context(), components)
}

func (g *globals) builder(command *cobra.Command) (builder.Builder, error) {
	components, err := g.componentsFolder()
	if err != nil {
		return builder.Builder{}, err
	}
	return builder.Builder{Components: components, Cache: g.cache, Progress: command.ErrOrStderr()}, nil
}
