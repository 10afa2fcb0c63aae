// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// readableAgain is the time between two attempts to read exceptions that cannot be read.
const readableAgain = 10 * time.Second

// ListExceptions lists all exceptions. There are none where the kind is not served, or where the
// rights are those of a release that has no such kind: then no change is excused.
func ListExceptions(ctx context.Context, reader client.Reader) ([]v1alpha1.SpecGuardException, error) {
	var list v1alpha1.SpecGuardExceptionList
	err := reader.List(ctx, &list)
	switch {
	case IsUnreadable(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing exceptions: %w", err)
	}
	return list.Items, nil
}

// IsUnreadable says of an error that a kind is not served, or that its rights are missing.
func IsUnreadable(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// NewReader returns a reader of a cache that reads exceptions past the cache until they can be
// read. The cache would wait for them for ever.
func NewReader(cached, live client.Reader) client.Reader {
	return &cautiousReader{Reader: cached, live: live}
}

type cautiousReader struct {
	client.Reader
	live     client.Reader
	readable atomic.Bool
}

// List implements client.Reader.
func (r *cautiousReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, exceptions := list.(*v1alpha1.SpecGuardExceptionList); !exceptions || r.readable.Load() {
		return r.Reader.List(ctx, list, opts...)
	}
	err := r.live.List(ctx, list, opts...)
	if err == nil {
		r.readable.Store(true)
	}
	return err
}

// WatchExceptions is a source of exceptions that starts as soon as they can be read.
func WatchExceptions(live client.Reader, kind source.Source) source.Source {
	isReadable := func(ctx context.Context) bool {
		return live.List(ctx, &v1alpha1.SpecGuardExceptionList{}, client.Limit(1)) == nil
	}
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if isReadable(ctx) {
			return kind.Start(ctx, q)
		}
		go func() {
			again := func(ctx context.Context) (bool, error) { return isReadable(ctx), ctx.Err() }
			if wait.PollUntilContextCancel(ctx, readableAgain, false, again) == nil {
				_ = kind.Start(ctx, q) // it goes on trying until ctx ends
			}
		}()
		return nil
	})
}
