// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// whole keeps everything of each namespace.
func whole(string) Detail { return DetailWhole }

func keepWhole(schema.GroupVersionKind, string) Detail { return DetailWhole }

// wholeBut keeps nothing of one namespace.
func wholeBut(namespace string) func(string) Detail {
	return func(of string) Detail {
		if of == namespace {
			return DetailNone
		}
		return DetailWhole
	}
}

func compactJSON(t *testing.T, raw string) string {
	t.Helper()
	var v any
	must(t, json.Unmarshal([]byte(raw), &v))
	out, err := json.Marshal(v)
	must(t, err)
	return string(out)
}

func TestStreamEvents(t *testing.T) {
	object := compactJSON(t, deploymentJSON)
	tests := map[string]struct {
		input       string
		want        []string
		wantReports int
	}{
		"events in order": {
			input: `{"type":"ADDED","object":` + object + `}` + "\n" + `{"type":"MODIFIED","object":` + object + `}` + "\n" +
				`{"type":"DELETED","object":` + object + `}` + "\n",
			want: []string{"ADDED web", "MODIFIED web", "DELETED web"},
		},
		"a bookmark carries a version and no body": {
			input: `{"type":"BOOKMARK","object":{"kind":"Deployment","metadata":{"resourceVersion":"9"}}}`,
			want:  []string{"BOOKMARK "},
		},
		"objects of namespaces that do not count are dropped": {
			input: `{"type":"ADDED","object":` + strings.ReplaceAll(object, `"shop"`, `"kube-system"`) + `}`,
		},
		"an error of the API server is passed on as it is": {
			input: `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}`,
			want:  []string{"ERROR Expired"},
		},
		"a broken frame becomes an error, not a silent end": {
			input:       `{"type":"ADDED","object":[]}`,
			want:        []string{"ERROR InternalError"},
			wantReports: 1,
		},
		"an unknown event is an error": {
			input:       `{"type":"SURPRISE","object":{}}`,
			want:        []string{"ERROR InternalError"},
			wantReports: 1,
		},
		"a response cut off in the middle ends like one that is complete": {
			input: `{"type":"ADDED","object":` + object + `}` + "\n" + `{"type":"ADD`,
			want:  []string{"ADDED web"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reports := 0
			s := newStream(io.NopCloser(strings.NewReader(tc.input)), func() {}, deployments,
				intake{keep: wholeBut("kube-system")}, func(error) { reports++ })
			var got []string
			for e := range s.ResultChan() {
				what := ""
				switch o := e.Object.(type) {
				case *Object:
					what = o.Name
				case *metav1.Status:
					what = string(o.Reason)
				}
				got = append(got, string(e.Type)+" "+what)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if reports != tc.wantReports {
				t.Errorf("%d errors were reported, want %d", reports, tc.wantReports)
			}
		})
	}
}

func TestStopEndsAStreamThatNobodyReads(t *testing.T) {
	r, w := io.Pipe()
	s := newStream(r, func() { _ = r.CloseWithError(context.Canceled) }, deployments,
		intake{keep: whole}, func(err error) { t.Errorf("reported %v", err) })
	go func() {
		for {
			if _, err := io.WriteString(w, `{"type":"ADDED","object":`+deploymentJSON+`}`); err != nil {
				return
			}
		}
	}()
	<-s.ResultChan()
	s.Stop()
	s.Stop()
	for e := range s.ResultChan() {
		if e.Type != watch.Added {
			t.Errorf("after the stop came %s", e.Type)
		}
	}
}

// TestTrackerAgainstAServer runs a Tracker against a small HTTP server: list,
// watch, a connection that breaks, and a kind that may not be read.
func TestTrackerAgainstAServer(t *testing.T) {
	object := compactJSON(t, deploymentJSON)
	events := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "forbidden"):
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`, http.StatusForbidden)
		case r.URL.Query().Get("watch") == "":
			_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"7"},"items":[%s]}`, object)
		default:
			if r.URL.Query().Get("sendInitialEvents") == "true" {
				_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n"+`{"type":"BOOKMARK","object":{"metadata":`+
					`{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", object)
			}
			w.(http.Flusher).Flush()
			for {
				select {
				case e := <-events:
					_, _ = io.WriteString(w, e)
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}
	}))
	defer server.Close()
	var mu sync.Mutex
	seen := map[Key]int{}
	news := make(chan struct{}, 100)
	failed := make(chan error, 100)
	tracker, err := NewTracker(&rest.Config{Host: server.URL}, keepWhole, 0, clock.RealClock{}, logr.Discard(),
		Hooks{Failed: func(_ schema.GroupVersionKind, err error) {
			select {
			case failed <- err:
			default:
			}
		}})
	must(t, err)
	tracker.Subscribe(func(key Key) {
		mu.Lock()
		seen[key]++
		mu.Unlock()
		news <- struct{}{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer tracker.Wait()
	defer cancel()
	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	tracker.Watch(ctx, []Resource{{GVK: deployments, Plural: "deployments"}, {GVK: pods, Plural: "forbidden"}})
	key := Key{GroupVersionKind: deployments, Namespace: "shop", Name: "web"}

	receive(t, news)
	if v := tracker.View(key); v.Unknown != nil || v.Current == nil || len(v.Pending) != 0 {
		t.Fatalf("after the list: %+v", v)
	}
	if err := receive(t, failed); err == nil || tracker.Health(pods).Failure == nil {
		t.Errorf("a forbidden kind is healthy: %v", err)
	}
	if v := tracker.View(Key{GroupVersionKind: pods, Namespace: "shop", Name: "x"}); v.Unknown == nil {
		t.Error("a forbidden kind says that an object is absent")
	}
	next := strings.NewReplacer(`"resourceVersion":"7"`, `"resourceVersion":"8"`, "shop/web:1", "shop/web:2").Replace(object)
	events <- `{"type":"MODIFIED","object":` + next + `}` + "\n"
	receive(t, news)
	v := tracker.View(key)
	if len(v.Pending) != 1 || !v.Pending[0].Contiguous || v.Pending[0].Prev.ResourceVersion != "7" {
		t.Fatalf("after the write: %+v", v.Pending)
	}
	tracker.Settle(key, v.Pending)
	tracker.Watch(ctx, nil)
	if v := tracker.View(key); !errors.Is(v.Unknown, ErrNotWatched) {
		t.Errorf("a kind that is not watched any more says %v", v.Unknown)
	}
}

func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	return poll.Receive(t, 10*time.Second, "the channel has something new", ch)
}
