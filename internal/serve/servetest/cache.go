// SPDX-License-Identifier: Apache-2.0

package servetest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Cache is a cache that shares its objects with the lists that ask for no copies, as that of controller-runtime does; like that one,
// it names a next chunk in each list.
type Cache struct {
	scheme *runtime.Scheme

	mu       sync.Mutex
	objects  []client.Object
	handlers map[string][]toolscache.ResourceEventHandler
}

// Objects returns copies of all objects.
func (c *Cache) Objects() (copies []client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.objects {
		copies = append(copies, o.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy is of the same type
	}
	return copies
}

// Put adds an object, or replaces the one of its kind and name, and tells the handlers.
func (c *Cache) Put(o client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := c.kindOf(o)
	c.objects = append(slices.DeleteFunc(slices.Clone(c.objects), func(other client.Object) bool {
		return c.kindOf(other) == kind && client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(o)
	}), o)
	for _, h := range c.handlers[kind] {
		h.OnUpdate(o, o)
	}
}

func (c *Cache) kindOf(o client.Object) string {
	gvk, err := apiutil.GVKForObject(o, c.scheme)
	if err != nil {
		return ""
	}
	return gvk.Kind
}

// GetInformer returns an informer that is synced.
func (c *Cache) GetInformer(_ context.Context, of client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return &informer{cache: c, kind: c.kindOf(of)}, nil
}

// informer tells handlers of the objects of a kind. It has no other methods of its interface.
type informer struct {
	cache.Informer
	cache *Cache
	kind  string
}

// AddEventHandler implements cache.Informer.
func (i *informer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.cache.mu.Lock()
	defer i.cache.mu.Unlock()
	for _, o := range i.cache.objects {
		if i.cache.kindOf(o) == i.kind {
			handler.OnAdd(o, true)
		}
	}
	i.cache.handlers[i.kind] = append(i.cache.handlers[i.kind], handler)
	return synced{}, nil
}

// RemoveEventHandler implements cache.Informer: a world ends with its test.
func (*informer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error { return nil }

// synced is the registration of a handler that was told all objects.
type synced struct{}

// HasSynced implements ResourceEventHandlerRegistration.
func (synced) HasSynced() bool { return true }

// HasSyncedChecker implements ResourceEventHandlerRegistration.
func (s synced) HasSyncedChecker() toolscache.DoneChecker { return s }

// Name implements DoneChecker.
func (synced) Name() string { return "synced" }

// Done implements DoneChecker.
func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
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
	found := c.ofKind(strings.TrimSuffix(gvk.Kind, "List"), func(o client.Object) bool {
		return (asked.Namespace == "" || o.GetNamespace() == asked.Namespace) && (asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(o.GetLabels())))
	})
	if asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy {
		for i := range found {
			found[i] = found[i].DeepCopyObject()
		}
	}
	into.SetContinue("continue-not-supported")
	return meta.SetList(into, found)
}

func (c *Cache) ofKind(kind string, keep func(client.Object) bool) (found []runtime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.objects {
		if c.kindOf(o) == kind && keep(o) {
			found = append(found, o)
		}
	}
	return found
}
