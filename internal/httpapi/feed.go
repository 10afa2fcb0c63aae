// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/events"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ringSize is how many events a feed keeps.
const ringSize = 10_000

// followed is a kind that has events.
type followed struct {
	kind string
	// ofCluster says that the objects have no namespace. A feed of one namespace has no events of them.
	ofCluster bool
	newList   func() client.ObjectList
}

// followedKinds are the kinds that have events.
var followedKinds = []followed{
	{"RemediationPlan", false, func() client.ObjectList { return &v1alpha1.RemediationPlanList{} }},
	{"ABRelease", false, func() client.ObjectList { return &v1alpha1.ABReleaseList{} }},
	{"Baseline", false, func() client.ObjectList { return &v1alpha1.BaselineList{} }},
	{"RemediationPolicy", true, func() client.ObjectList { return &v1alpha1.RemediationPolicyList{} }},
}

// feed has the events of the objects that one caller may read, of one namespace or of all; or those of all objects, where the
// callers of a [Shared] cluster share one.
type feed struct {
	cluster   Cluster
	log       *slog.Logger
	namespace string
	// loaded is closed when the ring has the events of all objects, or the feed has ended.
	loaded chan struct{}

	mu   sync.Mutex
	ring *events.Ring
	// waiting are the events before all objects were told, by the uid of the object; nil afterwards, and for a feed that lists.
	waiting map[string][]events.Entry
	// seen are the events of each kind that the ring has had.
	seen map[string]*events.Seen
	// notices are about the feed itself.
	notices []events.Frame
	// changed is closed with the next change.
	changed chan struct{}
	// woken is when news woke the streams last. While due is true, a timer wakes them again.
	woken time.Time
	due   bool
	// refused is why the first of the kinds is missing, and failure why the feed has ended; nil before.
	refused, failure error
}

func newFeed(cluster Cluster, log *slog.Logger, namespace string) *feed {
	return &feed{
		cluster: cluster, log: log, namespace: namespace, loaded: make(chan struct{}), changed: make(chan struct{}),
		ring: events.NewRing(ringSize), seen: map[string]*events.Seen{},
	}
}

// run fills the feed until its context ends.
func (f *feed) run(ctx context.Context) {
	versions, err := f.load(ctx)
	if err != nil {
		f.end(err)
	}
	close(f.loaded)
	var following sync.WaitGroup
	for i := range followedKinds {
		k := &followedKinds[i]
		if version, found := versions[k.kind]; found {
			following.Go(func() { f.follow(ctx, k, version) })
		}
	}
	following.Wait()
}

