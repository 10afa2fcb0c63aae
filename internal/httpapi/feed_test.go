// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
	"github.com/plumbline-dev/plumbline/internal/httpapi/streamtest"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// watchedKindOf is the kind of the items of a list.
func watchedKindOf(list client.ObjectList) string {
	return strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List")
}

func mayNot(verb, resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: resource}, "", fmt.Errorf("User \"alice\" cannot %s resource %q in API group \"plumbline.dev\" at the cluster scope", verb, resource))
}

// refusing refuses lists of kinds.
func refusing(kinds ...string) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		for _, kind := range kinds {
			if watchedKindOf(list) == kind {
				return mayNot("list", kind)
			}
		}
		return c.List(ctx, list, opts...)
	}}
}

func TestAStreamSaysOnceWhichKindsItLacks(t *testing.T) {
	for _, sort := range sorts {
		t.Run(sort, func(t *testing.T) {
			onStage(t, refusing("Baseline", "RemediationPolicy"), func(t *testing.T, s *stage) {
				first, second := s.listenTo(sort, ""), s.listenTo(sort, "") // of one feed
				defer first.Leave()
				defer second.Leave()
				s.create(newPlan("shop", "plan"))
				for _, l := range []*streamtest.Listener{first, second} {
					for _, e := range s.hear(l, wire.EventNarrowed, wire.EventNarrowed, "plan.created")[:2] {
						if e.ID != "" || e.Status != "forbidden" || !strings.HasPrefix(e.Message, "you may not list ") {
							t.Errorf("the notice is %+v", e)
						}
					}
				}
			})
		})
	}
}

func TestACallerWhoMayReadNothingGetsNoStream(t *testing.T) {
	kinds := []string{"RemediationPlan", "ABRelease", "Baseline", "RemediationPolicy"}
	for query, refused := range map[string][]string{"": kinds, "?namespace=shop": kinds[:3]} {
		a := newAnswers(t, newCluster(t, refusing(refused...)))
		p := a.wantProblem(a.get(eventsPath+query), wire.Forbidden, "")
		if p.Right == nil || p.Right.Verb != "list" || p.Right.Kind != kinds[0] {
			t.Errorf("%q: the right is %+v", query, p.Right)
		}
	}
}

func TestWithoutTheAPIServerThereIsNoStream(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewServiceUnavailable("it starts")
	}}))
	a.wantProblem(a.get(eventsPath), wire.Unavailable, "")
}

// watches are those that a feed has begun, by kind, and the test is the API server.
type watches struct {
	mu   sync.Mutex
	open map[string]*watch.FakeWatcher
	// begun counts the watches of each kind.
	begun map[string]int
	// refusal refuses further ones.
	refusal error
}

func (w *watches) hooks() interceptor.Funcs {
	return interceptor.Funcs{Watch: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		in := &client.ListOptions{}
		in.ApplyOptions(opts)
		if in.Raw == nil || in.Raw.TimeoutSeconds == nil || *in.Raw.TimeoutSeconds != askAnew {
			return nil, apierrors.NewBadRequest("a watch of no end")
		}
		kind := watchedKindOf(list)
		w.begun[kind]++
		if w.refusal != nil {
			return nil, w.refusal
		}
		w.open[kind] = watch.NewFake()
		return w.open[kind], nil
	}}
}

func newWatches() *watches {
	return &watches{open: map[string]*watch.FakeWatcher{}, begun: map[string]int{}}
}

// endAll ends the watches, as the API server does after a while; each of them begins again, or is refused.
func (w *watches) endAll(refusal error) {
	w.mu.Lock()
	w.refusal = refusal
	open := w.open
	w.open = map[string]*watch.FakeWatcher{}
	w.mu.Unlock()
	for _, watcher := range open {
		watcher.Stop()
	}
	pass(2 * firstPause)
}

func TestAStreamGoesOnAcrossWatches(t *testing.T) {
	w := newWatches()
	onStage(t, w.hooks(), func(t *testing.T, s *stage) {
		l := s.listenTo(sorts[1], "")
		defer l.Leave()
		p := newPlan("shop", "plan")
		w.open["RemediationPlan"].Add(p)
		s.hear(l, "plan.created")
		w.endAll(nil)
		// The server that is away, and back again.
		w.endAll(apierrors.NewServiceUnavailable("it restarts"))
		w.endAll(nil)
		pass(longestPause)
		// The changes that the watch left out come with the next one, and no event comes twice.
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		p.Status.Phase, p.Status.StartTime = v1alpha1.PlanRunning, &now
		p.Status.History = []v1alpha1.PlanEvent{{Event: "plan.started", EventTime: now}}
		w.open["RemediationPlan"].Modify(p)
		s.hear(l, "plan.started")
		w.open["RemediationPlan"].Delete(p)
		w.open["RemediationPlan"].Action(watch.Bookmark, &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "99"}})
		synctest.Wait()
		if w.begun["RemediationPlan"] < 3 {
			t.Errorf("the watches are %v", w.begun)
		}
	})
}

