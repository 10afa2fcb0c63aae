// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/preflight"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/sandbox"
)

// globals are the flags that every subcommand shares.
type globals struct {
	cache      string // built components
	state      string // one folder per cluster; disposable
	components string // source of the components; "" means: search
}

// Run executes one command line and returns the process's exit status. Errors
// are printed to errOut, once.
func Run(ctx context.Context, arguments []string, out, errOut io.Writer) int {
	if slices.Equal(arguments, []string{sandbox.InitCommand}) {
		// Not a command for people, and it has no environment to take defaults from.
		fmt.Fprintf(errOut, "cluster: %v\n", sandbox.Init(os.Stdin))
		return 1
	}
	if slices.Equal(arguments, []string{preflight.ProbeCommand}) {
		return preflight.Probe(out)
	}
	root, err := newRoot() //nolint:contextcheck // cobra hands the context to each command
	if err == nil {
		root.SetArgs(arguments)
		root.SetOut(out)
		root.SetErr(errOut)
		err = root.ExecuteContext(ctx)
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintf(errOut, "cluster: interrupted: %v\n", err)
		return interruptedStatus
	default:
		fmt.Fprintf(errOut, "cluster: %v\n", err)
		return 1
	}
}

// interruptedStatus is what a shell reports for a command ended by ctrl-C.
const interruptedStatus = 128 + int(syscall.SIGINT)

func newRoot() (*cobra.Command, error) {
	cache, err := defaultCache(os.Getenv, os.UserHomeDir)
	if err != nil {
		return nil, err
	}
	g := &globals{}
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A real Kubernetes on this machine, without Docker",
		SilenceUsage:  true, // an error at run time is not a question about flags
		SilenceErrors: true, // Run prints it
	}
	flags := root.PersistentFlags()
	flags.StringVar(&g.cache, "cache", cache, "folder for built programs (default from PLUMBLINE_CACHE or XDG_CACHE_HOME)")
	flags.StringVar(&g.state, "state", filepath.Join(cache, "clusters"), "folder for the state of clusters; disposable")
	flags.StringVar(&g.components, "components", os.Getenv("PLUMBLINE_COMPONENTS"), "folder hack/cluster/components; found from the working folder when empty")
	root.AddCommand(
		g.preflightCommand(), g.buildCommand(), g.assetsCommand(), g.binCommand(), g.whichCommand(),
		g.upCommand(), g.downCommand(), g.listCommand(), g.kubeconfigCommand(), g.execCommand(), g.loadCommand(),
		g.registryCommand(), g.imageCommand(),
	)
	return root, nil
}

// defaultCache follows the XDG base directory specification, below a folder of
// our own; PLUMBLINE_CACHE moves it as a whole, for example to a scratch disk.
func defaultCache(getenv func(string) string, home func() (string, error)) (string, error) {
	if folder := getenv("PLUMBLINE_CACHE"); folder != "" {
		return filepath.Abs(folder)
	}
	if folder := getenv("XDG_CACHE_HOME"); folder != "" {
		return filepath.Join(folder, "plumbline"), nil
	}
	folder, err := home()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder (set PLUMBLINE_CACHE): %w", err)
	}
	return filepath.Join(folder, ".cache", "plumbline"), nil
}

// componentsFolder is the folder of the components' modules: the one given, or
// the first found in the working folder and its parents, then beside the
// executable. The sources cannot be embedded: go:embed stops at module borders.
func (g *globals) componentsFolder() (string, error) {
	if g.components != "" {
		return filepath.Abs(g.components)
	}
	var starts []string
	if folder, err := os.Getwd(); err == nil {
		starts = append(starts, folder)
	}
	if executable, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(executable))
	}
	for _, start := range starts {
		if folder, found := searchUpwards(start); found {
			return folder, nil
		}
	}
	return "", fmt.Errorf("no hack/cluster/components in %v or above: run inside the repository or give --components", starts)
}

func searchUpwards(folder string) (string, bool) {
	for {
		for _, relative := range []string{"components", "hack/cluster/components"} {
			candidate := filepath.Join(folder, relative)
			if _, err := os.Stat(filepath.Join(candidate, "kubernetes", "go.mod")); err == nil {
				return candidate, true
			}
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", false
		}
		folder = parent
	}
}
