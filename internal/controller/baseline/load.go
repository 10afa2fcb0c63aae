// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// loadAgain is how soon an object is read again of which the API server has another
// version than the watch. Most of the time the watch tells earlier.
const loadAgain = 200 * time.Millisecond

// loadLabels reads the object past the watch if its labels are not kept and a guard may
// ask for them.
func (r *Reconciler) loadLabels(ctx context.Context, s *subject) (wait time.Duration, err error) {
	current := s.view.Current
	if current == nil || !current.LabelsDropped || !s.snapshot.Covers(s.key.GroupVersionKind, s.key.Namespace) {
		return 0, nil
	}
	return r.load(ctx, s)
}

// loadContent reads the object past the watch if its content is not kept.
func (r *Reconciler) loadContent(ctx context.Context, s *subject) (wait time.Duration, err error) {
	if s.view.Unknown != nil || s.view.Current == nil || !s.view.Current.Partial() {
		return 0, nil
	}
	return r.load(ctx, s)
}

// load completes the present version by a live read. The object waits if the API server has
// another version by now, because the watch is about to tell of that version in its order.
func (r *Reconciler) load(ctx context.Context, s *subject) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	reading, err := r.Contents.Read(ctx, s.resource, s.key)
	if err != nil {
		return 0, fmt.Errorf("reading content that is not kept: %w", err)
	}
	r.Metrics.liveReads.Inc()
	whole := s.view.Current.Complete(reading.Object)
	if whole == nil {
		return r.waitForWatch(s, reading), nil
	}
	r.Objects.Restore(s.key, whole)
	s.complete(whole)
	return 0, nil
}

// complete puts a version with its content in the place of all versions of equal content.
func (s *subject) complete(whole *kube.Object) {
	fill := func(o *kube.Object) *kube.Object {
		if o == nil || !o.Partial() && !o.LabelsDropped {
			return o
		}
		if filled := o.Complete(whole); filled != nil {
			return filled
		}
		return o
	}
	s.view.Pending = slices.Clone(s.view.Pending)
	for i := range s.view.Pending {
		t := &s.view.Pending[i]
		t.Prev, t.Next = fill(t.Prev), fill(t.Next)
	}
	s.view.Current = whole
}

// waitForWatch tells how long to wait for the watch to deliver what was read. An object that
// is written without end always has a newer version. So after some time the reading is
// judged as one that the watch has missed.
func (r *Reconciler) waitForWatch(s *subject, reading Reading) time.Duration {
	pending := s.view.Pending
	if reading.Object == nil || len(pending) == 0 || s.now.Sub(pending[0].SeenAt) < catchUp ||
		!older(s.view.Current.ResourceVersion, reading.Version) || !r.ahead.hold(s.key, reading, s.view.Current) {
		return loadAgain
	}
	return time.Millisecond
}

// fillBefore finds the content of the version right before an observation, where it was not
// kept: a version that did not differ from what is authorised has the authorised body.
func (r *Reconciler) fillBefore(ctx context.Context, s *subject, state *specguard.State, look *observed) error {
	present, ok := look.observation.(specguard.Present)
	if !ok || look.before == nil || state.Authorised == nil || string(look.before.FullHash) != state.Observed.FullHash {
		return nil
	}
	body := state.Body
	if body == nil {
		var err error
		body, err = r.body(ctx, s, state.Authorised)
		switch {
		case apierrors.IsNotFound(err), errors.Is(err, errDamaged):
			return nil
		case err != nil:
			return err
		}
	}
	doc, err := canon.Parse(body, canon.GVK(s.key.GroupVersionKind))
	if err != nil {
		return nil //nolint:nilerr // the step finds the damaged body, and tells of it
	}
	defer doc.Release()
	if doc.Hash() == look.before.FullHash {
		present.Prev = stampedVersion(look.before, body)
		look.observation = present
	}
	return nil
}

// tellDropped makes an event of versions that nobody has looked at.
func tellDropped(look observed) specguard.Event {
	return specguard.Event{
		Type: specguard.EventWarning, Reason: reasonVersionsDropped,
		Message: fmt.Sprintf("%d versions before this one were not kept for want of memory, so no write among them is proven", look.dropped),
	}
}
