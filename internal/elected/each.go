// SPDX-License-Identifier: Apache-2.0

package elected

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Each calls f for each object of a kind that the cache holds. f looks at the object in place and must
// not change it: a list is a copy of all objects, of 850 bytes for each Baseline.
func Each[T client.Object](ctx context.Context, informers cache.Informers, kind T, f func(T)) error {
	informer, err := informers.GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("reading the cache of %T: %w", kind, err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return fmt.Errorf("reading the cache of %T: the informer is a %T, which has no store", kind, informer)
	}
	for _, object := range shared.GetIndexer().List() {
		o, ok := object.(T)
		if !ok {
			return fmt.Errorf("reading the cache of %T: it holds a %T", kind, object)
		}
		f(o)
	}
	return nil
}
