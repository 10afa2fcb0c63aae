// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/endpoints"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// ErrUnsynced says that it is not known yet what there is.
var ErrUnsynced = errors.New("the caches of the mesh are not synced yet")

// Window lets whoever decides about splits look at the mesh that this process serves.
// It outlives those who look through it, and may be used by many at once.
type Window struct {
	mu       sync.Mutex
	from     *sources
	watchers map[*watcher]bool
	// seen is what was seen of each split that is in force, by Service.
	seen map[types.NamespacedName]map[types.NamespacedName]string
}

type watcher struct {
	changed func(release types.NamespacedName)
}

// NewWindow is closed until the caches are synced.
func NewWindow() *Window {
	return &Window{watchers: map[*watcher]bool{}, seen: map[types.NamespacedName]map[types.NamespacedName]string{}}
}

// opened are the caches; it is [ErrUnsynced] before anything is known.
func (w *Window) opened() (*sources, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.from == nil {
		return nil, ErrUnsynced
	}
	return w.from, nil
}

// Prospect is what would become of a Service if it were divided so, and what would be
// wrong with that. It is [ErrUnsynced] before anything is known.
func (w *Window) Prospect(ctx context.Context, split traffic.Split) (ir.Mesh, error) {
	from, err := w.opened()
	if err != nil {
		return ir.Mesh{}, err
	}
	return from.prospect(ctx, split)
}

// Count has the endpoints of variations counted in the caches that there are, so that pods are not
// cached twice. It is [ErrUnsynced] before anything is known.
func (w *Window) Count(ctx context.Context, split traffic.Split) (of map[string]traffic.Endpoints, found bool, err error) {
	from, err := w.opened()
	if err != nil {
		return nil, false, err
	}
	return endpoints.Counter{Reader: from.cache, Quarantined: from.quarantined}.Count(ctx, split)
}

// Services are those that there are. It is [ErrUnsynced] before anything is known.
func (w *Window) Services(ctx context.Context) (map[types.NamespacedName]bool, error) {
	from, err := w.opened()
	if err != nil {
		return nil, err
	}
	var list corev1.ServiceList
	if err := from.list(ctx, &list); err != nil {
		return nil, err
	}
	there := make(map[types.NamespacedName]bool, len(list.Items))
	for i := range list.Items {
		there[types.NamespacedName{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name}] = true
	}
	return there, nil
}

// Watch has changed called when other endpoints or problems are seen of a split that
// is in force, before proxies are told of them, until stop is. It must not block.
func (w *Window) Watch(changed func(release types.NamespacedName)) (stop func()) {
	of := &watcher{changed}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers[of] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watchers, of)
	}
}

func (w *Window) open(from *sources) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = from
}

// see compares what is seen of the splits of parts that were built anew with what was.
func (w *Window) see(parts map[types.NamespacedName]ir.Part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for service, part := range parts {
		now := sights(part)
		for name, sight := range now {
			if w.seen[service][name] != sight {
				for of := range w.watchers {
					of.changed(name)
				}
			}
		}
		if delete(w.seen, service); len(now) > 0 {
			w.seen[service] = now
		}
	}
}

// sights of the splits of a Service.
func sights(part ir.Part) map[types.NamespacedName]string {
	var service ir.Service
	if part.Service != nil && part.Service.Routing != nil {
		service = *part.Service
	}
	now := map[types.NamespacedName]string{}
	for _, split := range part.Splits {
		var problems strings.Builder
		for _, p := range part.Problems {
			if p.Object == (ir.Object{Kind: releaseKind, Namespace: split.Namespace, Name: split.Name}) {
				problems.WriteString(p.String() + "\n")
			}
		}
		now[types.NamespacedName{Namespace: split.Namespace, Name: split.Name}] = fmt.Sprint(service.Endpoints(), problems.String())
	}
	return now
}
