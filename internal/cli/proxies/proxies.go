// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

type options struct {
	allNamespaces, noHeaders       bool
	service, stage, system, output string
}

// Command returns the command "proxies".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	o := &options{}
	cmd := &cobra.Command{
		Use:   "proxies [POD]",
		Short: "Show the resources that each proxy was sent, has acknowledged, rejects and waits for",
		Long: `Show the proxies of injected pods, worst first: how many of its resources each has
acknowledged, which it rejects, and which are withheld or on the way. With the name
of a pod, the command shows all its resources: the version of the proxy, the version
that it should have, and the cause of a difference.

The command asks every replica of the discovery server, as ` + "`kubectl port-forward`" + ` would
reach it, and that takes the permission to create pods/portforward. It names a replica
that does not answer, and the exit code is 1: proxies that no other replica
knows are Unknown then. Otherwise an injected pod that runs and that no replica
knows is NotConnected; it keeps its configuration.`,
		Example: invocation.Examples(
			"# Of the namespace; of all, with replica and version of Envoy", "%s proxies\n  kubectl plumbline proxies -A -o wide",
			"# Which ones refuse something", "%s proxies -A --stage Refused",
			"# How far one Service is", "%s proxies -n shop --service web",
			"# Show the resources of one proxy, and those that it waits for", "%s proxies web-7d4b9-x2x9k"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.showProxies(cmd, args, o) },
		ValidArgsFunction: a.completeProxy,
	}
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml", "wide")
	invocation.AddNoHeadersFlag(cmd, &o.noHeaders)
	invocation.AddSystemFlag(cmd, &o.system)
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "If present, across all namespaces. The namespace in the current context is ignored even if given with --namespace.")
	flags.StringVar(&o.service, "service", "", "Count and show the resources of this Service alone, [namespace/]name. Listeners are no Service's.")
	flags.StringVar(&o.stage, "stage", "", "Show only proxies that are in this stage, or have a resource in it. One of: ("+joined(proxies.Stages())+").")
	invocation.CompleteValues(cmd, "stage", strings.Split(joined(proxies.Stages()), ", ")...)
	invocation.MustComplete(cmd, "service", a.completeManagedServices)
	return cmd
}

func joined(stages []ads.Stage) string {
	var names []string
	for _, s := range stages {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// check refuses wrong flags before a replica is asked.
func (o *options) check(cmd *cobra.Command, args []string) error {
	if err := invocation.CheckOutput(cmd, o.output, "json", "yaml", "wide"); err != nil {
		return err
	}
	switch {
	case len(args) > 1:
		return invocation.UsageErrorf(cmd, "name one pod at most")
	case len(args) == 1 && o.allNamespaces:
		return invocation.UsageErrorf(cmd, "a resource cannot be retrieved by name across all namespaces")
	case strings.Count(o.service, "/") > 1 || strings.HasSuffix(o.service, "/"):
		return invocation.UsageErrorf(cmd, "invalid --service %q, want [namespace/]name", o.service)
	case o.stage == "":
		return nil
	}
	return o.checkStage(cmd, len(args) == 1)
}

// checkStage takes it in any case of letters; ofResources says that a proxy's resources
// are to be in it.
func (o *options) checkStage(cmd *cobra.Command, ofResources bool) error {
	i := slices.IndexFunc(proxies.Stages(), func(s ads.Stage) bool { return strings.EqualFold(string(s), o.stage) })
	if i < 0 {
		return invocation.UsageErrorf(cmd, "invalid --stage %q, want one of %s", o.stage, joined(proxies.Stages()))
	}
	stage := proxies.Stages()[i]
	switch {
	case o.service != "" && proxies.Absent(stage):
		return invocation.UsageErrorf(cmd, "--service and --stage %s exclude each other: the resources of such a proxy are unknown", stage)
	case ofResources && !slices.Contains(ads.Stages(), stage):
		return invocation.UsageErrorf(cmd, "--stage %s is not a stage of a resource", stage)
	}
	o.stage = string(stage)
	return nil
}

func (a *app) showProxies(cmd *cobra.Command, args []string, o *options) error {
	if err := o.check(cmd, args); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	system, err := c.FindSystemNamespace(cmd.Context(), o.system)
	if err != nil {
		return err
	}
	servers, err := proxies.FindServers(cmd.Context(), c, c.Forward, system)
	if _, is := errors.AsType[*proxies.NoServerError](err); is {
		return fmt.Errorf("%w --system-namespace names another place", err)
	}
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return a.showProxy(cmd.Context(), c, servers, podName(args[0]), o)
	}
	return a.listProxies(cmd.Context(), c, servers, o)
}

// podName takes pod/web for web, as kubectl does.
func podName(arg string) string {
	if kind, name, found := strings.Cut(arg, "/"); found && slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(kind)) {
		return name
	}
	return arg
}

// where says in which namespace it was looked.
func (o *options) where(namespace string) string {
	if o.allNamespaces {
		return ""
	}
	return fmt.Sprintf(" in %s namespace", namespace)
}

func (o *options) namespace(c *invocation.Cluster) string {
	if o.allNamespaces {
		return metav1.NamespaceAll
	}
	return c.Namespace
}
