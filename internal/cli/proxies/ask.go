// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// replicaPatience is how long one replica may take to tell of all its proxies.
const replicaPatience = 30 * time.Second

// discoveryServer is a replica that can be asked.
type discoveryServer struct {
	name   string
	client proxieshttp.Client
}

// discoveryServers are the replicas that run.
func discoveryServers(ctx context.Context, c *invocation.Cluster, system string) ([]discoveryServer, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "xds"}); err != nil {
		return nil, fmt.Errorf("looking for the discovery server: %w", err)
	}
	var servers []discoveryServer
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		servers = append(servers, discoveryServer{pod.Name, proxieshttp.Client{
			HTTP: c.Forward(portforward.Target{Namespace: system, Pod: pod.Name, Port: proxieshttp.Port}),
		}})
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("no discovery server runs in %s that could be asked: is the mesh turned on (mesh.enabled of the chart)? --system-namespace names another place", system)
	}
	slices.SortFunc(servers, func(a, b discoveryServer) int { return strings.Compare(a.name, b.name) })
	return servers, nil
}

// askAll asks every replica at once, and notes who does not answer.
func askAll(ctx context.Context, servers []discoveryServer, ask func(context.Context, proxieshttp.Client) (proxieshttp.List, error)) *listReport {
	lists := make([]proxieshttp.List, len(servers))
	errs := make([]error, len(servers))
	var asked sync.WaitGroup
	for i := range servers {
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, replicaPatience)
			defer cancel()
			lists[i], errs[i] = ask(ctx, servers[i].client)
		})
	}
	asked.Wait()
	report := &listReport{Replicas: []replicaReport{}, Proxies: []proxyReport{}}
	for i := range servers {
		if errs[i] != nil {
			report.Replicas = append(report.Replicas, replicaReport{Name: servers[i].name, Error: errs[i].Error()})
			continue // a part of its proxies would look like all of them
		}
		report.Replicas = append(report.Replicas, replicaReport{Name: servers[i].name, Answered: true})
		for j := range lists[i].Proxies {
			report.Proxies = append(report.Proxies, newProxyReport(servers[i].name, &lists[i].Proxies[j]))
		}
	}
	return report
}

// addAbsent adds the injected pods that run and that nobody has told of.
func (r *listReport) addAbsent(pods []corev1.Pod) {
	type name struct{ namespace, pod string }
	known := map[name]bool{}
	for i := range r.Proxies {
		known[name{r.Proxies[i].Namespace, r.Proxies[i].Pod}] = true
	}
	stage := stageNotConnected
	if r.silent() != nil {
		stage = stageUnknown
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || known[name{pod.Namespace, pod.Name}] {
			continue
		}
		r.Proxies = append(r.Proxies, proxyReport{Stage: stage, Proxy: proxieshttp.Proxy{
			Namespace: pod.Namespace, Pod: pod.Name, PodUID: string(pod.UID), ServiceAccount: pod.Spec.ServiceAccountName, Stages: map[ads.Stage]int{},
		}})
	}
}

func injectedPods(ctx context.Context, c *invocation.Cluster, namespace string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{inject.LabelProxy}); err != nil {
		return nil, fmt.Errorf("listing injected pods: %w", err)
	}
	return pods.Items, nil
}

// completeProxy completes the names of injected pods.
func (a *app) completeProxy(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), invocation.CompletionPatience)
	defer cancel()
	c, err := a.Connect()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	pods, err := injectedPods(ctx, c, c.Namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for i := range pods {
		if strings.HasPrefix(pods[i].Name, typed) {
			names = append(names, pods[i].Name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeManagedServices completes the Services that proxies get routes for.
func (a *app) completeManagedServices(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), invocation.CompletionPatience)
	defer cancel()
	c, err := a.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var services corev1.ServiceList
	if err := c.List(ctx, &services, client.InNamespace(c.Namespace), client.MatchingLabels{ir.Managed: "true"}); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for i := range services.Items {
		if strings.HasPrefix(services.Items[i].Name, typed) {
			names = append(names, services.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}
