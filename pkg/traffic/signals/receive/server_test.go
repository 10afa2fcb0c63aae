// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
	"github.com/plumbline-dev/plumbline/test/harness/grpcpipe"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// ending of a pod.
type ending struct {
	context.Context
	end context.CancelFunc
}

// world is a server, and the directory and the observer of it.
type world struct {
	t      *testing.T
	server *receive.Server
	client metricsv3.MetricsServiceClient

	mu       sync.Mutex
	ended    map[string]ending // by token
	left     int
	streams  int
	messages int
	rejected map[receive.Reason]int
}

func newWorld(t *testing.T, config receive.Config) *world {
	w := &world{t: t, ended: map[string]ending{}, rejected: map[receive.Reason]int{}}
	w.server = receive.New(config, w, w, time.Now)
	w.client = metricsv3.NewMetricsServiceClient(grpcpipe.Dial(t, w.server.Register, serve.Options()...))
	return w
}

// Admit implements receive.Directory: a token is the name of a pod, which has the
// clusters of the service shop/web.
func (w *world) Admit(_ context.Context, authorization []string) (receive.Admission, error) {
	token, err := identity.Bearer(authorization)
	if err != nil {
		return receive.Admission{}, status.Error(codes.Unauthenticated, err.Error())
	}
	if token == "early" {
		return receive.Admission{}, status.Error(codes.Unavailable, "try again")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended[token].end == nil {
		ctx, end := context.WithCancel(context.Background())
		w.ended[token] = ending{ctx, end}
	}
	return receive.Admission{
		Proxy: identity.Proxy{Namespace: "shop", Pod: token, PodUID: token}, Ended: w.ended[token].Context,
		Has: func(cluster string) bool { return strings.HasPrefix(cluster, "shop/web|") },
		Leave: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.left++
		},
	}, nil
}

func (w *world) Streams(change int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams += change
}

func (w *world) Received(int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages++
}

func (w *world) Rejected(why receive.Reason, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rejected[why] += times
}

type stream struct {
	t *testing.T
	grpc.ClientStreamingClient[metricsv3.StreamMetricsMessage, metricsv3.StreamMetricsResponse]
}

func (w *world) connect(pod string) stream {
	w.t.Helper()
	ctx := w.t.Context()
	if pod != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+pod)
	}
	s, err := w.client.StreamMetrics(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return stream{w.t, s}
}

// tell of so many requests.
func (s stream) tell(cluster string, n float64) {
	s.t.Helper()
	label := &dto.LabelPair{Name: new("envoy.cluster_name"), Value: &cluster}
	if err := s.Send(&metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{{
		Name: new("cluster.upstream_rq_completed"), Type: dto.MetricType_COUNTER.Enum(),
		Metric: []*dto.Metric{{Label: []*dto.LabelPair{label}, Counter: &dto.Counter{Value: &n}}},
	}}}); err != nil && !strings.Contains(err.Error(), "EOF") { // why, the end says
		s.t.Fatal(err)
	}
}

// ends by the server.
func (s stream) ends() *status.Status {
	s.t.Helper()
	err := s.RecvMsg(&metricsv3.StreamMetricsResponse{})
	return status.Convert(err)
}

// counted waits until so many requests of a variation are.
func (w *world) counted(want map[string]uint64) {
	w.t.Helper()
	poll.Until(w.t, patience, "what was told is counted", func() error {
		got := map[string]uint64{}
		for _, v := range w.server.Service("shop", "web", time.Now().Add(-time.Minute)).Variations {
			got[v.Name] = v.Total[signals.Completed]
		}
		if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("(-want +got):\n%s", d)
		}
		return nil
	})
}

// seen waits until that is what the observer was told.
func (w *world) seen(streams int, rejected map[receive.Reason]int) {
	w.t.Helper()
	poll.Until(w.t, patience, "it is told", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if d := cmp.Diff(rejected, w.rejected); d != "" || w.streams != streams {
			return fmt.Errorf("%d streams, want %d, and what was refused (-want +got):\n%s", w.streams, streams, d)
		}
		return nil
	})
}

