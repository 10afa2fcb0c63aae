// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// ErrNotWatched says that no guard names the kind.
var ErrNotWatched = errors.New("the kind is not watched")

// Hooks are told what happens in a Tracker; nil ones are left out.
type Hooks struct {
	// Overflow: an object changed faster than its transitions were settled.
	Overflow func(Key)
	// Failed: a request for a kind failed; the watch goes on trying.
	Failed func(schema.GroupVersionKind, error)
	// Synced: a kind was listed for the first time; from now on what is not
	// there is absent.
	Synced func(schema.GroupVersionKind)
	// Listing: a kind is about to be listed; the list waits for it to return.
	Listing func(context.Context, Resource)
}

// Tracker watches kinds and keeps every transition of their objects until it is
// settled. Its methods may be called from any goroutine.
type Tracker struct {
	client  rest.Interface
	schemas *schemas
	keep    func(schema.GroupVersionKind, string) Detail
	quota   *quota
	clock   clock.PassiveClock
	hooks   Hooks
	log     logr.Logger

	mu         sync.Mutex
	kinds      map[schema.GroupVersionKind]*kindWatch
	subscriber func(Key)
	running    sync.WaitGroup
}

type kindWatch struct {
	store     *store
	listWatch *listWatch
	stop      context.CancelFunc
}

// NewTracker returns a Tracker that watches nothing yet. keep tells how much is kept of the
// objects of a kind in a namespace. budget bounds the bytes that all objects take; zero is
// no bound.
func NewTracker(config *rest.Config, keep func(gvk schema.GroupVersionKind, namespace string) Detail, budget int64,
	clk clock.PassiveClock, log logr.Logger, hooks Hooks,
) (*Tracker, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config.QPS = -1 // the API server's priority and fairness decides
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for watches: %w", err)
	}
	return &Tracker{
		client: client, schemas: &schemas{client: client, clock: clk}, keep: keep, quota: newQuota(budget),
		clock: clk, hooks: hooks, log: log, kinds: map[schema.GroupVersionKind]*kindWatch{},
	}, nil
}

// Subscribe names who is told of every object that has news. Objects already
// known are told at once, so the order of Subscribe and Watch does not matter.
func (t *Tracker) Subscribe(changed func(Key)) {
	t.mu.Lock()
	t.subscriber = changed
	t.mu.Unlock()
	t.Each(changed)
}

// Watch makes the watched kinds exactly these: new ones are listed and watched
// until ctx ends, others are forgotten.
func (t *Tracker) Watch(ctx context.Context, resources []Resource) {
	wanted := make(map[schema.GroupVersionKind]Resource, len(resources))
	for _, r := range resources {
		wanted[r.GVK] = r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for gvk, w := range t.kinds {
		if _, ok := wanted[gvk]; !ok {
			w.stop()
			t.quota.forget(w.store)
			delete(t.kinds, gvk)
		}
	}
	for gvk, r := range wanted {
		if t.kinds[gvk] == nil {
			t.kinds[gvk] = t.start(ctx, r)
		}
	}
}

func (t *Tracker) start(ctx context.Context, r Resource) *kindWatch {
	ctx, cancel := context.WithCancel(ctx)
	s := newStore(r.GVK, t.clock.Now, t.quota, t.changed, t.overflow, t.synced)
	lw := &listWatch{
		client: t.client, resource: r, listing: t.hooks.Listing, schemas: t.schemas,
		intake: intake{
			keep:   func(namespace string) Detail { return t.keep(r.GVK, namespace) },
			arrive: func(o *Object) { t.quota.admitObject(s, o) },
		},
		restart: func() { t.quota.resetArrivals(s) },
		report: func(err error) {
			s.report(err)
			if err != nil && ctx.Err() == nil {
				t.failed(r.GVK, err)
			}
		},
	}
	reflector := cache.NewReflectorWithOptions(contextFree{lw}, &Object{}, s, cache.ReflectorOptions{
		Name: "guarded " + r.GVK.String(), TypeDescription: r.GVK.String(), Logger: &t.log,
	})
	t.running.Go(func() { reflector.RunWithContext(ctx) })
	return &kindWatch{store: s, listWatch: lw, stop: cancel}
}

// relistOutdated lists each kind anew whose schema is another than at its last list.
func (t *Tracker) relistOutdated(ctx context.Context) {
	t.mu.Lock()
	watches := slices.Collect(maps.Values(t.kinds))
	t.mu.Unlock()
	for _, w := range watches {
		if w.listWatch.hasNewSchema(ctx) {
			w.listWatch.interruptWatch()
		}
	}
}

// Wait returns when the watches of an ended context have ended.
func (t *Tracker) Wait() { t.running.Wait() }

// View returns what is known of one object.
func (t *Tracker) View(key Key) View {
	s := t.store(key.GroupVersionKind)
	if s == nil {
		return View{Unknown: ErrNotWatched}
	}
	return s.view(nsName{key.Namespace, key.Name})
}

// Settle tells that the transitions a View handed out are dealt with.
func (t *Tracker) Settle(key Key, seen []Transition) {
	if s := t.store(key.GroupVersionKind); s != nil {
		s.settle(nsName{key.Namespace, key.Name}, seen)
	}
}

// Each calls f for every object that is known.
func (t *Tracker) Each(f func(Key)) {
	for _, gvk := range t.Kinds() {
		if s := t.store(gvk); s != nil {
			for _, id := range s.ids() {
				f(s.key(id))
			}
		}
	}
}

// Kinds lists what is watched.
func (t *Tracker) Kinds() []schema.GroupVersionKind {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Keys(t.kinds), func(a, b schema.GroupVersionKind) int {
		return cmp.Compare(a.String(), b.String())
	})
}

// Health says how the watch of a kind does.
type Health struct {
	// Synced: the kind was listed at least once.
	Synced bool
	// Failure is the last request's error, nil when it succeeded.
	Failure error
	// FailingSince is when requests began to fail; zero when they do not.
	FailingSince time.Time
	// Contact is when the API server last sent anything for the kind.
	Contact time.Time
	// Progress is the version that the watch has come to.
	Progress string
}

// Health returns the state of a kind's watch; a kind that is not watched is not synced.
func (t *Tracker) Health(gvk schema.GroupVersionKind) Health {
	s := t.store(gvk)
	if s == nil {
		return Health{Failure: ErrNotWatched}
	}
	return s.health()
}

func (t *Tracker) store(gvk schema.GroupVersionKind) *store {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.kinds[gvk]; w != nil {
		return w.store
	}
	return nil
}

func (t *Tracker) changed(key Key) {
	t.mu.Lock()
	subscriber := t.subscriber
	t.mu.Unlock()
	if subscriber != nil {
		subscriber(key)
	}
}

func (t *Tracker) overflow(key Key) {
	if t.hooks.Overflow != nil {
		t.hooks.Overflow(key)
	}
}

func (t *Tracker) synced(gvk schema.GroupVersionKind) {
	if t.hooks.Synced != nil {
		t.hooks.Synced(gvk)
	}
}

func (t *Tracker) failed(gvk schema.GroupVersionKind, err error) {
	if t.hooks.Failed != nil {
		t.hooks.Failed(gvk, err)
	}
}
