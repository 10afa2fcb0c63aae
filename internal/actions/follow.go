// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"errors"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Pause waits before the attempt with that number, from 1, or until the context ends.
type Pause func(ctx context.Context, attempt int)

// The bounds of [BackOff].
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// BackOff waits for one second before the first attempt, and for twice as long before each later one, up
// to 30 seconds.
func BackOff(ctx context.Context, attempt int) {
	timer := time.NewTimer(min(maxPause, firstPause<<min(max(attempt-1, 0), 5)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// FollowRelease watches a release until done says so, or the context ends, which is no error. When the API
// server cannot be reached for a while, FollowRelease tells the error to interrupted, pauses, and goes
// on from a fresh read.
func FollowRelease(ctx context.Context, c client.WithWatch, r *v1alpha1.ABRelease, pause Pause, interrupted func(error), done func(current *v1alpha1.ABRelease, deleted bool) bool) error {
	attempt := 0
	for {
		err := Await(ctx, c, r, &v1alpha1.ABReleaseList{}, func(current *v1alpha1.ABRelease, deleted bool) bool {
			attempt = 0
			return done(current, deleted)
		})
		if ctx.Err() != nil || err == nil {
			return nil //nolint:nilerr // the end of the context is no error
		}
		if !IsTransient(err) {
			return err
		}
		attempt++
		interrupted(err)
		pause(ctx, attempt)
	}
}

// IsTransient tells whether the same request may succeed later: the API server is away or overloaded.
func IsTransient(err error) bool {
	if _, is := errors.AsType[net.Error](err); is {
		return true
	}
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}

// FollowList calls changed after each event of a watch, until the context ends, which is no error. The first events
// are about the objects that are there. When the API server cannot be reached for a while, FollowList tells the
// error to interrupted, pauses, and begins a new watch.
func FollowList(ctx context.Context, c client.WithWatch, list client.ObjectList, options *client.ListOptions, pause Pause, interrupted func(error), changed func()) error {
	attempt := 0
	for {
		err := readEvents(ctx, c, list, options, func() {
			attempt = 0
			changed()
		})
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of the context is no error
		case err != nil && !IsTransient(err):
			return err
		case err != nil:
			interrupted(err)
		}
		attempt++
		pause(ctx, attempt)
	}
}

// readEvents calls changed for each event of one watch, until the watch ends.
func readEvents(ctx context.Context, c client.WithWatch, list client.ObjectList, options *client.ListOptions, changed func()) error {
	watcher, err := c.Watch(ctx, list, options)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-watcher.ResultChan():
			if !open {
				return nil
			}
			changed()
		}
	}
}