func TestWhatProxiesCountIsAddedUp(t *testing.T) {
	w := newWorld(t, receive.Config{})
	a, b := w.connect("a"), w.connect("b")
	a.tell("shop/web|80|stable", 5)
	b.tell("shop/web|80|stable", 3)
	b.tell("shop/web|80|canary", 2)
	b.tell("shop/other|80|canary", 2) // not its own
	w.counted(map[string]uint64{"stable": 8, "canary": 2})
	w.seen(2, map[receive.Reason]int{receive.ReasonCluster: 1})
	if _, err := a.CloseAndRecv(); err != nil {
		t.Errorf("a stream that its proxy ends, ends with %v", err)
	}
	w.seen(1, map[receive.Reason]int{receive.ReasonCluster: 1})
	if cells, lost := w.server.Cells(signals.Position{}, 10); lost || len(cells) > 4 {
		t.Errorf("%d cells are told, lost %v", len(cells), lost)
	}
}

func TestAStreamIsRefused(t *testing.T) {
	w := newWorld(t, receive.Config{Streams: 2, Signals: signals.Config{Proxies: 1}})
	kept := w.connect("a")
	kept.tell("shop/web|80|stable", 1)
	w.counted(map[string]uint64{"stable": 1})
	w.connect("a")
	w.seen(2, map[receive.Reason]int{})
	for name, tc := range map[string]struct {
		pod  string
		code codes.Code
		why  receive.Reason
	}{
		"without a token":                 {"", codes.Unauthenticated, receive.ReasonToken},
		"while nothing is known":          {"early", codes.Unavailable, receive.ReasonUnavailable},
		"when the pod has too many":       {"a", codes.ResourceExhausted, receive.ReasonStreams},
		"when there are too many proxies": {"b", codes.ResourceExhausted, receive.ReasonProxies},
	} {
		t.Run(name, func(t *testing.T) {
			if end := w.connect(tc.pod).ends(); end.Code() != tc.code {
				t.Errorf("it ends with %v, want %v", end, tc.code)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.rejected[tc.why] != 1 {
				t.Errorf("what is told is %v", w.rejected)
			}
		})
	}
}

func TestAStreamThatCannotBeReadEnds(t *testing.T) {
	w := newWorld(t, receive.Config{})
	s := w.connect("a")
	s.tell("shop/web|80|stable", -1)
	if end := s.ends(); end.Code() != codes.Internal || !strings.Contains(end.Message(), "-1 counts nothing") {
		t.Errorf("it ends with %v", end)
	}
	large := w.connect("a")
	if err := large.Send(&metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{{Help: new(strings.Repeat("x", 5<<20))}}}); err != nil {
		t.Fatal(err)
	}
	if end := large.ends(); end.Code() != codes.ResourceExhausted {
		t.Errorf("it ends with %v", end)
	}
	w.seen(0, map[receive.Reason]int{receive.ReasonMessage: 2})
}

func TestAStreamEndsWithItsPod(t *testing.T) {
	w := newWorld(t, receive.Config{})
	s := w.connect("a")
	s.tell("shop/web|80|stable", 1)
	w.counted(map[string]uint64{"stable": 1})
	w.ended["a"].end()
	if end := s.ends(); end.Code() != codes.PermissionDenied {
		t.Errorf("it ends with %v", end)
	}
	w.seen(0, map[receive.Reason]int{})
	if got := w.server.Service("shop", "web", time.Now()); got.Variations[0].Proxies != 1 {
		t.Errorf("%d proxies tell of it: who is to come back still does", got.Variations[0].Proxies)
	}
	w.server.Ended("a")
	if got := w.server.Service("shop", "web", time.Now()); got.Variations[0].Proxies != 0 {
		t.Errorf("%d proxies tell of it", got.Variations[0].Proxies)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left != 1 {
		t.Errorf("it leaves %d times", w.left)
	}
}

func TestAPodThatEndsWithoutAStreamIsForgottenToo(t *testing.T) {
	w := newWorld(t, receive.Config{})
	s := w.connect("a")
	s.tell("shop/web|80|stable", 1)
	w.counted(map[string]uint64{"stable": 1})
	if _, err := s.CloseAndRecv(); err != nil {
		t.Fatal(err)
	}
	w.server.Ended("a")
	if got := w.server.Service("shop", "web", time.Now()); got.Variations[0].Proxies != 0 {
		t.Errorf("%d proxies tell of it", got.Variations[0].Proxies)
	}
}
