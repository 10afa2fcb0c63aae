// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Progress tells how a request stands.
type Progress int

// A request is pending until it is taken or refused.
const (
	Pending Progress = iota
	Taken
	Refused
)

// Await reads and watches one object until done says so, or the context ends, which is no
// error. A watch that ends is taken up again from a fresh read. Another object of the same
// name counts as a deletion. The list is an empty one of the object's kind.
func Await[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, done func(current T, deleted bool) bool) error {
	uid := object.GetUID()
	for {
		current, ok := object.DeepCopyObject().(T)
		if !ok {
			return fmt.Errorf("reading %s: it is of another kind", object.GetName())
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(object), current)
		deleted := IsAbsent(err) || (err == nil && current.GetUID() != uid)
		if err != nil && !deleted {
			return err
		}
		if done(current, deleted) {
			return nil
		}
		ended, err := follow(ctx, c, current, list, done)
		if ended || err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// follow reads one watch to its end, or until done says so.
func follow[T client.Object](ctx context.Context, c client.WithWatch, from T, list client.ObjectList, done func(T, bool) bool) (bool, error) {
	watcher, err := c.Watch(ctx, list, &client.ListOptions{
		Namespace:     from.GetNamespace(),
		FieldSelector: fields.OneTermEqualSelector("metadata.name", from.GetName()),
		Raw:           &metav1.ListOptions{ResourceVersion: from.GetResourceVersion()},
	})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return false, nil // read afresh
	}
	if err != nil {
		return false, err
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case event, open := <-watcher.ResultChan():
			current, ok := event.Object.(T)
			if !open || !ok {
				return false, nil // closed, or an error to read afresh after
			}
			if done(current, event.Type == watch.Deleted) {
				return true, nil
			}
		}
	}
}
