// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// controlPlane is what both servers of go-control-plane have in common. The group of a
// proxy is the cluster of its node.
type controlPlane struct {
	world    *world.World
	verifier *identity.Verifier
	acks     *Acks
	cache    cache.Cache
	// made are resources as go-control-plane wants them, one for all groups.
	made map[*ads.Resource]types.Resource

	mu      sync.Mutex
	streams map[int64]*watched
	nacks   int64
}

// watched is a stream, and the nonce under which it was sent what is waited for.
type watched struct{ proxy, nonce string }

func (c *controlPlane) init() {
	c.made, c.streams = map[*ads.Resource]types.Resource{}, map[int64]*watched{}
}

func (c *controlPlane) Register(g *grpc.Server) {
	discovery.RegisterAggregatedDiscoveryServiceServer(g, &handler{server: delta.NewServer(context.Background(), c.cache, c)})
	metricsv3.RegisterMetricsServiceServer(g, &dropped{verifier: c.verifier})
}

// handler is the service, of which there is the delta form alone.
type handler struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	server delta.Server
}

// DeltaAggregatedResources implements the service.
func (h *handler) DeltaAggregatedResources(s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return h.server.DeltaStreamHandler(s, resource.AnyType)
}

// OnDeltaStreamOpen implements delta.Callbacks.
func (c *controlPlane) OnDeltaStreamOpen(ctx context.Context, _ int64, _ string) error {
	_, _, err := admit(ctx, c.verifier)
	return err
}

// OnDeltaStreamClosed implements delta.Callbacks.
func (c *controlPlane) OnDeltaStreamClosed(id int64, _ *corev3.Node) {
	c.change(func() { delete(c.streams, id) })
}

func (c *controlPlane) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// OnStreamDeltaRequest implements delta.Callbacks.
func (c *controlPlane) OnStreamDeltaRequest(id int64, r *discovery.DeltaDiscoveryRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.GetNode() != nil && c.streams[id] == nil {
		c.streams[id] = &watched{proxy: r.GetNode().GetId()}
	}
	if r.GetErrorDetail() != nil {
		c.nacks++
		return nil
	}
	own, want := c.streams[id], c.acks.now.Load()
	if want == nil || own == nil || r.GetResponseNonce() == "" || own.nonce != r.GetResponseNonce() {
		return nil
	}
	own.nonce = ""
	want.acked(own.proxy)
	return nil
}

// OnStreamDeltaResponse implements delta.Callbacks.
func (c *controlPlane) OnStreamDeltaResponse(id int64, _ *discovery.DeltaDiscoveryRequest, r *discovery.DeltaDiscoveryResponse) {
	want := c.acks.now.Load()
	if want == nil || r.GetTypeUrl() != want.resource.Type.URL() {
		return
	}
	for _, sent := range r.GetResources() {
		if sent.GetName() == want.resource.Name && sent.GetVersion() == want.hash {
			c.change(func() {
				if own := c.streams[id]; own != nil {
					own.nonce = r.GetNonce()
				}
			})
		}
	}
}

func (c *controlPlane) Streams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}

func (c *controlPlane) Troubles() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]int64{"rejected": c.nacks}
}

func (c *controlPlane) Version(r *ads.Resource) (string, error) {
	made, err := c.convert(r)
	if err != nil {
		return "", err
	}
	body, err := cache.MarshalResource(made)
	return cache.HashResource(body), err
}

// convert a resource, once.
func (c *controlPlane) convert(r *ads.Resource) (types.Resource, error) {
	if made := c.made[r]; made != nil {
		return made, nil
	}
	packed := &anypb.Any{}
	if err := proto.Unmarshal(r.Body, packed); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", r.Type, r.Name, err)
	}
	made, err := packed.UnmarshalNew()
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", r.Type, r.Name, err)
	}
	c.made[r] = made
	return made, nil
}

