// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/kube"
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
		return 0, nil //nolint:nilerr // of an unknown object there is no version to complete
	}
	return r.load(ctx, s)
}

// load completes the present version by a live read. The object waits if the API server has
// another version by now, because the watch is about to tell of that version in its order.
func (r *Reconciler) load(ctx context.Context, s *subject) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, checks.ReadTimeout)
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
	r.Objects.RestoreContent(s.key, whole)
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

// waitForWatch tells how long to wait for the watch to deliver a version that was read. An object that
// is written without end always has a newer version. So after some time the reading is
// judged as one that the watch has missed.
func (r *Reconciler) waitForWatch(s *subject, reading checks.Reading) time.Duration {
	pending := s.view.Pending
	if reading.Object == nil || len(pending) == 0 || s.now.Sub(pending[0].SeenAt) < checks.CatchUp ||
		!kube.IsOlder(s.view.Current.ResourceVersion, reading.Version) || !r.Objects.Hold(s.key, reading, s.view.Current) {
		return loadAgain
	}
	return time.Millisecond
}
