// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAProxyGetsWhatThereIsAndWhatChanges(t *testing.T) {
	w := newWorld(t, serve.Config{})
	p := w.connect("web-0")
	p.ask(ads.Cluster)
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "1"), resource(ads.Endpoints, "a", "x")))
	want := func(text string) {
		t.Helper()
		if got := p.gets(); got != text {
			t.Fatalf("got %q, want %q", got, text)
		}
	}
	want("Cluster a=1")
	p.ask(ads.Endpoints, "a")
	want("Endpoints a=x")
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "1"), resource(ads.Cluster, "b", "2"), resource(ads.Endpoints, "a", "y")))
	want("Cluster b=2")
	want("Endpoints a=y")
	w.group.Publish(ads.NewView(resource(ads.Cluster, "b", "2")))
	want("Endpoints -a")
	p.ask(ads.Route, "none") // until then it may have one that names the cluster
	want("Cluster -a")
	want("Route -none")
}

func TestAStreamIsRefusedWhen(t *testing.T) {
	tests := map[string]struct {
		pod     string
		request *discovery.DeltaDiscoveryRequest
		code    codes.Code
		says    string
	}{
		"no token is shown":    {request: &discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Cluster.URL()}, code: codes.Unauthenticated, says: "no bearer token was sent"},
		"the Envoy is too old": {pod: "a", request: &discovery.DeltaDiscoveryRequest{Node: envoy(36), TypeUrl: ads.Cluster.URL()}, code: codes.FailedPrecondition, says: "Envoy 1.36.0 is not served: want 1.37"},
		"it does not say what it is": {pod: "b", request: &discovery.DeltaDiscoveryRequest{TypeUrl: ads.Cluster.URL()},
			code: codes.FailedPrecondition, says: "Envoy 0.0.0 is not served"},
		"a program of an unknown kind": {pod: "e", request: &discovery.DeltaDiscoveryRequest{Node: &corev3.Node{UserAgentName: "varnish"}, TypeUrl: ads.Cluster.URL()},
			code: codes.FailedPrecondition, says: "is not served"},
		"it asks for another type": {pod: "c", request: &discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: "type.googleapis.com/x"}, code: codes.InvalidArgument, says: `"type.googleapis.com/x" is not served`},
		"a request is too long": {pod: "d", request: &discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Cluster.URL(), ErrorDetail: nil,
			ResourceNamesSubscribe: []string{strings.Repeat("x", 5<<20)}}, code: codes.ResourceExhausted, says: "larger than max"},
		"a name is too long": {pod: "e", request: &discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Cluster.URL(),
			ResourceNamesSubscribe: []string{strings.Repeat("x", 5<<10)}}, code: codes.Internal, says: "5120 bytes, want at most 317"},
		"it asks for too many that are not there": {pod: "f", request: &discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Endpoints.URL(),
			ResourceNamesSubscribe: many(11)}, code: codes.ResourceExhausted, says: "11 names that are not there, want at most 10"},
	}
	w := newWorld(t, serve.Config{Names: 10})
	w.group.Publish(ads.NewView())
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := w.refusals()
			p := w.connect(tc.pod)
			p.t = t
			p.send(tc.request)
			if end := p.ends(); end.Code() != tc.code || !strings.Contains(end.Message(), tc.says) {
				t.Errorf("it ends with %v, want %v with %q", end, tc.code, tc.says)
			}
			before[tc.code]++
			// Of a message that cannot be read gRPC tells the proxy before it tells us.
			poll.Until(t, time.Minute, "it is counted", func() error {
				if diff := cmp.Diff(before, w.refusals()); diff != "" {
					return fmt.Errorf("counted as refused (-want +got):\n%s", diff)
				}
				return nil
			})
		})
	}
}

func many(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("n", i))
	}
	return names
}

// That a pod is deleted, or a proxy goes, refuses nobody.
func TestAStreamThatEndsIsNotCountedAsRefused(t *testing.T) {
	w := newWorld(t, serve.Config{})
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "1")))
	deleted, left := w.connect("deleted"), w.connect("left")
	for _, p := range []proxy{deleted, left} {
		p.ask(ads.Cluster)
		p.gets()
	}
	w.ended["deleted"].end()
	deleted.ends()
	if err := left.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	left.ends()
	if got := w.refusals(); len(got) > 0 {
		t.Errorf("counted as refused: %v", got)
	}
}

func TestStateOfTheWorldIsRefusedWithWhatToDo(t *testing.T) {
	w := newWorld(t, serve.Config{})
	stream, err := w.client.StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = stream.Recv(); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "DELTA_GRPC") {
		t.Errorf("got %v", err)
	}
}

func TestAStreamEndsWithItsPod(t *testing.T) {
	w := newWorld(t, serve.Config{})
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "1")))
	p := w.connect("web-0")
	p.ask(ads.Cluster)
	p.gets()
	w.ended["web-0"].end()
	if end := p.ends(); end.Code() != codes.PermissionDenied {
		t.Errorf("it ends with %v", end)
	}
}

func TestAPodHasAFewStreamsAtOnce(t *testing.T) {
	w := newWorld(t, serve.Config{Streams: 2})
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "1")))
	for range 2 {
		p := w.connect("web-0")
		p.ask(ads.Cluster)
		p.gets()
	}
	if end := w.connect("web-0").ends(); end.Code() != codes.ResourceExhausted || w.atBounds()[serve.BoundStreams] != 1 {
		t.Errorf("the third ends with %v, at bounds: %v", end, w.atBounds())
	}
	p := w.connect("web-1")
	p.ask(ads.Cluster)
	p.gets()
}

