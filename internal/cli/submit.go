// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxConflicts bounds the retries against a controller that writes status at the
// same time; each one reads again and asks whether the request still holds.
const maxConflicts = 100

// submit sends a merge patch under the precondition that the object is the one
// that was shown: uid and resourceVersion travel with the patch. The patch is made
// anew after each conflict from what is there then, or refused. What is stored is
// in object afterwards. An error calls the object what.
func submit[T client.Object](ctx context.Context, c *cluster, what string, object T, patch func(T) (map[string]any, error), options ...client.PatchOption) error {
	uid, key := object.GetUID(), client.ObjectKeyFromObject(object)
	for range maxConflicts {
		if object.GetUID() != uid {
			return fmt.Errorf("%s was replaced since it was shown", what)
		}
		content, err := patch(object)
		if err != nil {
			return err
		}
		body, err := bound(object, content)
		if err != nil {
			return err
		}
		err = c.Patch(ctx, object, client.RawPatch(types.MergePatchType, body), options...)
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
		if err := c.Get(ctx, key, object); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s was written by others %d times in a row; try again", what, maxConflicts)
}

// bound adds the preconditions to a patch.
func bound(object client.Object, content map[string]any) ([]byte, error) {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = object.GetUID(), object.GetResourceVersion()
	body, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	return body, nil
}

// orNull is text in a merge patch; nothing is null, or an older text would stay.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// dryRunOptions are those of a --dry-run=server.
func dryRunOptions(dryRun string) []client.PatchOption {
	if dryRun == "server" {
		return []client.PatchOption{client.DryRunAll}
	}
	return nil
}

// until reads and watches one object until done says so, or the context ends. A
// watch that ends is taken up again from a fresh read. Another object of the same
// name counts as a deletion. The list is an empty one of the object's kind.
func until[T client.Object](ctx context.Context, c *cluster, object T, list client.ObjectList, done func(current T, deleted bool) bool) error {
	uid := object.GetUID()
	for {
		current, ok := object.DeepCopyObject().(T)
		if !ok {
			return fmt.Errorf("reading %s: it is of another kind", object.GetName())
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(object), current)
		deleted := isAbsent(err) || (err == nil && current.GetUID() != uid)
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
func follow[T client.Object](ctx context.Context, c *cluster, from T, list client.ObjectList, done func(T, bool) bool) (bool, error) {
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
