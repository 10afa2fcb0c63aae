// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// userAgent names the program in requests of callers.
const userAgent = "plumbline-serve"

// impersonal makes configurations without the server's identity. All but those of forwarded ports share its connections.
type impersonal struct {
	host      string
	transport http.RoundTripper
	nameless  *rest.Config
}

func newImpersonal(server *rest.Config) (impersonal, error) {
	nameless := rest.AnonymousClientConfig(server)
	at, _, err := rest.DefaultServerUrlFor(nameless)
	if err != nil {
		return impersonal{}, fmt.Errorf("finding the API server: %w", err)
	}
	transport, err := rest.TransportFor(nameless)
	if err != nil {
		return impersonal{}, fmt.Errorf("making connections to the API server: %w", err)
	}
	return impersonal{at.String(), transport, nameless}, nil
}

// config returns the configuration of one caller. An empty token is that of no caller.
func (i impersonal) config(token string) *rest.Config {
	return &rest.Config{
		Host: i.host, Transport: i.transport, BearerToken: token, UserAgent: userAgent,
		QPS:            -1, // the API server's priority and fairness decides
		WarningHandler: rest.NoWarnings{},
	}
}

// upgrading returns the configuration of one caller for connections that become another protocol, which have no transport
// in common.
func (i impersonal) upgrading(token string) *rest.Config {
	config := rest.CopyConfig(i.nameless)
	config.BearerToken, config.UserAgent = token, userAgent
	return config
}

// TokenAudience is the problem of a token that reads and cannot write.
func TokenAudience() *wire.Problem {
	return wire.NewProblem(wire.TokenAudience, "the API server does not take this token: its audience is "+callers.Audience+" alone")
}

// configOf returns the configuration of the caller of a request. The error of a token that the API server does not take
// is a right that is missing, too: an answer without the objects of other kinds is possible.
func (c *Cluster) configOf(ctx context.Context) (*rest.Config, error) {
	token, err := tokenOf(ctx)
	if err != nil {
		return nil, err
	}
	return c.as.config(token), nil
}

// tokenOf returns the token of the caller of a request for the API server.
func tokenOf(ctx context.Context) (string, error) {
	caller, err := identified(ctx)
	switch {
	case err != nil:
		return "", err
	case !caller.MayWrite:
		return "", errors.Join(TokenAudience(), apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("the audience of the token")))
	}
	return caller.Token(), nil
}

// clientOf returns a client with the token of the caller.
func (c *Cluster) clientOf(ctx context.Context) (client.WithWatch, error) {
	config, err := c.configOf(ctx)
	if err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client of a caller: %w", err)
	}
	return api, nil
}

// Create implements [client.Writer] with the token of the caller.
func (c *Cluster) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	api, err := c.clientOf(ctx)
	if err != nil {
		return err
	}
	return api.Create(ctx, object, options...)
}

// Update implements [client.Writer] with the token of the caller.
func (c *Cluster) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	api, err := c.clientOf(ctx)
	if err != nil {
		return err
	}
	return api.Update(ctx, object, options...)
}

// Patch implements [client.Writer] with the token of the caller.
func (c *Cluster) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	api, err := c.clientOf(ctx)
	if err != nil {
		return err
	}
	return api.Patch(ctx, object, patch, options...)
}

// Delete implements [client.Writer] with the token of the caller.
func (c *Cluster) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	api, err := c.clientOf(ctx)
	if err != nil {
		return err
	}
	return api.Delete(ctx, object, options...)
}

// Watch implements [client.WithWatch] with the token of the caller.
func (c *Cluster) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	api, err := c.clientOf(ctx)
	if err != nil {
		return nil, err
	}
	return api.Watch(ctx, list, options...)
}

// DryRuns implements [httpapi.Cluster].
func (c *Cluster) DryRuns() exec.Targets { return targets{c} }

// targets reads and sends guarded objects with the token of the caller of each request.
type targets struct{ cluster *Cluster }

func (t targets) of(ctx context.Context) (*exec.RESTTargets, error) {
	config, err := t.cluster.configOf(ctx)
	if err != nil {
		return nil, err
	}
	return exec.NewRESTTargets(config, t.cluster.RESTMapper())
}

// Get implements [exec.Targets].
func (t targets) Get(ctx context.Context, ref exec.Reference) ([]byte, error) {
	own, err := t.of(ctx)
	if err != nil {
		return nil, err
	}
	return own.Get(ctx, ref)
}

// Put implements [exec.Targets].
func (t targets) Put(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	own, err := t.of(ctx)
	if err != nil {
		return nil, err
	}
	return own.Put(ctx, ref, body, dryRun)
}

// Patch implements [exec.Targets].
func (t targets) Patch(ctx context.Context, ref exec.Reference, patch []byte) ([]byte, error) {
	own, err := t.of(ctx)
	if err != nil {
		return nil, err
	}
	return own.Patch(ctx, ref, patch)
}

// Post implements [exec.Targets].
func (t targets) Post(ctx context.Context, ref exec.Reference, body []byte, dryRun bool) ([]byte, error) {
	own, err := t.of(ctx)
	if err != nil {
		return nil, err
	}
	return own.Post(ctx, ref, body, dryRun)
}
