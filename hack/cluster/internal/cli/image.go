// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/hack/cluster/image"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

func (g *globals) imageCommand() *cobra.Command {
	command := &cobra.Command{Use: "image", Short: "Build container images without Docker, and push them"}
	command.AddCommand(imageBuildCommand(), imageRedisCommand(), g.imageEnvoyCommand(), imagePushCommand(), imageCheckPushCommand())
	return command
}

func imageBuildCommand() *cobra.Command {
	var (
		name, binary, source, tag, out string
		extra                          []string
	)
	command := &cobra.Command{
		Use:   "build",
		Short: "Make an image of one static binary, which runs as a user that is not root",
		Example: "  cluster image build --name webhook --binary bin/webhook --tag docker.io/plumbline/webhook:dev --out webhook.tar\n" +
			"  cluster image build --name shop --package ./hack/images/shop --tag docker.io/plumbline/shop:v1 --out shop.tar",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			entries := make([]image.Entry, 0, len(extra))
			for _, text := range extra {
				entry, err := image.ParseExtra(text)
				if err != nil {
					return err
				}
				entries = append(entries, entry)
			}
			if source != "" {
				compiled, remove, err := compileStatic(command.Context(), command.ErrOrStderr(), name, source)
				if err != nil {
					return err
				}
				defer remove()
				binary = compiled
			}
			if err := image.CheckStatic(binary); err != nil {
				return err
			}
			return writeImage(command, image.Static(name, binary, tag, entries), out)
		},
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "", "name of the program in the image")
	flags.StringVar(&binary, "binary", "", "static binary to put into the image")
	flags.StringVar(&source, "package", "", "Go package to compile instead, as given to go build")
	flags.StringArrayVar(&extra, "file", nil, "further file, SOURCE:PATH; repeatable")
	imageFlags(command, &tag, &out)
	required(command, "name")
	command.MarkFlagsOneRequired("binary", "package")
	command.MarkFlagsMutuallyExclusive("binary", "package")
	return command
}

// compileStatic compiles the package so that equal source gives equal bytes: no
// paths, no build identifier, no C.
func compileStatic(ctx context.Context, progress io.Writer, name, source string) (binary string, remove func(), err error) {
	folder, err := os.MkdirTemp("", "plumbline-image-")
	if err != nil {
		return "", nil, fmt.Errorf("creating a folder for the binary: %w", err)
	}
	remove = func() { _ = os.RemoveAll(folder) }
	binary = filepath.Join(folder, name)
	command := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-buildvcs=false", component.WithoutDebugInformation, "-ldflags=-s -w -buildid=", "-o", binary, source)
	command.Env = append(os.Environ(), component.BuildEnvironment(builder.HostTarget())...)
	if err := builder.RunReported(command, progress, "building "+name, builder.ReportEvery); err != nil {
		remove()
		return "", nil, fmt.Errorf("building %s: %w", source, err)
	}
	return binary, remove, nil
}

func imageRedisCommand() *cobra.Command {
	var tag, out string
	command := &cobra.Command{
		Use:   "redis",
		Short: "Make an image of this machine's redis-server (Debian package redis-server)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			libraries, err := image.Libraries(command.Context(), image.RedisPrograms())
			if err != nil {
				return err
			}
			return writeImage(command, image.Redis(tag, libraries), out)
		},
	}
	imageFlags(command, &tag, &out)
	return command
}

func (g *globals) imageEnvoyCommand() *cobra.Command {
	var tag, out string
	command := &cobra.Command{
		Use:   "envoy",
		Short: "Make an image of Envoy and the C library of this machine",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			folder, err := g.ensureOne(command, component.Envoy)
			if err != nil {
				return err
			}
			binary := filepath.Join(folder, "envoy")
			libraries, err := image.Libraries(command.Context(), []string{binary})
			if err != nil {
				return err
			}
			return writeImage(command, image.Envoy(tag, binary, libraries), out)
		},
	}
	imageFlags(command, &tag, &out)
	return command
}

func imagePushCommand() *cobra.Command {
	var to image.Destination
	command := &cobra.Command{
		Use:   "push --registry REGISTRY ARCHIVE...",
		Short: "Push image archives to a registry and print the names they have there",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, archives []string) error {
			var problems []error
			for _, archive := range archives {
				reference, err := image.Push(command.Context(), archive, to)
				if err != nil {
					problems = append(problems, err)
					continue
				}
				fmt.Fprintln(command.OutOrStdout(), reference)
			}
			return errors.Join(problems...)
		},
	}
	destinationFlags(command, &to)
	command.Flags().StringVar(&to.TagSuffix, "tag-suffix", "", "text to append to each tag")
	return command
}

func imageCheckPushCommand() *cobra.Command {
	var to image.Destination
	command := &cobra.Command{
		Use:   "check-push --registry REGISTRY IMAGE...",
		Short: "Ask a registry whether images of these full names could be pushed, without pushing",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, images []string) error {
			var problems []error
			for _, name := range images {
				problems = append(problems, image.CheckPush(name, to))
			}
			return errors.Join(problems...)
		},
	}
	destinationFlags(command, &to)
	return command
}

func destinationFlags(command *cobra.Command, to *image.Destination) {
	command.Flags().StringVar(&to.Registry, "registry", "", "host, with an optional path, for example ghcr.io/me")
	command.Flags().BoolVar(&to.PlainHTTP, "plain-http", false, "the registry has no TLS")
	required(command, "registry")
}

func imageFlags(command *cobra.Command, tag, out *string) {
	command.Flags().StringVar(tag, "tag", "", "full name of the image, for example docker.io/plumbline/webhook:dev")
	command.Flags().StringVar(out, "out", "", "docker-archive file to write")
	required(command, "tag")
	required(command, "out")
}

func required(command *cobra.Command, flag string) {
	if err := command.MarkFlagRequired(flag); err != nil {
		panic(err) // the flag is defined a few lines above
	}
}

func writeImage(command *cobra.Command, spec image.Spec, out string) error {
	digest, err := image.WriteArchive(spec, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(command.OutOrStdout(), "%s %s\n", spec.Tag, digest)
	return nil
}
