// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	osexec "os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	door "github.com/plumbline-dev/plumbline/internal/console"
	"github.com/plumbline-dev/plumbline/internal/console/pages"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// app carries out the command with an invocation.
type app struct{ *invocation.Invocation }

type options struct {
	port      int
	noBrowser bool
	system    string
}

// Command returns the command "console".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o options
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the console and the REST API on this machine, with your kubeconfig",
		Long: `Serve the console and the REST API on 127.0.0.1 with your own kubeconfig until you end the command.
The command installs no object in the cluster. The API server sees you, so you read and
write as much as with kubectl.

The address has a random key. Open it once, and your browser keeps the key in a cookie.
Requests without the key are refused.`,
		Example: invocation.Examples(
			"# Serve on any free port, and open a browser", "%s console",
			"# Serve on a port of your choice, and print the address alone", "%s console --port 8090 --no-browser"),
		Args: invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.port < 0 || o.port > 65535 {
				return invocation.UsageErrorf(cmd, "--port must be 0 to 65535, not %d", o.port)
			}
			return a.console(cmd.Context(), o)
		},
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "Port of 127.0.0.1. 0 takes a free one.")
	invocation.AddSystemFlag(cmd, &o.system)
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "If true, print the address and open no browser.")
	return cmd
}

// kubeconfig is the cluster as the user of the kubeconfig reads and writes it.
type kubeconfig struct {
	*invocation.Cluster
	// system is the namespace in which Plumbline runs; empty for the one of its ledgers.
	system string
	now    func() time.Time
}

// Whoami asks the API server for the name and the groups of the user.
func (k kubeconfig) Whoami(ctx context.Context) (authenticationv1.UserInfo, error) {
	return actions.AskIdentity(ctx, k)
}

// Allows asks the API server whether the user has a right.
func (k kubeconfig) Allows(ctx context.Context, right *authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: right}}
	if err := k.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking for the right to %s %s: %w", right.Verb, right.Resource, err)
	}
	return review.Status.Allowed, nil
}

// DryRuns sends dry runs as the user.
func (k kubeconfig) DryRuns() exec.Targets { return k.Targets }

// System returns the namespace in which Plumbline runs. A page names the right to list ledgers to a user who lacks it.
func (k kubeconfig) System(ctx context.Context) (string, error) {
	if k.system != "" {
		return k.system, nil
	}
	return actions.FindSystemOfLedgers(ctx, k)
}

// Proxy sends a GET to a port of a pod as the user, by way of the API server.
func (k kubeconfig) Proxy(ctx context.Context, target portforward.Target, path string, query map[string]string) ([]byte, error) {
	return k.Cluster.Proxy(ctx, target, path, query)
}

// Forward makes a client of a port of a pod that acts as the user.
func (k kubeconfig) Forward(_ context.Context, target portforward.Target) *http.Client {
	return k.Cluster.Forward(target)
}

// Now is the time of the API server.
func (k kubeconfig) Now() time.Time { return k.now() }

func (a *app) console(ctx context.Context, o options) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.ErrOut, nil))
	cluster := kubeconfig{c, o.system, func() time.Time { return a.ServerTime(c) }}
	api := httpapi.New(cluster, a.Version, log)
	defer context.AfterFunc(ctx, api.End)()
	shown := pages.New(pages.Cluster{Cluster: cluster, Mapper: c.Mapper, Live: c.Live, Allows: cluster.Allows}, api, log)
	listener, d, err := door.Listen(ctx, o.port)
	if err != nil {
		return err
	}
	if err := a.Print("Serving on " + d.URL() + "\n"); err != nil {
		return err
	}
	if !o.noBrowser {
		if err := open(ctx, d.URL()); err != nil {
			a.Warn("no browser was opened: %v", err)
		}
	}
	return httpapi.Serve(ctx, listener, d.Guard(shown), door.LastAnswers, log)
}

// open has the system show an address. It does not wait: some systems return when the browser ends.
func open(ctx context.Context, address string) error {
	program, arguments := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, arguments = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	cmd := osexec.CommandContext(ctx, program, arguments...) //nolint:gosec // the address is that of the door
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // so that no zombie is left
	return nil
}
