// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// askAnew is how long a watch may last, in seconds: the API server asks for the rights of the caller when a
	// watch begins.
	askAnew = 30
	// firstPause and longestPause are between watches that fail.
	firstPause, longestPause = time.Second, 30 * time.Second
)

// follow watches a kind until the context ends, or the caller may not watch it any more.
func (f *feed) follow(ctx context.Context, k *followed, version string) {
	pause := firstPause
	for {
		begun := time.Now()
		var err error
		version, err = f.watch(ctx, k, version)
		if isExpired(err) {
			version, err = f.reload(ctx, k, version)
		}
		withheld, err := withhold(err)
		switch {
		case ctx.Err() != nil:
			return
		case withheld != nil:
			f.narrow(withheld)
			return
		case apierrors.IsUnauthorized(err):
			f.end(err)
			return
		case err != nil:
			f.log.Warn("a watch failed", "kind", k.kind, "namespace", f.namespace, "error", err)
			pause = min(longestPause, max(firstPause, 2*pause))
		case time.Since(begun) >= firstPause:
			pause = 0
		default:
			pause = firstPause
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// sleep waits; false says that the context has ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// watch tells changes of a kind from a version on, and returns the version at its end.
func (f *feed) watch(ctx context.Context, k *followed, version string) (string, error) {
	w, err := f.cluster.Watch(ctx, k.newList(), &client.ListOptions{
		Namespace: f.namespace,
		Raw:       &metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: new(int64(askAnew)), AllowWatchBookmarks: true},
	})
	if err != nil {
		return version, f.watchError(k, err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case e, open := <-w.ResultChan():
			if !open {
				return version, nil
			}
			if e.Type == watch.Error {
				return version, f.watchError(k, apierrors.FromObject(e.Object))
			}
			version = f.tell(k, e, version)
		}
	}
}

func (f *feed) watchError(k *followed, err error) error {
	return &requestError{verb: "watch", kind: k.kind, namespace: f.namespace, err: err}
}

// tell takes one change, and returns its version.
func (f *feed) tell(k *followed, e watch.Event, version string) string {
	o, is := e.Object.(client.Object)
	if !is {
		return version
	}
	switch e.Type {
	case watch.Added, watch.Modified:
		f.take(k, o)
	case watch.Deleted:
		f.forget(k, o)
	case watch.Bookmark, watch.Error:
	}
	return o.GetResourceVersion()
}

// reload reads a kind whose changes the API server has dropped, and tells the events since then.
func (f *feed) reload(ctx context.Context, k *followed, version string) (string, error) {
	objects, next, err := readVersion[client.Object](ctx, f.cluster, k.kind, k.newList, f.namespace)
	if err != nil {
		return version, err
	}
	told := f.newsOf(k, objects)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, news := range told {
		f.ring.Append(news...)
	}
	f.wake()
	return next, nil
}
