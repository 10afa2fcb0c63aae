// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a cluster with the webhook's endpoints and Lease.
type place struct {
	mu      sync.Mutex
	ready   int
	holder  string
	renewed int
	err     error
}

func (p *place) set(change func(*place)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// hung is a holder that renews nothing.
const hung = "hung"

// reader answers from the place; the Lease is renewed at every look while held.
func (p *place) reader() client.Reader {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			slices := list.(*discoveryv1.EndpointSliceList)
			var slice discoveryv1.EndpointSlice
			for i := range p.ready {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{string(rune('a' + i))}})
			}
			// A pod that is not ready, and one that is listed twice.
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"z"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}})
			slices.Items = []discoveryv1.EndpointSlice{slice, slice}
			return p.err
		},
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			lease := object.(*coordinationv1.Lease)
			if p.holder != "" {
				lease.Spec.HolderIdentity = new(p.holder)
			}
			if p.holder != hung {
				p.renewed++
			}
			lease.ObjectMeta = metav1.ObjectMeta{ResourceVersion: string(rune('0' + p.renewed%10))}
			return p.err
		},
	})
}

// sweeps fail at first, as often as told.
type sweeps struct {
	windows  []Window
	failures int
}

func (s *sweeps) Sweep(_ context.Context, w Window) error {
	s.windows = append(s.windows, w)
	if len(s.windows) <= s.failures {
		return errors.New("no")
	}
	return nil
}

func watcherOf(t *testing.T, p *place, s Sweeper) *Watcher {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return &Watcher{
		Config: Config{Namespace: "plumbline-system", Service: "w", Lease: "w"},
		Reader: p.reader(), Sweeper: s, Metrics: metrics, Clock: clock.RealClock{}, Log: logr.Discard(),
	}
}

// story runs the watcher for a while, with changes of the place at given times.
func story(t *testing.T, w *Watcher, p *place, lasts time.Duration, changes map[time.Duration]func(*place)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	for after, change := range changes {
		time.AfterFunc(after, func() { p.set(change) })
	}
	if err := w.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

func seconds(w *Watcher, e Evidence) float64 {
	return testutil.ToFloat64(w.Metrics.seconds.WithLabelValues(string(e)))
}

func TestWatcher(t *testing.T) {
	healthy := func() *place { return &place{ready: 2, holder: "a"} }
	tests := map[string]struct {
		place     *place
		changes   map[time.Duration]func(*place)
		endpoints float64 // fail-open seconds
		lease     float64
		sweeps    int
		ready     float64
	}{
		"all is well": {place: healthy(), ready: 2},
		"nobody is ready for a while": {
			place: healthy(), ready: 1, endpoints: 25, sweeps: 1,
			changes: map[time.Duration]func(*place){
				31 * time.Second: func(p *place) { p.ready = 0 }, 51 * time.Second: func(p *place) { p.ready = 1 },
			},
		},
		"a holder that hangs while its endpoint stays ready": {
			place: healthy(), ready: 2, lease: 45, sweeps: 1,
			changes: map[time.Duration]func(*place){
				31 * time.Second: func(p *place) { p.holder = hung },
				71 * time.Second: func(p *place) { p.holder = "b" },
			},
		},
		"a lease that was given back tells nothing": {
			place: healthy(), ready: 2,
			changes: map[time.Duration]func(*place){31 * time.Second: func(p *place) { p.holder = "" }},
		},
		"what cannot be read opens no window": {
			place: healthy(), ready: 2,
			changes: map[time.Duration]func(*place){
				31 * time.Second: func(p *place) { p.err = errors.New("no") }, 41 * time.Second: func(p *place) { p.err = nil },
			},
		},
		"a window that is open is counted, and swept later": {
			place: healthy(), ready: 0, endpoints: 90,
			changes: map[time.Duration]func(*place){31 * time.Second: func(p *place) { p.ready = 0 }},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s sweeps
				w := watcherOf(t, tc.place, &s)
				story(t, w, tc.place, 2*time.Minute+time.Second, tc.changes)
				got := []float64{seconds(w, EvidenceEndpoints), seconds(w, EvidenceLease), float64(len(s.windows)), testutil.ToFloat64(w.Metrics.ready)}
				want := []float64{tc.endpoints, tc.lease, float64(tc.sweeps), tc.ready}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("seconds by endpoints, by lease, sweeps, ready (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestASweepThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{ready: 1}
		s := &sweeps{failures: 2}
		w := watcherOf(t, p, s)
		story(t, w, p, 81*time.Second, map[time.Duration]func(*place){
			6 * time.Second:  func(p *place) { p.ready = 0 },
			11 * time.Second: func(p *place) { p.ready = 1 },
		})
		if len(s.windows) != 3 { // at 15, 45 and 75 s
			t.Errorf("%d sweeps, want 3", len(s.windows))
		}
		failed, complete := w.Metrics.sweeps.WithLabelValues("failed"), w.Metrics.sweeps.WithLabelValues("complete")
		if testutil.ToFloat64(failed) != 2 || testutil.ToFloat64(complete) != 1 {
			t.Errorf("%v failed, %v complete", testutil.ToFloat64(failed), testutil.ToFloat64(complete))
		}
	})
}

func TestTheAPIServersOwnCount(t *testing.T) {
	count := "0"
	broken := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || broken {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("process_start_time_seconds 5\n" + failOpenMetric + `{name="verdict.plumbline.dev",type="validating"} ` + count + "\n"))
	}))
	defer server.Close()
	raw, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	var s sweeps
	w := watcherOf(t, &place{ready: 1}, &s)
	w.Raw, w.Config.APIServerPeriod = raw, time.Minute
	w.prepare()
	w.count(t.Context())
	count = "3"
	w.count(t.Context())
	w.sweep(t.Context())
	broken = true
	w.count(t.Context())
	if len(s.windows) != 1 || s.windows[0].Evidence != EvidenceAPIServer || testutil.ToFloat64(w.Metrics.calls) != 3 {
		t.Errorf("windows %v, %v calls", s.windows, testutil.ToFloat64(w.Metrics.calls))
	}
	if got := testutil.ToFloat64(w.Metrics.reads.WithLabelValues(sourceAPIServer)); got != 1 {
		t.Errorf("%v failed reads counted, want 1", got)
	}
}
