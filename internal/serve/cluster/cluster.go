// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/rights"
)

// Config has the parts that a Cluster uses.
type Config struct {
	// Server is the configuration of the server's own clients. Of it, requests of callers have the address of the API
	// server and the authorities that it is known by.
	Server *rest.Config
	Scheme *runtime.Scheme
	Mapper meta.RESTMapper
	// Cache has the kinds of [Cached].
	Cache  Cache
	Rights *rights.Rights
	// Processes are those of Plumbline.
	Processes Processes
	// Now is the time of the API server.
	Now func() time.Time
	Log *slog.Logger
}

// Cache has objects, and tells of their changes.
type Cache interface {
	client.Reader
	GetInformer(ctx context.Context, of client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
}

// Cluster implements [httpapi.Shared]. The methods that it does not have itself are those of a client without
// any identity.
type Cluster struct {
	client.WithWatch
	config *Config
	cached map[schema.GroupVersionKind]bool
	as     impersonal
}

var _ httpapi.Shared = (*Cluster)(nil)

// New makes a Cluster, and sends no request.
func New(c *Config) (*Cluster, error) {
	as, err := newImpersonal(c.Server)
	if err != nil {
		return nil, err
	}
	unknown, err := client.NewWithWatch(as.config(""), client.Options{Scheme: c.Scheme, Mapper: c.Mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client without an identity: %w", err)
	}
	cached := map[schema.GroupVersionKind]bool{}
	for _, o := range Cached() {
		gvk, err := apiutil.GVKForObject(o, c.Scheme)
		if err != nil {
			return nil, fmt.Errorf("finding a kind of the cache: %w", err)
		}
		cached[gvk] = true
	}
	return &Cluster{WithWatch: unknown, config: c, cached: cached, as: as}, nil
}

// Whoami implements [httpapi.Cluster].
func (c *Cluster) Whoami(ctx context.Context) (authenticationv1.UserInfo, error) {
	caller, err := identified(ctx)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return caller.User, nil
}

// Now implements [httpapi.Cluster].
func (c *Cluster) Now() time.Time { return c.config.Now() }

// identified returns the caller of a request. There is none where the door was passed by.
func identified(ctx context.Context) (*callers.Caller, error) {
	if caller := callers.Of(ctx); caller != nil {
		return caller, nil
	}
	return nil, wire.NewProblem(wire.Unauthenticated, callers.ErrRefused.Error())
}

// Get implements [client.Reader].
func (c *Cluster) Get(ctx context.Context, name client.ObjectKey, object client.Object, options ...client.GetOption) error {
	caller, err := identified(ctx)
	if err != nil {
		return err
	}
	k, err := c.kindOf(object)
	if err != nil {
		return err
	}
	right := rights.Right{Verb: "get", Resource: k.resource, Namespace: name.Namespace}
	byID, reader := httpapi.IsByID(ctx), client.Reader(c.config.Cache)
	switch {
	case c.config.Processes.keeps(k, name.Namespace, name.Name):
		reader, right.Name = c.config.Processes.Reader, name.Name
	case !k.cached || caller.Writes && !byID:
		api, err := c.clientOf(ctx)
		if err != nil {
			return err
		}
		return api.Get(ctx, name, object, options...)
	}
	allowed, err := c.allows(ctx, caller, right)
	switch {
	case err != nil:
		return err
	case !allowed && byID:
		return apierrors.NewNotFound(k.resource, name.Name)
	case !allowed:
		return forbidden(caller, right, name.Name)
	}
	return reader.Get(ctx, name, object, options...)
}

// allows asks for a right. A right that cannot be asked for is the problem "unavailable".
func (c *Cluster) allows(ctx context.Context, caller *callers.Caller, right rights.Right) (bool, error) {
	allowed, err := c.config.Rights.Allows(ctx, &caller.User, right)
	return allowed, c.unavailable(err)
}

func (c *Cluster) unavailable(err error) error {
	if err == nil {
		return nil
	}
	c.config.Log.Warn("api.review.failed", "error", err.Error())
	return wire.NewProblem(wire.Unavailable, "the API server cannot be asked for your rights: try again")
}

// forbidden is the answer that the API server would give, in its words.
func forbidden(caller *callers.Caller, right rights.Right, name string) error {
	words := fmt.Sprintf("User %q cannot %s resource %q in API group %q", caller.User.Username, right.Verb, right.Resource.Resource, right.Resource.Group)
	if right.Namespace != "" {
		words += fmt.Sprintf(" in the namespace %q", right.Namespace)
	}
	return apierrors.NewForbidden(right.Resource, name, errors.New(words))
}
