// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/rights"
)

// Follow implements [httpapi.Shared] with the watches of the shared cache.
func (c *Cluster) Follow(ctx context.Context, kind client.ObjectList, take, forget func(client.Object)) error {
	gvk, err := apiutil.GVKForObject(kind, c.Scheme())
	if err != nil {
		return fmt.Errorf("finding a kind: %w", err)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	object, err := c.Scheme().New(gvk)
	if err != nil {
		return fmt.Errorf("finding a kind: %w", err)
	}
	informer, err := c.config.Cache.GetInformer(ctx, object.(client.Object), cache.BlockUntilSynced(false)) //nolint:forcetypeassert // the kinds of the cache are objects
	if err != nil {
		return fmt.Errorf("following %s: %w", gvk.Kind, err)
	}
	handle, err := informer.AddEventHandler(handlers(take, forget))
	if err != nil {
		return fmt.Errorf("following %s: %w", gvk.Kind, err)
	}
	context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(handle) }) // an informer that has ended has no handlers
	select {
	case <-handle.HasSyncedChecker().Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("following %s: %w", gvk.Kind, ctx.Err())
	}
}

// handlers take objects of an informer.
func handlers(take, forget func(client.Object)) toolscache.ResourceEventHandler {
	call := func(f func(client.Object), o any) {
		if object, is := o.(client.Object); is {
			f(object)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { call(take, o) },
		UpdateFunc: func(_, o any) { call(take, o) },
		DeleteFunc: func(o any) {
			if gone, is := o.(toolscache.DeletedFinalStateUnknown); is {
				o = gone.Obj
			}
			call(forget, o)
		},
	}
}

// Hearer implements [httpapi.Shared].
func (c *Cluster) Hearer(ctx context.Context) (httpapi.Hearer, error) {
	caller, err := identified(ctx)
	if err != nil {
		return nil, err
	}
	return &hearer{c, caller}, nil
}

// hearer is the caller of one stream.
type hearer struct {
	cluster *Cluster
	caller  *callers.Caller
}

// Renew implements [httpapi.Hearer]. A token that names another user by now is refused.
func (h *hearer) Renew(ctx context.Context) error {
	caller, err := h.caller.Renew(ctx)
	switch {
	case errors.Is(err, callers.ErrRefused),
		err == nil && (caller.User.Username != h.caller.User.Username || caller.User.UID != h.caller.User.UID):
		return apierrors.NewUnauthorized(callers.ErrRefused.Error())
	case err != nil:
		h.cluster.config.Log.Warn("api.review.failed", "error", err.Error())
		return wire.NewProblem(wire.Unavailable, "the API server cannot be asked for your name: try again")
	}
	h.caller = caller
	return nil
}

// Until implements [httpapi.Hearer].
func (h *hearer) Until() time.Time { return h.caller.Until }

// MayWatch implements [httpapi.Hearer].
func (h *hearer) MayWatch(ctx context.Context, list client.ObjectList, namespace string) error {
	right, err := h.right(list, namespace)
	if err != nil {
		return err
	}
	allowed, err := h.cluster.allows(ctx, h.caller, right)
	if err == nil && !allowed {
		err = forbidden(h.caller, right, "")
	}
	return err
}

// right is that to watch a kind.
func (h *hearer) right(list client.ObjectList, namespace string) (rights.Right, error) {
	k, err := h.cluster.kindOf(list)
	return rights.Right{Verb: "watch", Resource: k.resource, Namespace: namespace}, err
}

// fewNamespaces are those that are asked about at once.
const fewNamespaces = 16

// FindNamespace implements [httpapi.Hearer].
func (h *hearer) FindNamespace(ctx context.Context, list client.ObjectList) (string, error) {
	right, err := h.right(list, "")
	if err != nil {
		return "", err
	}
	if err := h.cluster.listCached(ctx, list, &client.ListOptions{UnsafeDisableDeepCopy: new(true)}); err != nil {
		return "", err
	}
	_, namespaces, err := namespacesOf(list)
	if err != nil {
		return "", err
	}
	for few := range slices.Chunk(namespaces, fewNamespaces) {
		granted, err := h.cluster.config.Rights.FilterNamespaces(ctx, &h.caller.User, right, few)
		if err := h.cluster.unavailable(err); err != nil {
			return "", err
		}
		for _, namespace := range few {
			if granted[namespace] {
				return namespace, nil
			}
		}
	}
	return "", nil
}
