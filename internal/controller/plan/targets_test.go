// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// streams are watches that a test tells of changes.
type streams struct {
	refuses error
	opened  chan opened
}

type opened struct {
	target exec.Sighting
	stream *kubewatch.FakeWatcher
}

func (s *streams) open(_ context.Context, target exec.Sighting) (kubewatch.Interface, error) {
	if s.refuses != nil {
		return nil, s.refuses
	}
	stream := kubewatch.NewFake()
	s.opened <- opened{target, stream}
	return stream, nil
}

// watching runs a test in a bubble, with targets and the queue of a controller.
func watching(t *testing.T, s *streams, test func(*testing.T, *Targets, func() time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.opened = make(chan opened, 10)
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		targets := &Targets{Open: s.open, Clock: clock.RealClock{}, Log: logr.Discard()}
		if err := targets.Attach(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- targets.Start(ctx) }()
		test(t, targets, func() time.Duration {
			begin := time.Now()
			request, _ := queue.Get()
			queue.Done(request)
			return time.Since(begin)
		})
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		queue.ShutDown()
	})
}

var first = types.NamespacedName{Namespace: "shop", Name: "first"}

func versionOf(version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: version}}
}

func TestATargetCountsAsWatchedOnceItsWatchIsUnderWay(t *testing.T) {
	watching(t, &streams{}, func(t *testing.T, targets *Targets, _ func() time.Duration) {
		if targets.Watch(first, []exec.Sighting{sightingOf("web", "100")}) {
			t.Error("a watch that has not begun counts as one")
		}
		synctest.Wait()
		if n := len(targets.watches[first]); n != 1 {
			t.Fatalf("%d watches are under way", n)
		}
		if !targets.Watch(first, []exec.Sighting{sightingOf("web", "100")}) {
			t.Error("the watch is not under way")
		}
	})
}

func TestAPlanIsWokenASecondAfterItsLookAtTheSoonest(t *testing.T) {
	s := &streams{}
	watching(t, s, func(t *testing.T, targets *Targets, woken func() time.Duration) {
		targets.Watch(first, []exec.Sighting{sightingOf("web", "100")})
		o := <-s.opened
		if o.target != sightingOf("web", "100") {
			t.Errorf("the watch begins with %+v", o.target)
		}
		o.stream.Modify(versionOf("100"))
		o.stream.Modify(versionOf("101"))
		if after := woken(); after != time.Second {
			t.Errorf("it is woken after %s", after)
		}
		// What was seen meanwhile is no news; what came during the look is.
		targets.Watch(first, []exec.Sighting{sightingOf("web", "101")})
		o.stream.Delete(versionOf("102"))
		if after := woken(); after != time.Second {
			t.Errorf("it is woken after %s", after)
		}
		targets.Watch(first, []exec.Sighting{sightingOf("web", "101")})
		if after := woken(); after != time.Second {
			t.Errorf("a change during the look wakes it after %s", after)
		}
	})
}

func TestAWatchEndsWithTheWait(t *testing.T) {
	s := &streams{}
	watching(t, s, func(t *testing.T, targets *Targets, _ func() time.Duration) {
		targets.Watch(first, []exec.Sighting{sightingOf("web", "100"), sightingOf("api", "100")})
		one, other := <-s.opened, <-s.opened
		if one.target.Name == "api" {
			one, other = other, one
		}
		targets.Watch(first, []exec.Sighting{sightingOf("web", "100")})
		synctest.Wait()
		if one.stream.IsStopped() || !other.stream.IsStopped() {
			t.Error("the watch of the target that is waited for goes on, and the other one ends")
		}
		targets.Watch(first, nil)
		synctest.Wait()
		if !one.stream.IsStopped() || len(targets.watches) != 0 {
			t.Error("the watch goes on although the plan waits no longer")
		}
	})
}

func TestAWatchThatEndsIsBegunAnewWithWhatIsThere(t *testing.T) {
	for name, end := range map[string]func(*kubewatch.FakeWatcher){
		"it ends":                         func(w *kubewatch.FakeWatcher) { w.Stop() },
		"its version is no longer stored": func(w *kubewatch.FakeWatcher) { w.Error(&metav1.Status{Code: 410}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &streams{}
			watching(t, s, func(t *testing.T, targets *Targets, woken func() time.Duration) {
				targets.Watch(first, []exec.Sighting{sightingOf("web", "100")})
				end((<-s.opened).stream)
				again := <-s.opened
				if again.target != sightingOf("web", "") {
					t.Errorf("it begins anew with %+v", again.target)
				}
				targets.Watch(first, []exec.Sighting{sightingOf("web", "100")})
				again.stream.Add(versionOf("101"))
				if after := woken(); after != time.Second {
					t.Errorf("it is woken after %s", after)
				}
			})
		})
	}
}

// A right to watch may be missing. The plan then looks by itself.
func TestATargetThatCannotBeWatchedCountsAsNotWatched(t *testing.T) {
	s := &streams{refuses: errors.New("forbidden")}
	watching(t, s, func(t *testing.T, targets *Targets, _ func() time.Duration) {
		for range 3 {
			if targets.Watch(first, []exec.Sighting{sightingOf("web", "100")}) {
				t.Error("it counts as watched")
			}
			synctest.Wait()
		}
		r := &Reconciler{Time: fixedTime{}, Cached: plansOf()}
		look := func(watched bool) time.Duration {
			return r.after(time.Time{}, r.latest(t.Context(), reconcile.Request{NamespacedName: first}, watched))
		}
		if got := look(false); got != unwatched {
			t.Errorf("the next look is after %s", got)
		}
		if got := look(true); got != atMost {
			t.Errorf("with a watch the next look is after %s", got)
		}
	})
}

type fixedTime struct{ exec.Time }
