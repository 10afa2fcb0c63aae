// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
)

// Shared is a [Cluster] whose callers share one feed of events. Each stream hears the part of it that its caller may watch.
type Shared interface {
	Cluster
	// Follow tells each object of the kind of a list, each change, and each object that is gone, until its context ends. It
	// returns when all objects that are there were told.
	Follow(ctx context.Context, kind client.ObjectList, take, forget func(client.Object)) error
	// Hearer returns the caller of the context as a hearer of events.
	Hearer(ctx context.Context) (Hearer, error)
}

// Hearer is the caller of one stream. What a caller may hear changes while the stream lasts.
type Hearer interface {
	// Renew asks anew whose the token of the caller is. The error of a token that is refused is that of
	// apierrors.IsUnauthorized.
	Renew(ctx context.Context) error
	// Until returns when the token ends; zero for a token that does not tell.
	Until() time.Time
	// MayWatch returns nil if the caller may watch the kind of a list in a namespace, or in all if none is named. The
	// error of a caller who may not is that of apierrors.IsForbidden, or says that the kind is not installed.
	MayWatch(ctx context.Context, kind client.ObjectList, namespace string) error
	// FindNamespace returns a namespace with objects of the kind where the caller may watch the kind; empty if there is none.
	FindNamespace(ctx context.Context, kind client.ObjectList) (string, error)
}

// share fills the feed with the changes of a cluster, until the context ends.
func (f *feed) share(ctx context.Context, from Shared) {
	f.mu.Lock()
	f.waiting = map[string][]events.Entry{}
	f.mu.Unlock()
	var loading, following sync.WaitGroup
	for i := range followedKinds {
		k := &followedKinds[i]
		loading.Add(1)
		told := sync.OnceFunc(loading.Done)
		following.Go(func() {
			defer told()
			f.shareKind(ctx, from, k, told)
		})
	}
	loading.Wait()
	f.merge()
	close(f.loaded)
	following.Wait()
}

// shareKind returns when the objects of a kind were told, or the context has ended. A kind that is not installed is tried again.
func (f *feed) shareKind(ctx context.Context, from Shared, k *followed, told func()) {
	for {
		pause := firstPause
		err := from.Follow(ctx, k.newList(), func(o client.Object) { f.take(k, o) }, func(o client.Object) { f.forget(k, o) })
		switch {
		case err == nil, ctx.Err() != nil:
			return
		case kindIsMissing(err):
			told()
			pause = longestPause
		default:
			f.log.Warn("a kind is not followed", "kind", k.kind, "error", err)
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// merge brings the events of all objects into one order, and has the feed tell further ones as they come.
func (f *feed) merge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	told := make([][]events.Entry, 0, len(f.waiting))
	for _, uid := range slices.Sorted(maps.Keys(f.waiting)) {
		told = append(told, f.waiting[uid])
	}
	f.ring.Append(events.Merge(told)...)
	f.waiting = nil
	f.wake()
}
