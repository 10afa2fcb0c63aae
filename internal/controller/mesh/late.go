// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/controller/elected"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

const (
	// eventReporter is how Events name who made them.
	eventReporter = "plumbline-xds"
	// maxNote is the API server's limit of an Event's note, in bytes.
	maxNote = 1024
	// lateEvery is how often an Event says of one Service that its routes are late, of so
	// many Services at most: ten thousand proxies may be late at one moment, and all
	// Services when the API server's watches are.
	lateEvery    = 10 * time.Minute
	lateServices = 100
)

// lateEvents make an Event on a Service of which a route was sent before its endpoints
// were confirmed.
type lateEvents struct {
	recorder events.EventRecorder
	// service finds one; nil when it is not there.
	service func(namespace, name string) *corev1.Service
	now     func() time.Time

	mu sync.Mutex
	// told are the Services of which it was said, and when.
	told map[types.NamespacedName]time.Time
}

// late tells of a route that a proxy was sent. The route of a gateway is that of no
// Service, and is counted and logged alone.
func (l *lateEvents) late(p identity.Proxy, route string) {
	namespace, name, found := envoyxds.ServiceOf(ads.Key{Type: ads.Route, Name: route})
	if !found || !l.due(types.NamespacedName{Namespace: namespace, Name: name}) {
		return
	}
	if service := l.service(namespace, name); service != nil {
		note := fmt.Sprintf("the proxy of pod %s/%s was sent route %s before it had confirmed the endpoints of all variations; until it has them requests may fail. "+
			"kubectl plumbline proxies shows what it has; other proxies are not told of for ten minutes.", p.Namespace, p.Pod, route)
		l.recorder.Eventf(service, nil, corev1.EventTypeWarning, "RouteLate", "Serve", "%s", diff.TruncateText(diff.Printable(note), maxNote))
	}
}

// due says that a Service was not told of for long, and notes that it is.
func (l *lateEvents) due(name types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for other, at := range l.told {
		if now.Sub(at) >= lateEvery {
			delete(l.told, other)
		}
	}
	if _, is := l.told[name]; is || len(l.told) >= lateServices {
		return false
	}
	l.told[name] = now
	return true
}

// newLateEvents records until ctx ends. Every replica does: the streams of a proxy are
// with one, which need not lead.
func newLateEvents(ctx context.Context, config *rest.Config, from *sources) (*lateEvents, error) {
	kinds, err := elected.Kinds()
	if err != nil {
		return nil, err
	}
	api, err := eventsv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of Events: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: api})
	if err := broadcaster.StartRecordingToSinkWithContext(logr.NewContext(ctx, from.log)); err != nil {
		return nil, fmt.Errorf("recording Events: %w", err)
	}
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return &lateEvents{
		recorder: broadcaster.NewRecorder(kinds, eventReporter), service: from.service, now: from.clock.Now,
		told: map[types.NamespacedName]time.Time{},
	}, nil
}

// service as it is cached; nil when it is not there.
func (s *sources) service(namespace, name string) *corev1.Service {
	var service corev1.Service
	if s.cache.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, &service) != nil {
		return nil
	}
	return &service
}