// load reads all objects, in the order of their events, and returns the version of each kind. A kind that the
// caller may not read, or that is not installed, narrows the feed; without any kind there is no feed.
func (f *feed) load(ctx context.Context) (map[string]string, error) {
	versions := map[string]string{}
	var told [][]events.Entry
	for i := range followedKinds {
		k := &followedKinds[i]
		if k.ofCluster && f.namespace != "" {
			continue
		}
		objects, version, err := readVersion[client.Object](ctx, f.cluster, k.kind, k.newList, f.namespace)
		withheld, err := withhold(err)
		switch {
		case err != nil:
			return nil, err
		case withheld != nil:
			f.narrow(withheld)
			continue
		}
		versions[k.kind] = version
		told = append(told, f.newsOf(k, objects)...)
	}
	if len(versions) == 0 {
		return nil, f.ended()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring.Append(events.Merge(told)...)
	return versions, nil
}

// newsOf returns the events of objects that were not told before, and forgets all other objects of the kind.
func (f *feed) newsOf(k *followed, objects []client.Object) (told [][]events.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seenOf(k)
	there := map[string]bool{}
	for _, o := range objects {
		there[string(o.GetUID())] = true
		told = append(told, seen.News(string(o.GetUID()), events.Of(o)))
	}
	seen.Keep(there)
	return told
}

// seenOf returns the told events of a kind. The lock is held.
func (f *feed) seenOf(k *followed) *events.Seen {
	if f.seen[k.kind] == nil {
		f.seen[k.kind] = &events.Seen{}
	}
	return f.seen[k.kind]
}

// take tells the new events of an object.
func (f *feed) take(k *followed, o client.Object) {
	all := events.Of(o)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch news := f.seenOf(k).News(string(o.GetUID()), all); {
	case len(news) == 0:
	case f.waiting != nil:
		f.waiting[string(o.GetUID())] = append(f.waiting[string(o.GetUID())], news...)
	default:
		f.ring.Append(news...)
		f.wakeForNews()
	}
}

func (f *feed) forget(k *followed, o client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seenOf(k).Forget(string(o.GetUID()))
}

// narrow says that the feed lacks a kind from now on, and why. A feed that lacks each kind has ended.
func (f *feed) narrow(withheld error) {
	notice := f.narrowed(f.namespace, withheld)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notices = append(f.notices, notice)
	kinds := 0
	for i := range followedKinds {
		if !followedKinds[i].ofCluster || f.namespace == "" {
			kinds++
		}
	}
	if f.refused == nil {
		f.refused = withheld
	}
	if len(f.notices) >= kinds && f.failure == nil {
		f.failure = f.refused
	}
	f.wake()
}

// narrowed is the notice that a stream lacks a kind in a namespace, or in all, and why.
func (f *feed) narrowed(namespace string, withheld error) events.Frame {
	problem := ProblemOf(f.log, withheld)
	return events.NewFrame(&wire.Event{
		Type: wire.EventNarrowed, Namespace: namespace, Status: strings.TrimPrefix(problem.Type, wire.ProblemBase),
		Message: problem.Detail, Timestamp: f.cluster.Now().UTC(),
	})
}

// end ends the feed.
func (f *feed) end(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == nil {
		f.failure = why
	}
	f.wake()
}

// newsEvery is how often news wake the streams at most. Each stream takes all news at once, so a burst costs a stream one
// write in this time. The first event after a pause wakes the streams at once.
const newsEvery = 50 * time.Millisecond

// wakeForNews has each stream look again, at once or when newsEvery has passed. The lock is held.
func (f *feed) wakeForNews() {
	wait := newsEvery - time.Since(f.woken)
	switch {
	case f.due:
	case wait <= 0:
		f.woken = time.Now()
		f.wake()
	default:
		f.due = true
		time.AfterFunc(wait, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.due, f.woken = false, time.Now()
			f.wake()
		})
	}
}

// wake has each stream look again. The lock is held.
func (f *feed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) ended() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failure
}

// position is how far a stream is.
type position struct {
	notices int
	place   uint64
}

// subscribe returns the position behind an event, or behind all events where none is given. A stream that may
// have lost events begins with a notice of that.
func (f *feed) subscribe(last *events.ID) (at position, first []events.Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at.place = f.ring.Head()
	if last == nil {
		return at, nil
	}
	place, ok := f.ring.Resume(*last)
	if !ok {
		first = append(first, f.resync(f.namespace))
	}
	at.place = place
	return at, first
}

func (f *feed) resync(namespace string) events.Frame {
	return events.NewFrame(&wire.Event{
		Type: wire.EventResync, Namespace: namespace, Status: "lapped", Timestamp: f.cluster.Now().UTC(),
		Message: wire.EventsMayBeMissing,
	})
}

// batch is how many events a stream takes at once.
const batch = 64

// next returns the events behind a position, and moves the position. changed is closed with the next change, and nil where
// further events may wait behind these. failure is why no change comes.
func (f *feed) next(at *position) (news []events.Frame, changed <-chan struct{}, failure error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news = append(news, f.notices[at.notices:]...)
	at.notices = len(f.notices)
	read, place, lapped := f.ring.Read(at.place, batch)
	if lapped {
		news = append(news, f.resync(f.namespace))
	}
	at.place = place
	for i := range read {
		news = append(news, read[i].Frame)
	}
	if lapped || len(read) == batch {
		return news, nil, nil
	}
	return news, f.changed, f.failure
}

// read returns messages behind a place. A place that was dropped is lapped: next is then that from which the stream goes on. Without
// messages, changed is closed with the next change.
func (f *feed) read(place uint64) (read []events.Message, next uint64, lapped bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	read, next, lapped = f.ring.Read(place, batch)
	return read, next, lapped, f.changed
}
