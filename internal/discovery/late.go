// SPDX-License-Identifier: Apache-2.0

package discovery

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

	"github.com/plumbline-dev/plumbline/internal/elected"
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
	// toldEvery is how often Events are made of one object, of so many objects at most: ten
	// thousand proxies may be late at one moment, and all Services when the API server's
	// watches are.
	toldEvery   = 10 * time.Minute
	toldObjects = 100
)

// lateEvents make an Event on a Service of which a route was sent before its endpoints
// were acknowledged.
type lateEvents struct {
	recorder events.EventRecorder
	// service finds one; nil when it is not there.
	service func(namespace, name string) *corev1.Service
	told    telling
}

// telling bounds how many Events there are of one kind.
type telling struct {
	now func() time.Time

	mu sync.Mutex
	// at is when an Event was made of an object.
	at map[types.NamespacedName]time.Time
}

// late tells of a route that a proxy was sent. The route of a gateway is that of no
// Service, and is counted and logged alone.
func (l *lateEvents) late(p identity.Proxy, route string) {
	namespace, name, found := envoyxds.ServiceOf(ads.Key{Type: ads.Route, Name: route})
	if !found || !l.told.due(types.NamespacedName{Namespace: namespace, Name: name}) {
		return
	}
	if service := l.service(namespace, name); service != nil {
		note := fmt.Sprintf("the proxy of pod %s/%s was sent route %s before it had acknowledged the endpoints of all variations. Until it has them, requests may fail. "+
			"kubectl plumbline proxies shows its resources; other proxies are not reported for ten minutes.", p.Namespace, p.Pod, route)
		l.recorder.Eventf(service, nil, corev1.EventTypeWarning, "RouteLate", "Serve", "%s", diff.TruncateText(diff.Printable(note), maxNote))
	}
}

// due says that no Event was made of an object for long, and notes that one is.
func (t *telling) due(name types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for other, at := range t.at {
		if now.Sub(at) >= toldEvery {
			delete(t.at, other)
		}
	}
	if _, is := t.at[name]; is || len(t.at) >= toldObjects {
		return false
	}
	if t.at == nil {
		t.at = map[types.NamespacedName]time.Time{}
	}
	t.at[name] = now
	return true
}

// newRecorder records Events until ctx ends. Every replica does: the streams of a proxy
// are with one, which need not lead.
func newRecorder(ctx context.Context, config *rest.Config, log logr.Logger) (events.EventRecorder, error) {
	kinds, err := elected.Kinds()
	if err != nil {
		return nil, err
	}
	api, err := eventsv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of Events: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: api})
	if err := broadcaster.StartRecordingToSinkWithContext(logr.NewContext(ctx, log)); err != nil {
		return nil, fmt.Errorf("recording Events: %w", err)
	}
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(kinds, eventReporter), nil
}

// service as it is cached; nil when it is not there.
func (s *sources) service(namespace, name string) *corev1.Service {
	var service corev1.Service
	if s.cache.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, &service) != nil {
		return nil
	}
	return &service
}
