// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// sights has a release looked at when something else is seen of it.
func sights(watcher Watcher) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		stop := watcher.Watch(func(release types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: release}) })
		context.AfterFunc(ctx, stop)
		return nil
	})
}
