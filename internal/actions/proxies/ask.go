// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// patience is how long one replica may take to tell of all its proxies.
const patience = 30 * time.Second

// Forward makes a client of a port of a pod.
type Forward func(portforward.Target) *http.Client

// NoServerError says that no discovery server runs that could be asked.
type NoServerError struct{ System string }

func (e *NoServerError) Error() string {
	return fmt.Sprintf("no discovery server runs in %s that could be asked: is the mesh turned on (mesh.enabled of the chart)?", e.System)
}

// Server is a replica of the discovery server that can be asked.
type Server struct {
	Name   string
	client proxieshttp.Client
}

// FindServers returns the replicas of the discovery server that run, in the order of their names. The error is a
// *NoServerError without any.
func FindServers(ctx context.Context, c client.Reader, forward Forward, system string) ([]Server, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "xds"}); err != nil {
		return nil, fmt.Errorf("looking for the discovery server: %w", err)
	}
	var servers []Server
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		servers = append(servers, Server{pod.Name, proxieshttp.Client{
			HTTP: forward(portforward.Target{Namespace: system, Pod: pod.Name, Port: proxieshttp.Port}),
		}})
	}
	if len(servers) == 0 {
		return nil, &NoServerError{System: system}
	}
	slices.SortFunc(servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return servers, nil
}

// List asks every replica for the proxies that a filter selects.
func List(ctx context.Context, servers []Server, filter Filter) *Report {
	return askAll(ctx, servers, func(ctx context.Context, replica proxieshttp.Client) (proxieshttp.List, error) {
		return replica.List(ctx, filter)
	})
}

// Get asks every replica for the proxy of a pod, with all its resources that a filter selects.
func Get(ctx context.Context, servers []Server, namespace, pod string, filter Filter) *Report {
	return askAll(ctx, servers, func(ctx context.Context, replica proxieshttp.Client) (proxieshttp.List, error) {
		list, _, err := replica.Proxy(ctx, namespace, pod, filter)
		return list, err
	})
}

// askAll asks every replica at once, and notes the replicas that do not answer.
func askAll(ctx context.Context, servers []Server, ask func(context.Context, proxieshttp.Client) (proxieshttp.List, error)) *Report {
	lists := make([]proxieshttp.List, len(servers))
	errs := make([]error, len(servers))
	var asked sync.WaitGroup
	for i := range servers {
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			lists[i], errs[i] = ask(ctx, servers[i].client)
		})
	}
	asked.Wait()
	report := &Report{Replicas: []Replica{}, Proxies: []Proxy{}}
	for i := range servers {
		if errs[i] != nil {
			report.Replicas = append(report.Replicas, Replica{Name: servers[i].Name, Error: errs[i].Error(), err: errs[i]})
			continue // a part of its proxies would look like all of them
		}
		report.Replicas = append(report.Replicas, Replica{Name: servers[i].Name, Answered: true})
		for j := range lists[i].Proxies {
			report.Proxies = append(report.Proxies, newProxy(servers[i].Name, &lists[i].Proxies[j]))
		}
	}
	return report
}

// ListInjected lists the pods that have a proxy, of all namespaces where none is named.
func ListInjected(ctx context.Context, c client.Reader, namespace string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{inject.LabelProxy}); err != nil {
		return nil, fmt.Errorf("listing injected pods: %w", err)
	}
	return pods.Items, nil
}