// byType are the resources of a group.
func (c *controlPlane) byType(group int) (map[resource.Type][]types.Resource, error) {
	all := map[resource.Type][]types.Resource{}
	for _, r := range c.world.Visible(group) {
		made, err := c.convert(r)
		if err != nil {
			return nil, err
		}
		all[r.Type.URL()] = append(all[r.Type.URL()], made)
	}
	return all, nil
}

// snapshots serve a snapshot for each group, which is less than its users usually
// have: one for each proxy.
type snapshots struct {
	controlPlane
	cache  cache.SnapshotCache
	number int
}

// byCluster names the group of a node.
type byCluster struct{}

// ID implements cache.NodeHash.
func (byCluster) ID(n *corev3.Node) string { return n.GetCluster() }

func newSnapshots(w *world.World, verifier *identity.Verifier, acks *Acks) *snapshots {
	s := &snapshots{controlPlane: controlPlane{world: w, verifier: verifier, acks: acks}, cache: cache.NewSnapshotCache(true, byCluster{}, nil)}
	s.init()
	s.controlPlane.cache = s.cache
	return s
}

// Publish implements Server.
func (s *snapshots) Publish(groups []int, _ *ads.Resource) error {
	s.number++
	for _, g := range groups {
		resources, err := s.byType(g)
		if err != nil {
			return err
		}
		snapshot, err := cache.NewSnapshot(strconv.Itoa(s.number), resources)
		if err != nil {
			return fmt.Errorf("making a snapshot: %w", err)
		}
		if err := s.cache.SetSnapshot(context.Background(), strconv.Itoa(g), snapshot); err != nil {
			return fmt.Errorf("publishing a snapshot: %w", err)
		}
	}
	return nil
}

// linear serves from linear caches: of clusters and listeners, for which proxies ask
// without names, one for each group; of endpoints and routes one for all.
type linear struct {
	controlPlane
	caches map[string]*cache.LinearCache
}

func newLinear(w *world.World, verifier *identity.Verifier, acks *Acks) *linear {
	l := &linear{controlPlane: controlPlane{world: w, verifier: verifier, acks: acks}, caches: map[string]*cache.LinearCache{}}
	l.init()
	all := map[string]cache.Cache{}
	for _, t := range []ads.Type{ads.Cluster, ads.Endpoints, ads.Listener, ads.Route} {
		for g := range w.Groups() {
			name := cacheOf(t, strconv.Itoa(g))
			if l.caches[name] == nil {
				l.caches[name] = cache.NewLinearCache(t.URL())
				all[name] = l.caches[name]
			}
		}
	}
	l.cache = &cache.MuxCache{Caches: all, ClassifyDelta: func(r *cache.DeltaRequest) string {
		t, _ := ads.TypeOf(r.GetTypeUrl())
		return cacheOf(t, r.GetNode().GetCluster())
	}}
	return l
}

func cacheOf(t ads.Type, group string) string {
	if t == ads.Endpoints || t == ads.Route {
		return t.String()
	}
	return t.String() + " " + group
}

// Publish implements Server.
func (l *linear) Publish(groups []int, changed *ads.Resource) error {
	if changed == nil {
		return l.fill(groups)
	}
	made, err := l.convert(changed)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := l.caches[cacheOf(changed.Type, strconv.Itoa(g))].UpdateResource(changed.Name, made); err != nil {
			return fmt.Errorf("publishing %s: %w", changed.Name, err)
		}
		if changed.Type == ads.Endpoints || changed.Type == ads.Route {
			return nil // one for all
		}
	}
	return nil
}

func (l *linear) fill(groups []int) error {
	updates := map[string]map[string]types.Resource{}
	for _, g := range groups {
		for _, r := range l.world.Visible(g) {
			made, err := l.convert(r)
			if err != nil {
				return err
			}
			name := cacheOf(r.Type, strconv.Itoa(g))
			if updates[name] == nil {
				updates[name] = map[string]types.Resource{}
			}
			updates[name][r.Name] = made
		}
	}
	for name, resources := range updates {
		if err := l.caches[name].UpdateResources(resources, nil); err != nil {
			return fmt.Errorf("filling a cache: %w", err)
		}
	}
	return nil
}