func TestAWatchThatIsTooOldLosesNoEvent(t *testing.T) {
	w := newWatches()
	onStage(t, w.hooks(), func(t *testing.T, s *stage) {
		l := s.listenTo(sorts[1], "")
		defer l.Leave()
		s.create(newPlan("shop", "plan")) // no watch tells of it
		gone := apierrors.NewResourceExpired("too old").Status()
		w.open["RemediationPlan"].Error(&gone)
		s.hear(l, "plan.created")
	})
}

func TestARightThatIsTakenAwayNarrowsTheStreamAndThenEndsIt(t *testing.T) {
	w := newWatches()
	onStage(t, w.hooks(), func(t *testing.T, s *stage) {
		l := s.listenTo(sorts[0], "")
		defer l.Leave()
		refused := mayNot("watch", "baselines").(apierrors.APIStatus).Status()
		w.open["Baseline"].Error(&refused)
		if e := s.hear(l, wire.EventNarrowed)[0]; e.Status != "forbidden" {
			t.Errorf("the notice is %+v", e)
		}
		w.open["RemediationPlan"].Add(newPlan("shop", "plan"))
		s.hear(l, "plan.created")
		w.endAll(mayNot("watch", "all"))
		s.hear(l, wire.EventNarrowed, wire.EventNarrowed, wire.EventNarrowed)
		if _, err := l.Next(); websocket.CloseStatus(err) != closeForbidden {
			t.Errorf("the stream ends with %v", err)
		}
	})
}

func TestACallerWhoIsNotKnownAnyMoreEndsTheStream(t *testing.T) {
	w := newWatches()
	onStage(t, w.hooks(), func(t *testing.T, s *stage) {
		l := s.listenTo(sorts[0], "")
		defer l.Leave()
		w.endAll(apierrors.NewUnauthorized("the token has ended"))
		if _, err := l.Next(); websocket.CloseStatus(err) != closeUnauthenticated {
			t.Errorf("the stream ends with %v", err)
		}
		s.cluster.user.Username = anonymous
		s.wantProblem(s.get(eventsPath), wire.Unauthenticated, "")
	})
}

func TestALappedStreamIsToldSo(t *testing.T) {
	f := newFeed(newCluster(t, interceptor.Funcs{}), nil, "shop")
	f.ring = events.NewRing(2)
	k := &followedKinds[0]
	plan := func(n int, at int64) *v1alpha1.RemediationPlan {
		p := newPlan("shop", "plan")
		p.UID, p.CreationTimestamp = p.UID[:35]+types.UID(strconv.Itoa(n)), metav1.Unix(at, 0)
		return p
	}
	slow, _ := f.subscribe(nil)
	quick := slow
	for n := range 3 {
		f.take(k, plan(n, int64(1000*n)))
		if news, _, _ := f.next(&quick); len(news) != 1 || news[0].Type != wire.EventPlanCreated {
			t.Errorf("plan %d: a stream that reads gets %+v", n, news)
		}
	}
	news, _, _ := f.next(&slow)
	if len(news) != 1 || news[0].Type != wire.EventResync || eventOf(t, news[0]).Namespace != "shop" {
		t.Errorf("a stream that was lapped gets %+v", news)
	}
	if news, _, _ := f.next(&slow); len(news) != 0 {
		t.Errorf("it is told twice: %+v", news)
	}
	if _, first := f.subscribe(&events.ID{Second: 1000}); len(first) != 0 {
		t.Errorf("a stream that lost no event begins with %+v", first)
	}
	if at, first := f.subscribe(&events.ID{Second: 0}); len(first) != 1 || first[0].Type != wire.EventResync || at.place != f.ring.Head() {
		t.Errorf("a stream that may have lost events begins with %+v at %+v", first, at)
	}
}

func TestABurstWakesAStreamTwentyTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(nil, nil, "")
		const bursts = 1000
		done := make(chan int)
		go func() {
			at, wakes := position{}, 0
			for heard := 0; heard < bursts; {
				news, changed, _ := f.next(&at)
				if heard += len(news); len(news) == 0 {
					<-changed
					wakes++
				}
			}
			done <- wakes
		}()
		for i := range bursts {
			f.take(&followedKinds[0], &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: strconv.Itoa(i), UID: types.UID("uid-" + strconv.Itoa(i))}})
			<-time.After(time.Millisecond)
		}
		if wakes := <-done; wakes > 21 {
			t.Errorf("%d events of one second woke the stream %d times", bursts, wakes)
		}
	})
}

func TestAnEventAfterAPauseWakesAStreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(nil, nil, "")
		for i := range 3 {
			_, changed, _ := f.next(&position{place: f.ring.Head()})
			f.take(&followedKinds[0], &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID("uid-" + strconv.Itoa(i))}})
			select {
			case <-changed:
			default:
				t.Fatalf("event %d waits", i)
			}
			<-time.After(newsEvery)
		}
	})
}

func TestTheStreamsOfAFeedShareTheBytesOfAnEvent(t *testing.T) {
	f := newFeed(newCluster(t, interceptor.Funcs{}), nil, "")
	f.take(&followedKinds[0], newPlan("shop", "plan"))
	one, _, _ := f.next(&position{})
	other, _, _ := f.next(&position{})
	if len(one) != 1 || len(other) != 1 || &one[0].Text[0] != &other[0].Text[0] {
		t.Errorf("two streams have the events %+v and %+v", one, other)
	}
}
