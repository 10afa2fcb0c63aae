// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/lifecycle"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// defaultName is the cluster that commands mean when no name is given.
const defaultName = "demo"

func (g *globals) upCommand() *cobra.Command {
	var (
		options  plan.Options
		policy   string
		owner    string
		recreate bool
	)
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring a cluster up, or check the one that is",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if policy != "" {
				content, err := os.ReadFile(policy)
				if err != nil {
					return fmt.Errorf("reading the audit policy: %w", err)
				}
				options.Audit, options.AuditPolicy = true, string(content)
			}
			manager, err := g.manager(command)
			if err != nil {
				return err
			}
			if manager.Owner, err = parseOwner(owner); err != nil {
				return err
			}
			record, err := manager.Up(command.Context(), options, recreate)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "export KUBECONFIG=%s\n", record.Layout().Kubeconfig())
			return nil
		},
	}
	flags := command.Flags()
	nameFlag(command, &options.Name)
	flags.IntVar(&options.Nodes, "nodes", 1, "1, or 0 for a control plane only")
	flags.BoolVar(&options.Audit, "audit", false, "write an audit log: who did what, without bodies")
	flags.StringVar(&policy, "audit-policy", "", "file with an audit policy; implies --audit")
	flags.StringArrayVar(&options.APIServerArgs, "apiserver-arg", nil, "extra argument of kube-apiserver, such as --v=4; repeatable")
	flags.Uint16Var(&options.HostRegistry, "host-registry", 0, "port of a registry without TLS on this machine, such as that of \"cluster registry\"; the node pulls from it as localhost:PORT")
	flags.StringVar(&owner, "owner", os.Getenv("PLUMBLINE_OWNER"), "number of a process with which a cluster that is brought up ends (default from PLUMBLINE_OWNER)")
	flags.BoolVar(&recreate, "recreate", false, "replace a running cluster, whatever its state")
	return command
}

// parseOwner reads the number of a process; no text stands for no process.
func parseOwner(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	pid, err := strconv.Atoi(text)
	if err != nil || pid < 1 {
		return 0, fmt.Errorf("--owner %q: want the number of a process", text)
	}
	return pid, nil
}

func (g *globals) downCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:   "down",
		Short: "Take a cluster away, with everything in it",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			manager, err := g.manager(command)
			if err != nil {
				return err
			}
			return manager.Down(command.Context(), name)
		},
	}
	nameFlag(command, &name)
	return command
}

func (g *globals) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List clusters and how they are",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			manager, err := g.manager(command)
			if err != nil {
				return err
			}
			all, err := manager.List(command.Context())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(table, "NAME\tAGE\tSERVER\tSTATE")
			for _, s := range all {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, age(s.Started), cmp.Or(s.Server, "-"), state(s.Problem))
			}
			return table.Flush()
		},
	}
}

func age(started time.Time) string {
	if started.IsZero() {
		return "-"
	}
	return time.Since(started).Round(time.Second).String()
}

// state is the first line of a problem: the rest is the tail of a log.
func state(problem string) string {
	first, _, _ := strings.Cut(problem, "\n")
	if first == "" {
		return "healthy"
	}
	return "broken: " + first
}

func (g *globals) kubeconfigCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			manager, err := g.manager(command)
			if err != nil {
				return err
			}
			record, err := manager.Read(name)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), record.Layout().Kubeconfig())
			return nil
		},
	}
	nameFlag(command, &name)
	return command
}

func (g *globals) loadCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:   "load ARCHIVE...",
		Short: "Load image archives into a cluster's node",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, archives []string) error {
			manager, err := g.manager(command)
			if err != nil {
				return err
			}
			return manager.Load(command.Context(), name, archives)
		},
	}
	nameFlag(command, &name)
	return command
}

func (g *globals) execCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:     "exec -- COMMAND [ARGUMENT...]",
		Short:   "Run a command inside a cluster's namespaces",
		Example: "  cluster exec --name demo -- iptables -t nat -S",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			manager, err := g.manager(command)
			if err != nil {
				return err
			}
			record, enter, err := manager.EnterArgs(name, arguments)
			if err != nil {
				return err
			}
			return replaceProcess(record, enter)
		},
	}
	nameFlag(command, &name)
	return command
}

// replaceProcess becomes nsenter, so that signals, the terminal and the exit
// status are those of the command.
func replaceProcess(record lifecycle.Record, enter []string) error {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return errors.New("nsenter is not installed (Debian package util-linux)")
	}
	environment := append(os.Environ(), "PATH="+record.SearchPath(), "KUBECONFIG="+record.Layout().Kubeconfig())
	return syscall.Exec(nsenter, append([]string{"nsenter"}, enter...), environment)
}

func nameFlag(command *cobra.Command, name *string) {
	command.Flags().StringVar(name, "name", defaultName, "name of the cluster")
}

func (g *globals) manager(command *cobra.Command) (lifecycle.Manager, error) {
	tools, err := g.builder(command)
	if err != nil {
		return lifecycle.Manager{}, err
	}
	state, err := filepath.Abs(g.state)
	if err != nil {
		return lifecycle.Manager{}, fmt.Errorf("finding the state folder: %w", err)
	}
	return lifecycle.Manager{
		State: state, Builder: tools, Progress: command.ErrOrStderr(),
		Preflight: func(ctx context.Context, nodes int) error {
			return preflightFor(ctx, tools, nodes, true)
		},
	}, nil
}
