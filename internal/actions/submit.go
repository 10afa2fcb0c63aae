// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxConflicts bounds the retries against a controller that writes status at the
// same time; each one reads again and asks whether the request still holds.
const maxConflicts = 100

// ReplacedError says that another object has the name of the one that was shown.
type ReplacedError struct {
	// What names the object, such as "its Baseline".
	What string
}

func (e *ReplacedError) Error() string { return e.What + " was replaced since it was shown" }

// ContendedError says that others wrote the object at each of many attempts.
type ContendedError struct {
	// What names the object, such as "its Baseline".
	What     string
	Attempts int
}

func (e *ContendedError) Error() string {
	return fmt.Sprintf("%s was written by others %d times in a row; try again", e.What, e.Attempts)
}

// Submit sends a merge patch under the precondition that the object is the one
// that was shown: uid and resourceVersion travel with the patch. Submit makes the patch
// anew after each conflict from what is there then, or patch refuses it. What is stored is
// in object afterwards. An error calls the object what.
func Submit[T client.Object](ctx context.Context, c client.Client, what string, object T, patch func(T) (map[string]any, error), options ...client.PatchOption) error {
	uid, key := object.GetUID(), client.ObjectKeyFromObject(object)
	for range maxConflicts {
		if object.GetUID() != uid {
			return &ReplacedError{What: what}
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
	return &ContendedError{What: what, Attempts: maxConflicts}
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

// orNull returns text for a merge patch; nothing is null, or an older text would stay.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// patchOptions returns those of a request that the server shall not store.
func patchOptions(dryRun bool) []client.PatchOption {
	if dryRun {
		return []client.PatchOption{client.DryRunAll}
	}
	return nil
}

// IsAbsent tells a missing object, which is an answer, from a missing resource
// type, which is an error: only of the first does the server give the name.
func IsAbsent(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Name != ""
}

// AskIdentity returns the authenticated user and groups, as the API server names them; with
// impersonation those of the impersonated user.
func AskIdentity(ctx context.Context, c client.Client) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("asking the server for your user name: %w", err)
	}
	return review.Status.UserInfo, nil
}
