// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// requestAccept sets spec.accept, if the observed state is still the one that was
// shown.
func (c *cluster) requestAccept(ctx context.Context, shown *candidate, request v1alpha1.AcceptRequest, dryRun string) (*v1alpha1.Baseline, error) {
	current := shown.baseline.DeepCopy()
	err := submit(ctx, c, "its Baseline", current, func(b *v1alpha1.Baseline) (map[string]any, error) {
		if b.Status.Observed.Hash != shown.hash {
			return nil, fmt.Errorf("it changed since it was shown: now %s", b.Status.Observed.Hash)
		}
		return acceptPatch(request), nil
	}, dryRunOptions(dryRun)...)
	if err != nil {
		return nil, err
	}
	return current, nil
}

func acceptPatch(request v1alpha1.AcceptRequest) map[string]any {
	accept := map[string]any{"hash": request.Hash, "requestedBy": request.RequestedBy, "reason": orNull(request.Reason), "requestedByGroups": nil}
	if len(request.RequestedByGroups) > 0 {
		accept["requestedByGroups"] = request.RequestedByGroups
	}
	return map[string]any{"spec": map[string]any{"accept": accept}}
}

// Bounds of the API for the groups of a request.
const (
	maxNamedGroups     = 32
	maxNamedGroupBytes = 256
)

// namedGroups are the groups by which a guard may let the user accept. The group of all
// users and those of service accounts, which follow from the name, need not be named.
func namedGroups(groups []string) []string {
	named := slices.DeleteFunc(slices.Clone(groups), func(group string) bool {
		return group == "" || len(group) > maxNamedGroupBytes || group == "system:authenticated" || specguard.IsServiceAccountGroup(group)
	})
	slices.Sort(named)
	named = slices.Compact(named)
	return named[:min(len(named), maxNamedGroups)]
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

// await watches one Baseline until its request is settled.
func (c *cluster) await(ctx context.Context, p pending) (outcome settled, words string, err error) {
	err = until(ctx, c, p.baseline, &v1alpha1.BaselineList{}, func(current *v1alpha1.Baseline, deleted bool) bool {
		outcome, words = settlement(current, p.hash, p.wasMissing, deleted)
		return outcome != settlePending
	})
	return outcome, words, err
}
