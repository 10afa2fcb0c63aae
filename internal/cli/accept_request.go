// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxConflicts bounds the retries against an assessor that writes status at the
// same time; each one re-reads and checks that the hash is still the one shown.
const maxConflicts = 100

// requestAccept sets spec.accept under the precondition that the Baseline is
// the one that was shown: uid and resourceVersion travel with the patch.
func (c *cluster) requestAccept(ctx context.Context, shown *candidate, request v1alpha1.AcceptRequest, dryRun bool) (*v1alpha1.Baseline, error) {
	current := shown.baseline.DeepCopy()
	for range maxConflicts {
		if current.UID != shown.baseline.UID {
			return nil, errors.New("its Baseline was replaced since it was shown")
		}
		if current.Status.Observed.Hash != shown.hash {
			return nil, fmt.Errorf("it changed since it was shown: now %s", current.Status.Observed.Hash)
		}
		patch, err := acceptPatch(current, request)
		if err != nil {
			return nil, err
		}
		var options []client.PatchOption
		if dryRun {
			options = append(options, client.DryRunAll)
		}
		err = c.Patch(ctx, current, client.RawPatch(types.MergePatchType, patch), options...)
		if err == nil {
			return current, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, err
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(&shown.baseline), current); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("its Baseline was written by others %d times in a row; try again", maxConflicts)
}

// acceptPatch is a merge patch; an absent reason is null, or an older request's
// would stay.
func acceptPatch(b *v1alpha1.Baseline, request v1alpha1.AcceptRequest) ([]byte, error) {
	accept := map[string]any{"hash": request.Hash, "requestedBy": request.RequestedBy, "reason": nil}
	if request.Reason != "" {
		accept["reason"] = request.Reason
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": b.UID, "resourceVersion": b.ResourceVersion},
		"spec":     map[string]any{"accept": accept},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	return patch, nil
}

// pending is a request that was sent.
type pending struct {
	baseline   *v1alpha1.Baseline
	hash       string
	wasMissing bool
}

// awaitAll waits for all requests under one deadline, in the order in which
// they were sent.
func (a *app) awaitAll(ctx context.Context, c *cluster, sent []pending, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed []error
	for _, p := range sent {
		outcome, words, err := c.await(deadline, p)
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(failed, ctx.Err())...)
		case deadline.Err() != nil && outcome == settlePending:
			failed = append(failed, fmt.Errorf("%s: acceptance is requested, and the assessor has not taken it within %s", inNamespace(p.baseline), patience))
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: acceptance is requested; waiting for it: %w", inNamespace(p.baseline), err))
		case outcome == settleRefused:
			failed = append(failed, fmt.Errorf("%s was not accepted: %s", inNamespace(p.baseline), words))
		default:
			if err := a.result(p.baseline, words); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}

// await watches one Baseline until its request is settled. A watch that ends is
// taken up again from a fresh read.
func (c *cluster) await(ctx context.Context, p pending) (settled, string, error) {
	for {
		current := &v1alpha1.Baseline{}
		err := c.Get(ctx, client.ObjectKeyFromObject(p.baseline), current)
		deleted := isAbsent(err) || (err == nil && current.UID != p.baseline.UID)
		if err != nil && !deleted {
			return settlePending, "", err
		}
		if outcome, words := settlement(current, p.hash, p.wasMissing, deleted); outcome != settlePending {
			return outcome, words, nil
		}
		outcome, words, err := c.follow(ctx, p, current.ResourceVersion)
		if outcome != settlePending || err != nil || ctx.Err() != nil {
			return outcome, words, err
		}
	}
}

// follow reads one watch to its end or to a settlement.
func (c *cluster) follow(ctx context.Context, p pending, from string) (settled, string, error) {
	watcher, err := c.Watch(ctx, &v1alpha1.BaselineList{}, &client.ListOptions{
		Namespace:     p.baseline.Namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", p.baseline.Name),
		Raw:           &metav1.ListOptions{ResourceVersion: from},
	})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return settlePending, "", nil // read afresh
	}
	if err != nil {
		return settlePending, "", err
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return settlePending, "", nil
		case event, open := <-watcher.ResultChan():
			current, ok := event.Object.(*v1alpha1.Baseline)
			if !open || !ok {
				return settlePending, "", nil // closed, or an error to read afresh after
			}
			outcome, words := settlement(current, p.hash, p.wasMissing, event.Type == watch.Deleted)
			if outcome != settlePending {
				return outcome, words, nil
			}
		}
	}
}
