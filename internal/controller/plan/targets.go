// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// The pause before a watch that ended, or could not begin, is begun anew.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Targets watches the targets that plans wait for, each by a watch of that one object, which
// begins with the wait and ends with it. A change wakes the plan. The watch itself decides
// nothing: the plan reads its target live.
type Targets struct {
	// Open begins a watch of one target from a version, or from now if that is empty.
	Open  func(ctx context.Context, target exec.Sighting) (kubewatch.Interface, error)
	Clock clock.WithTicker
	Log   logr.Logger

	vigil Vigil
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// watches are those under way, by plan.
	watches map[types.NamespacedName]map[exec.Reference]*targetWatch
	running sync.WaitGroup
	ended   bool
}

// targetWatch is the watch of one target for one plan.
type targetWatch struct {
	plan types.NamespacedName
	stop context.CancelFunc
	// open says that the watch is under way, and last is the last version that it told.
	open bool
	last string
}

// OpenMetadata returns a function that watches the metadata of targets: each write of an
// object moves its version.
func OpenMetadata(client metadata.Interface, mapper meta.RESTMapper) func(context.Context, exec.Sighting) (kubewatch.Interface, error) {
	return func(ctx context.Context, target exec.Sighting) (kubewatch.Interface, error) {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: target.Group, Kind: target.Kind}, target.Version)
		if err != nil {
			return nil, fmt.Errorf("finding where %s is served: %w", target.Kind, err)
		}
		w, err := client.Resource(mapping.Resource).Namespace(target.Namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, target.Name).String(),
			ResourceVersion: target.ResourceVersion,
		})
		if err != nil {
			return nil, fmt.Errorf("watching %s %s/%s: %w", target.Kind, target.Namespace, target.Name, err)
		}
		return w, nil
	}
}

// Attach is the source of a controller: it takes the queue of the controller.
func (t *Targets) Attach(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = queue
	return nil
}

// Start implements manager.Runnable: it ends all watches with ctx.
func (t *Targets) Start(ctx context.Context) error {
	<-ctx.Done()
	t.mu.Lock()
	t.ended = true
	for plan := range t.watches {
		t.keep(plan, nil) //nolint:contextcheck // it ends watches, and begins none
	}
	t.mu.Unlock()
	t.running.Wait()
	return nil
}

// Watch implements TargetWatcher.
func (t *Targets) Watch(plan types.NamespacedName, targets []exec.Sighting) (watched bool) {
	t.vigil.Saw(plan, targets, t.Clock.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(plan, targets)
	watched = true
	for _, target := range targets {
		w := t.watches[plan][target.Reference]
		watched = watched && w.open
		t.wake(w, exec.Sighting{Reference: target.Reference, ResourceVersion: w.last}) // the change may have come during the look
	}
	return watched
}

// keep begins the watches of a plan that are not under way, and ends those of other targets;
// t is locked.
func (t *Targets) keep(plan types.NamespacedName, targets []exec.Sighting) {
	before, next := t.watches[plan], map[exec.Reference]*targetWatch{}
	for _, target := range targets {
		w := before[target.Reference]
		if w == nil {
			w = t.begin(plan, target)
		}
		next[target.Reference] = w
	}
	for of, w := range before {
		if next[of] == nil {
			w.stop()
		}
	}
	if t.watches == nil {
		t.watches = map[types.NamespacedName]map[exec.Reference]*targetWatch{}
	}
	if t.watches[plan] = next; len(next) == 0 {
		delete(t.watches, plan)
	}
}

// begin begins a watch, which outlives the call.
func (t *Targets) begin(plan types.NamespacedName, target exec.Sighting) *targetWatch {
	ctx, stop := context.WithCancel(context.Background())
	w := &targetWatch{plan: plan, stop: stop}
	if t.ended {
		stop()
		return w
	}
	t.running.Go(func() { t.follow(ctx, w, target) })
	return w
}

// follow watches a target until ctx ends.
func (t *Targets) follow(ctx context.Context, w *targetWatch, target exec.Sighting) {
	pause := firstPause
	for ctx.Err() == nil {
		stream, err := t.Open(ctx, target)
		if err == nil {
			pause = firstPause
			t.setOpen(w, true)
			t.drain(ctx, w, target.Reference, stream)
			t.setOpen(w, false)
		} else {
			t.Log.V(1).Info("a target is not watched; its plan looks at it by itself", "plan", w.plan, "error", err.Error())
		}
		target.ResourceVersion = "" // that version may be gone: the next watch begins with what is there
		timer := t.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
		pause = min(2*pause, lastPause)
	}
}

// drain tells of each version that a watch has, until the watch ends.
func (t *Targets) drain(ctx context.Context, w *targetWatch, of exec.Reference, stream kubewatch.Interface) {
	defer stream.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-stream.ResultChan():
			if !ok || e.Type == kubewatch.Error {
				return
			}
			if object, err := meta.Accessor(e.Object); err == nil {
				t.tell(w, exec.Sighting{Reference: of, ResourceVersion: object.GetResourceVersion()})
			}
		}
	}
}

func (t *Targets) setOpen(w *targetWatch, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.open = open
}

func (t *Targets) tell(w *targetWatch, now exec.Sighting) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.last = now.ResourceVersion
	t.wake(w, now)
}

// wake has the plan look again, if that is news to the plan; t is locked.
func (t *Targets) wake(w *targetWatch, now exec.Sighting) {
	if now.ResourceVersion == "" || t.queue == nil || !t.vigil.Wakes(w.plan, now) {
		return
	}
	t.queue.AddAfter(reconcile.Request{NamespacedName: w.plan}, max(0, t.vigil.Due(w.plan).Sub(t.Clock.Now())))
}
