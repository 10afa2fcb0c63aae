// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/rights"
)

// Processes are those of Plumbline. The server finds them and reads the facts about their records with its own account, after
// the API server has granted the caller each of these reads.
type Processes struct {
	// Namespace in which they run.
	Namespace string
	// Reader reads pods and ConfigMaps of the namespace.
	Reader client.Reader
	// HTTP sends requests to ports of pods.
	HTTP *http.Client
}

// has tells whether the objects of a kind in a namespace are the processes.
func (p *Processes) has(k kind, namespace string) bool {
	return p.Namespace != "" && namespace == p.Namespace && k.resource == (schema.GroupResource{Resource: "pods"})
}

// keeps tells whether an object is one in which the processes keep keys of records and ends of chains.
func (p *Processes) keeps(k kind, namespace, name string) bool {
	return p.Namespace != "" && namespace == p.Namespace && k.resource == (schema.GroupResource{Resource: "configmaps"}) &&
		(name == records.KeysConfigMap || name == records.AnchorConfigMap)
}

// listProcesses lists pods of Plumbline for a caller who may list them.
func (c *Cluster) listProcesses(ctx context.Context, caller *callers.Caller, k kind, list client.ObjectList, asked *client.ListOptions) error {
	right := rights.Right{Verb: "list", Resource: k.resource, Namespace: asked.Namespace}
	allowed, err := c.allows(ctx, caller, right)
	switch {
	case err != nil:
		return err
	case !allowed:
		return forbidden(caller, right, "")
	}
	return c.config.Processes.Reader.List(ctx, list, asked)
}

// System implements [httpapi.Processes].
func (c *Cluster) System(context.Context) (string, error) { return c.config.Processes.Namespace, nil }

// Proxy implements [httpapi.Processes] for callers who may reach the port through the API server. The server asks the port itself, which
// knows no callers.
func (c *Cluster) Proxy(ctx context.Context, target portforward.Target, path string, query map[string]string) ([]byte, error) {
	caller, err := identified(ctx)
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(target.Port)
	right := rights.Right{Verb: "get", Resource: schema.GroupResource{Resource: "pods/proxy"}, Namespace: target.Namespace, Name: target.Pod + ":" + port}
	allowed, err := c.allows(ctx, caller, right)
	switch {
	case err != nil:
		return nil, err
	case !allowed:
		return nil, forbidden(caller, right, target.Pod)
	case target.Address == "":
		return nil, fmt.Errorf("reaching pod %s: it has no address yet", target.Pod)
	}
	return evidencehttp.Reach(c.config.Processes.HTTP, net.JoinHostPort(target.Address, port))(ctx, path, query)
}

// Forward implements [httpapi.Processes] with the token of the caller: the port is at loopback addresses of the pod, so the way
// to it is the API server's forwarding of ports.
func (c *Cluster) Forward(ctx context.Context, target portforward.Target) *http.Client {
	token, err := tokenOf(ctx)
	if err != nil {
		return &http.Client{Transport: refusing{&portforward.DeniedError{Target: target, Cause: err}}}
	}
	return portforward.NewClient(c.as.upgrading(token), target)
}

// refusing sends no request.
type refusing struct{ err error }

// RoundTrip implements http.RoundTripper.
func (r refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.err }
