// SPDX-License-Identifier: Apache-2.0

// Package fleet is many proxies of one process, each with a connection of its own.
package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/issuer"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/proxy"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/wire"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
)

// Config of a fleet.
type Config struct {
	Shape     world.Shape
	Addresses []string
	// Roots vouch for the server.
	Roots *x509.CertPool
	// Token of a proxy.
	Token func(proxy int) (string, error)
	// Counting has proxies tell what they count.
	Counting bool
}

// Fleet of proxies. They run from Start until its context ends.
type Fleet struct {
	config  Config
	tls     *tls.Config
	codec   codec
	routes  map[string]string
	slots   []string // that all proxies have
	members []*member
	running sync.WaitGroup

	complete atomic.Int64
	// last is when a proxy became complete, in nanoseconds of the epoch.
	last atomic.Int64
	// connected counts those that have a connection, or try to get one.
	connected atomic.Int64
	// closed is there while nobody is to come back, and closes when they may.
	closed atomic.Pointer[chan struct{}]
	// watched is what is waited for; nil for nothing.
	watched atomic.Pointer[Acknowledgments]
	// failed counts streams that ended without having been cut.
	failed atomic.Int64
}

// New makes a fleet; it knows the tokens of all.
func New(c Config) (*Fleet, error) {
	f := &Fleet{
		config: c, routes: c.Shape.RouteOf(), slots: c.Shape.Slots(world.All), codec: codec{&wire.Names{}},
		// The records of an Envoy have up to 16 KiB from the first on, and a server has
		// to have room for one.
		tls: &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true},
	}
	for i := range c.Shape.Proxies {
		token, err := c.Token(i)
		if err != nil {
			return nil, err
		}
		group := c.Shape.Group(i)
		node := wire.Node{ID: issuer.Pod(i), Cluster: strconv.Itoa(group)}
		m := &member{
			fleet: f, index: i, address: c.Addresses[i%len(c.Addresses)], authorization: "Bearer " + token, expects: c.Shape.Expects(group), node: node,
			proxy: proxy.New(node, func(l string) string { return f.routes[l] }, c.Shape.Route(world.All)),
		}
		m.mode.Store(proxy.Normal)
		f.members = append(f.members, m)
	}
	return f, nil
}

// Start all proxies at once.
func (f *Fleet) Start(ctx context.Context) {
	for _, m := range f.members {
		f.running.Go(func() { m.live(ctx) })
	}
}

// Wait until all have ended, which is when the context of Start has.
func (f *Fleet) Wait() { f.running.Wait() }

// Complete is how many have everything, and since when.
func (f *Fleet) Complete() (int, time.Time) {
	return int(f.complete.Load()), time.Unix(0, f.last.Load())
}

// Failed is how many streams have ended so far that were not cut.
func (f *Fleet) Failed() int64 { return f.failed.Load() }

// Await that all have everything; the result is how many have.
func (f *Fleet) Await(ctx context.Context) (int, time.Time) {
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for {
		n, at := f.Complete()
		if n == len(f.members) {
			return n, at
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return n, at
		}
	}
}

// Cut the connections of all, as a server that ends. They come back as Envoys do when
// the result is called, with what they have or, as if they were new, with nothing.
func (f *Fleet) Cut(ctx context.Context, forget bool) (open func(), err error) {
	door := make(chan struct{})
	f.closed.Store(&door)
	for _, m := range f.members {
		m.cut(forget)
	}
	open = func() {
		f.closed.Store(nil)
		close(door)
	}
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for f.connected.Load() > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			open()
			return nil, fmt.Errorf("cutting connections: %d are left: %w", f.connected.Load(), ctx.Err())
		}
	}
	return open, nil
}

// Churn replaces so many proxies per second by new ones, of those that keep says no to, until ctx
// ends; the result is how many.
func (f *Fleet) Churn(ctx context.Context, perSecond int, keep func(proxy int) bool) (n int) {
	next := time.NewTicker(time.Second / time.Duration(perSecond))
	defer next.Stop()
	for {
		select {
		case <-next.C:
			if i := rand.N(len(f.members)); !keep(i) {
				f.members[i].cut(true)
				n++
			}
		case <-ctx.Done():
			return n
		}
	}
}

// Behave in a mode, all whose index is a multiple of every; the others are normal.
func (f *Fleet) Behave(mode proxy.Mode, every int) {
	for i, m := range f.members {
		if Chosen(i, every) {
			m.mode.Store(mode)
		} else {
			m.mode.Store(proxy.Normal)
		}
	}
}

// Replace those whom Behave means by new ones.
func (f *Fleet) Replace(every int) {
	for i, m := range f.members {
		if Chosen(i, every) {
			m.cut(true)
		}
	}
}

// Chosen says whether Behave means a proxy.
func Chosen(index, every int) bool { return every > 0 && index%every == every-1 }

// codec writes requests and reads responses.
type codec struct{ names *wire.Names }

// Name implements encoding.CodecV2.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(interface{ Encode() []byte })
	if !ok {
		return nil, fmt.Errorf("encoding %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(r.Encode())}, nil
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	into, ok := v.(*wire.Response)
	if !ok {
		return fmt.Errorf("decoding %T", v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	var err error
	*into, err = wire.Decode(whole.ReadOnlyData(), c.names)
	return err
}

var errCut = errors.New("the connection was cut")

// delta is the method that proxies call.
const delta = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"

var description = grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
