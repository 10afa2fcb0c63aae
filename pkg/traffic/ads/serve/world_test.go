// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/test/harness/grpcpipe"
)

// resource whose content is a text.
func resource(kind ads.Type, name, content string) *ads.Resource {
	body, err := proto.Marshal(&anypb.Any{TypeUrl: kind.URL(), Value: []byte(content)})
	if err != nil {
		panic(err)
	}
	return &ads.Resource{Type: kind, Name: name, Version: ads.Version{Hash: content[:min(len(content), 20)]}, Body: body}
}

// nothing stands for what is not there.
func nothing(ads.Key) *ads.Resource { return nil }

// ending of a pod.
type ending struct {
	context.Context
	end context.CancelFunc
}

// world is a server, and the directory and the observer of it.
type world struct {
	t      testing.TB
	server *serve.Server
	group  *serve.Group
	client discovery.AggregatedDiscoveryServiceClient

	mu      sync.Mutex
	ended   map[string]ending // by token
	opened  int
	refused map[codes.Code]int
	bounds  map[serve.Bound]int
	effects []ads.Effect
	closed  []error
}

func newWorld(t testing.TB, config serve.Config) *world {
	return newWorldOf(t, config, func(w *world) serve.Directory { return w })
}

// newWorldOf is one whose directory is another.
func newWorldOf(t testing.TB, config serve.Config, directory func(*world) serve.Directory) *world {
	w := &world{t: t, group: serve.NewGroup(nil), ended: map[string]ending{}, refused: map[codes.Code]int{}, bounds: map[serve.Bound]int{}}
	w.server = serve.New(config, directory(w), serve.NewProofs(), nothing, w)
	w.client = discovery.NewAggregatedDiscoveryServiceClient(grpcpipe.Dial(t, w.server.Register, serve.Options()...))
	return w
}

// Admit implements serve.Directory: a token is the name of a pod.
func (w *world) Admit(_ context.Context, authorization []string) (serve.Admission, error) {
	token, err := identity.Bearer(authorization)
	if err != nil {
		return serve.Admission{}, status.Error(codes.Unauthenticated, err.Error())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended[token].end == nil {
		ctx, end := context.WithCancel(context.Background())
		w.ended[token] = ending{ctx, end}
	}
	return serve.Admission{Proxy: identity.Proxy{Namespace: "shop", Pod: token, PodUID: token}, Group: w.group, Ended: w.ended[token].Context}, nil
}

func (w *world) Opened(identity.Proxy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened++
}

func (w *world) Closed(_ identity.Proxy, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = append(w.closed, why)
}

func (w *world) Refused(code codes.Code, at serve.Bound) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[code]++
	if at != "" {
		w.bounds[at]++
	}
}

// refusals by code, so far.
func (w *world) refusals() map[codes.Code]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.refused)
}

// ended at bounds, so far.
func (w *world) atBounds() map[serve.Bound]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.bounds)
}

func (w *world) Happened(_ identity.Proxy, e ads.Effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects = append(w.effects, e)
}

func (w *world) Sent(identity.Proxy, *ads.Send, int) {}

// proxy is a client that does what it is told.
type proxy struct {
	t      testing.TB
	stream grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]
}

func (w *world) connect(pod string) proxy {
	w.t.Helper()
	ctx := w.t.Context()
	if pod != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+pod)
	}
	stream, err := w.client.DeltaAggregatedResources(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return proxy{w.t, stream}
}

// envoy is what one says about itself.
func envoy(minor uint32) *corev3.Node {
	return &corev3.Node{Id: "web-0", UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{
		Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: minor},
	}}}
}

func (p proxy) ask(kind ads.Type, names ...string) {
	p.send(&discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: kind.URL(), ResourceNamesSubscribe: names})
}

func (p proxy) send(r *discovery.DeltaDiscoveryRequest) {
	p.t.Helper()
	if err := p.stream.Send(r); err != nil && !strings.Contains(err.Error(), "EOF") { // why, Recv says
		p.t.Fatal(err)
	}
}

// gets a response and acknowledges it; the result is "type name=content …, -removed".
func (p proxy) gets() string {
	p.t.Helper()
	r, err := p.stream.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
	return told(r)
}

func told(r *discovery.DeltaDiscoveryResponse) string {
	kind, _ := ads.TypeOf(r.GetTypeUrl())
	words := []string{kind.String()}
	for _, resource := range r.GetResources() {
		words = append(words, resource.GetName()+"="+string(resource.GetResource().GetValue()))
	}
	for _, name := range r.GetRemovedResources() {
		words = append(words, "-"+name)
	}
	slices.Sort(words[1:])
	return strings.Join(words, " ")
}

// ends with a code.
func (p proxy) ends() *status.Status {
	p.t.Helper()
	for {
		if _, err := p.stream.Recv(); err != nil {
			return status.Convert(err)
		}
	}
}
