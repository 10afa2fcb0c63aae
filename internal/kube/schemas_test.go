// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// defaultingServer is an API server with one object, which it serves with a default as
// soon as its schema has one.
type defaultingServer struct {
	schema atomic.Int32
	// asked counts the questions about schemas, failing makes them fail.
	asked   atomic.Int32
	failing atomic.Bool
}

func (d *defaultingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/openapi/v3":
		d.asked.Add(1)
		if d.failing.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, `{"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=%d"}}}`, d.schema.Load())
	case "/version":
		_, _ = io.WriteString(w, `{"gitVersion":"v1.2.3"}`)
	default:
		d.watch(w, r)
	}
}

func (d *defaultingServer) watch(w http.ResponseWriter, r *http.Request) {
	body := strings.ReplaceAll(deploymentJSON, "\n", "")
	if d.schema.Load() > 0 {
		body = strings.Replace(body, `"replicas":`, `"paused": true, "replicas":`, 1)
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n"+`{"type":"BOOKMARK","object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":`+
			`{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", body)
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// H7 of the guard's review: while the assessor ran, the first writer after an upgrade
// got the new default of the API server attributed.
func TestANewSchemaIsListedAnewWhileTheWatchGoesOn(t *testing.T) {
	api := &defaultingServer{}
	server := httptest.NewServer(api)
	defer server.Close()
	tracker, err := NewTracker(&rest.Config{Host: server.URL}, keepWhole, 0, clock.RealClock{}, logr.Discard(), Hooks{})
	must(t, err)
	news := make(chan struct{}, 100)
	tracker.Subscribe(func(Key) { news <- struct{}{} })
	ctx, cancel := context.WithCancel(t.Context())
	defer tracker.Wait()
	defer cancel()
	tracker.Watch(ctx, []Resource{{GVK: deployments, Plural: "deployments"}})
	receive(t, news)
	tracker.relistOutdated(ctx)
	if len(news) > 0 {
		t.Fatal("an equal schema was listed anew")
	}
	api.schema.Store(1)
	must(t, waits.Until(ctx, time.Minute, "the kind is listed anew", func(ctx context.Context) error {
		tracker.relistOutdated(ctx)
		if len(news) == 0 {
			return fmt.Errorf("the API server was asked %d times", api.asked.Load())
		}
		return nil
	}))
	receive(t, news)
	key := Key{GroupVersionKind: deployments, Namespace: "shop", Name: "web"}
	v := tracker.View(key)
	if len(v.Pending) != 1 || !v.Pending[0].Contiguous || v.Pending[0].Prev.ResourceVersion != v.Pending[0].Next.ResourceVersion ||
		v.Pending[0].Prev.FullHash == v.Pending[0].Next.FullHash {
		t.Errorf("the default came as %+v", v.Pending)
	}
}

func TestAnUnknownSchemaIsNoNewSchema(t *testing.T) {
	api := &defaultingServer{}
	server := httptest.NewServer(api)
	defer server.Close()
	now := clocktesting.NewFakePassiveClock(time.Now())
	tracker, err := NewTracker(&rest.Config{Host: server.URL}, keepWhole, 0, now, logr.Discard(), Hooks{})
	must(t, err)
	lw := &listWatch{resource: Resource{GVK: deployments, Plural: "deployments"}, schemas: tracker.schemas}
	lw.beginList(t.Context())
	api.failing.Store(true)
	now.SetTime(now.Now().Add(time.Minute))
	asked := api.asked.Load()
	for range 3 {
		if lw.hasNewSchema(t.Context()) {
			t.Error("a schema that is not told is a new one")
		}
	}
	if got := api.asked.Load() - asked; got != 1 {
		t.Errorf("a failure was asked for %d times, want once for all callers", got)
	}
	api.failing.Store(false)
	now.SetTime(now.Now().Add(time.Minute))
	if lw.hasNewSchema(t.Context()) {
		t.Error("the same schema is a new one after a failure")
	}
}
