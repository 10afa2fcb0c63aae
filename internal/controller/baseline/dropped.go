// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// fillBefore finds the content of the version right before an observation, where it was not
// kept: a version without drift has the authorized body.
func (r *Reconciler) fillBefore(ctx context.Context, s *subject, state *specguard.State, look *observed) error {
	present, ok := look.observation.(specguard.Present)
	if !ok || look.before == nil || state.Authorized == nil || string(look.before.FullHash) != state.Observed.FullHash {
		return nil
	}
	body := state.Body
	if body == nil {
		var err error
		body, err = r.body(ctx, s, state.Authorized)
		switch {
		case apierrors.IsNotFound(err), errors.Is(err, errDamaged):
			return nil
		case err != nil:
			return err
		}
	}
	doc, err := canon.Parse(body, canon.GVK(s.key.GroupVersionKind))
	if err != nil {
		return nil // the step finds the damaged body, and tells of it
	}
	defer doc.Release()
	if doc.Hash() == look.before.FullHash {
		present.Prev = stampedVersion(look.before, body)
		look.observation = present
	}
	return nil
}

// tellDropped makes an event of versions that the assessor has not judged.
func tellDropped(look observed) specguard.Event {
	return specguard.Event{
		Type: specguard.EventWarning, Reason: reasonVersionsDropped,
		Message: fmt.Sprintf("%d versions before this one were not kept, so no write among them is proven", look.dropped),
	}
}
