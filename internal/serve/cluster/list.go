// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/rights"
)

// errFields is the error of a list that the cache cannot answer.
var errFields = errors.New("the cache lists by no fields")

// List implements [client.Reader]. A list of the cache is whole: it has no chunks.
func (c *Cluster) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	caller, err := identified(ctx)
	if err != nil {
		return err
	}
	k, err := c.kindOf(list)
	if err != nil {
		return err
	}
	asked := (&client.ListOptions{}).ApplyOptions(options)
	switch {
	case c.config.Processes.has(k, asked.Namespace):
		return c.listProcesses(ctx, caller, k, list, asked)
	case !k.cached || caller.Writes && !httpapi.IsByID(ctx):
		api, err := c.clientOf(ctx)
		if err != nil {
			return err
		}
		return api.List(ctx, list, options...)
	}
	if asked.FieldSelector != nil {
		return errFields
	}
	// A request that reads changes no object, so the objects of the cache need no copies.
	whole := &client.ListOptions{Namespace: asked.Namespace, LabelSelector: asked.LabelSelector, UnsafeDisableDeepCopy: new(!caller.Writes)}
	return c.listReadable(ctx, caller, k, list, whole)
}

// listReadable lists what the caller may read.
func (c *Cluster) listReadable(ctx context.Context, caller *callers.Caller, k kind, list client.ObjectList, whole *client.ListOptions) error {
	right := rights.Right{Verb: "list", Resource: k.resource, Namespace: whole.Namespace}
	allowed, err := c.allows(ctx, caller, right)
	switch {
	case err != nil:
		return err
	case allowed:
		return c.listCached(ctx, list, whole)
	case k.namespaced && whole.Namespace == "":
		return c.listAmong(ctx, caller, right, list, whole)
	case httpapi.IsByID(ctx):
		return meta.SetList(list, nil)
	}
	return forbidden(caller, right, "")
}

// listCached lists by the cache. The cache names a next chunk, which does not exist.
func (c *Cluster) listCached(ctx context.Context, list client.ObjectList, whole *client.ListOptions) error {
	if err := c.config.Cache.List(ctx, list, whole); err != nil {
		return fmt.Errorf("reading the cache: %w", err)
	}
	list.SetContinue("")
	return nil
}

// listAmong lists the objects of the namespaces that the caller may read.
func (c *Cluster) listAmong(ctx context.Context, caller *callers.Caller, right rights.Right, list client.ObjectList, whole *client.ListOptions) error {
	if err := c.listCached(ctx, list, whole); err != nil {
		return err
	}
	objects, namespaces, err := namespacesOf(list)
	if err != nil {
		return err
	}
	granted, err := c.config.Rights.FilterNamespaces(ctx, &caller.User, right, namespaces)
	if err := c.unavailable(err); err != nil {
		return err
	}
	return meta.SetList(list, slices.DeleteFunc(objects, func(o runtime.Object) bool { return !granted[namespaceOf(o)] }))
}

// namespacesOf returns the objects of a list, and their namespaces in order.
func namespacesOf(list client.ObjectList) (objects []runtime.Object, namespaces []string, err error) {
	if objects, err = meta.ExtractList(list); err != nil {
		return nil, nil, fmt.Errorf("reading a list: %w", err)
	}
	there := map[string]bool{}
	for _, o := range objects {
		there[namespaceOf(o)] = true
	}
	return objects, slices.Sorted(maps.Keys(there)), nil
}

// namespaceOf returns the namespace of an object; an object that has none is in none that is granted.
func namespaceOf(o runtime.Object) string {
	object, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return object.GetNamespace()
}