// Those that start are many after a power cut; those that have what they need are
// many after each restart of ours.
func TestProxiesThatStartWaitTheirTurnAndThoseThatComeBackDoNot(t *testing.T) {
	w := newWorld(t, serve.Config{Starting: 1, StartTime: time.Hour})
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "1")))
	first, second := w.connect("first"), w.connect("second")
	first.ask(ads.Cluster)
	first.gets()
	second.ask(ads.Cluster)
	answered := make(chan error, 1)
	go func() {
		_, err := second.stream.Recv()
		answered <- err
	}()
	for i := range 5 {
		back := w.connect(fmt.Sprint("back-", i))
		back.send(&discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Cluster.URL(), InitialResourceVersions: map[string]string{"a": "0.old"}})
		back.gets()
	}
	select {
	case err := <-answered:
		t.Fatalf("the second one does not wait: %v", err)
	default:
	}
	first.ask(ads.Listener) // the last thing that a proxy asks for
	if got := first.gets(); got != "Listener" {
		t.Fatalf("that there is none it is told as %q", got)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
}

func TestAProxyThatNeverStartsHoldsOthersUpForAWhileOnly(t *testing.T) {
	w := newWorld(t, serve.Config{Starting: 1, StartTime: 50 * time.Millisecond})
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "1")))
	for i := range 3 { // none asks for listeners
		p := w.connect(fmt.Sprint("web-", i))
		p.ask(ads.Cluster)
		p.gets()
	}
}

// A proxy that reads nothing holds nobody up, is seen, and gets the last state alone
// when it reads again.
func TestAProxyThatDoesNotReadCostsNobodyElseAnything(t *testing.T) {
	w := newWorld(t, serve.Config{})
	slow, quick := w.connect("slow"), w.connect("quick")
	slow.ask(ads.Cluster)
	quick.ask(ads.Cluster)
	padding := strings.Repeat("x", 1<<20) // more than a stream's window
	var last string
	for i := range 20 {
		last = fmt.Sprint(i, padding)
		w.group.Publish(ads.NewView(resource(ads.Cluster, "a", last)))
		if got := quick.gets(); got != "Cluster a="+last {
			t.Fatalf("the other one does not get %d", i)
		}
	}
	responses := 1
	for slow.gets() != "Cluster a="+last {
		responses++
	}
	if responses > 3 {
		t.Errorf("%d responses for one state", responses)
	}
}

func TestAProxyThatIsSentMoreThanItReadsIsShownAsBlocked(t *testing.T) {
	w := newWorld(t, serve.Config{Stream: ads.Config{Window: 1 << 30}})
	slow := w.connect("slow")
	slow.ask(ads.Cluster)
	var proxies []serve.Connected
	for i := 0; len(proxies) == 0 || !proxies[0].Blocked; i++ {
		w.group.Publish(ads.NewView(resource(ads.Cluster, "a", fmt.Sprint(i, strings.Repeat("x", 1<<20)))))
		proxies = w.server.Proxies(t.Context(), func(identity.Proxy) bool { return true })
	}
}

func TestWhatAProxyRefusesIsToldAndShown(t *testing.T) {
	w := newWorld(t, serve.Config{})
	p := w.connect("web-0")
	p.ask(ads.Cluster)
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "bad")))
	r, err := p.stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), ErrorDetail: status.New(codes.Internal, "malformed").Proto()})
	p.ask(ads.Listener, "l")
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "bad"), resource(ads.Listener, "l", "1")))
	for p.gets() != "Listener l=1" {
	}
	proxies := w.server.Proxies(t.Context(), func(identity.Proxy) bool { return true })
	if len(proxies) != 1 || proxies[0].Node != "web-0" || proxies[0].Version != [3]uint64{1, 40, 0} {
		t.Fatalf("the proxies are %+v", proxies)
	}
	if first := proxies[0].Resources[0]; first.Name != "a" || first.Stage != ads.Refused || first.Wants.Hash != "bad" {
		t.Errorf("it is shown as %+v", first)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.ContainsFunc(w.effects, func(e ads.Effect) bool {
		rejected, is := e.(ads.Rejected)
		return is && rejected.Message == "malformed" && rejected.Resource.Name == "a"
	}) {
		t.Errorf("what is told is %v", w.effects)
	}
}

func TestAProxyThatIsFarBehindGetsTheDifference(t *testing.T) {
	w := newWorld(t, serve.Config{})
	p := w.connect("web-0")
	p.ask(ads.Cluster)
	p.ask(ads.Route, "none") // so that it has no route that could name a cluster
	padding := strings.Repeat("x", 1<<20)
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", padding), resource(ads.Cluster, "gone", "1")))
	for i := range 200 { // while it does not read
		w.group.Publish(ads.NewView(resource(ads.Cluster, "a", fmt.Sprint(i))))
	}
	has := map[string]bool{}
	for !has["a=199"] || has["gone"] {
		r, err := p.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
		for _, c := range r.GetResources() {
			has[c.GetName()] = true
			has[c.GetName()+"="+string(c.GetResource().GetValue())] = true
		}
		for _, name := range r.GetRemovedResources() {
			delete(has, name)
		}
	}
}
