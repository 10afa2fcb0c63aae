// SPDX-License-Identifier: Apache-2.0

package servetest

import (
	"context"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Cache is a client.Reader that shares its objects with the lists that ask for no copies, as the cache of controller-runtime
// does; like that one, it names a next chunk in each list.
type Cache struct {
	scheme  *runtime.Scheme
	objects []client.Object
}

// Objects returns copies of all objects.
func (c *Cache) Objects() (copies []client.Object) {
	for _, o := range c.objects {
		copies = append(copies, o.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy is of the same type
	}
	return copies
}

// Get implements client.Reader.
func (c *Cache) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, c.scheme)
	if err != nil {
		return err
	}
	found := c.ofKind(gvk.Kind, func(o client.Object) bool { return client.ObjectKeyFromObject(o) == name })
	if len(found) == 0 {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		return apierrors.NewNotFound(resource.GroupResource(), name.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found[0].DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader.
func (c *Cache) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(into, c.scheme)
	if err != nil {
		return err
	}
	asked := (&client.ListOptions{}).ApplyOptions(options)
	found := c.ofKind(strings.TrimSuffix(gvk.Kind, "List"), func(o client.Object) bool { return asked.Namespace == "" || o.GetNamespace() == asked.Namespace })
	if asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy {
		for i := range found {
			found[i] = found[i].DeepCopyObject()
		}
	}
	into.SetContinue("continue-not-supported")
	return meta.SetList(into, found)
}

func (c *Cache) ofKind(kind string, keep func(client.Object) bool) (found []runtime.Object) {
	for _, o := range c.objects {
		if gvk, err := apiutil.GVKForObject(o, c.scheme); err == nil && gvk.Kind == kind && keep(o) {
			found = append(found, o)
		}
	}
	return found
}
