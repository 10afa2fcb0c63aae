// SPDX-License-Identifier: Apache-2.0

// Package target has the servers that are measured: ours, and those of
// go-control-plane with its two caches. All serve the same resources, on the same
// options of gRPC and with the same check of tokens.
package target

import (
	"context"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/issuer"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// Kind of a server.
type Kind string

// The kinds.
const (
	Plumbline Kind = "plumbline"
	Snapshot  Kind = "snapshot"
	Linear    Kind = "linear"
)

// Server is one that is measured.
type Server interface {
	// Register with a gRPC server.
	Register(*grpc.Server)
	// Publish to these groups; changed is what differs, nil at the beginning.
	Publish(groups []int, changed *ads.Resource) error
	// Version is the text by which a resource's version is known to clients.
	Version(*ads.Resource) (string, error)
	// Streams that are open, and what went wrong so far, by its name.
	Streams() int
	Troubles() map[string]int64
}

// New makes a server of a kind, which has published everything.
func New(ctx context.Context, kind Kind, w *world.World, of *issuer.Issuer, acks *Acks) (Server, error) {
	verifier := identity.New(identity.Config{API: of, Pods: of})
	if err := verifier.ReadKeys(ctx); err != nil {
		return nil, err
	}
	var s Server
	switch kind {
	case Plumbline:
		s = newOurs(w, verifier, acks)
	case Snapshot:
		s = newSnapshots(w, verifier, acks)
	case Linear:
		s = newLinear(w, verifier, acks)
	default:
		return nil, fmt.Errorf("there is no server %q: want %s, %s or %s", kind, Plumbline, Snapshot, Linear)
	}
	groups := make([]int, w.Groups())
	for g := range groups {
		groups[g] = g
	}
	return s, s.Publish(groups, nil)
}

// ours is Plumbline's server, with itself as directory and observer.
type ours struct {
	world    *world.World
	verifier *identity.Verifier
	acks     *Acks
	groups   []*serve.Group
	server   *serve.Server
	counted  counted

	open                                                   atomic.Int64
	refused, late, stalled, stale, rejected, withheld, bad atomic.Int64
}

func newOurs(w *world.World, verifier *identity.Verifier, acks *Acks) *ours {
	o := &ours{world: w, verifier: verifier, acks: acks, groups: make([]*serve.Group, w.Groups())}
	for g := range o.groups {
		o.groups[g] = serve.NewGroup(nil)
	}
	o.counted.of = o
	o.server = serve.New(serve.Config{}, o, serve.NewProofs(), envoyxds.Missing, o)
	return o
}

func (o *ours) Register(s *grpc.Server) {
	o.server.Register(s)
	o.counted.register(s)
}

func (o *ours) Publish(groups []int, _ *ads.Resource) error {
	for _, g := range groups {
		o.groups[g].Publish(ads.NewView(o.world.Visible(g)...))
	}
	return nil
}

func (*ours) Version(r *ads.Resource) (string, error) { return r.Version.String(), nil }

func (o *ours) Streams() int { return int(o.open.Load()) }

func (o *ours) Troubles() map[string]int64 {
	return map[string]int64{
		"refused": o.refused.Load(), "late": o.late.Load(), "stalled": o.stalled.Load(), "stale": o.stale.Load(),
		"rejected": o.rejected.Load(), "withheld": o.withheld.Load(), "ended with an error": o.bad.Load(),
		"counts not taken": o.counted.rejected.Load(),
	}
}

// admit verifies the token of a stream, and says which proxy it is of.
func admit(ctx context.Context, v *identity.Verifier) (identity.Proxy, int, error) {
	token, err := identity.Bearer(metadata.ValueFromIncomingContext(ctx, "authorization"))
	if err != nil {
		return identity.Proxy{}, 0, status.Error(codes.Unauthenticated, err.Error())
	}
	p, err := v.Verify(ctx, token)
	if err != nil {
		return identity.Proxy{}, 0, status.Error(codes.Unauthenticated, err.Error())
	}
	n, err := issuer.Proxy(p.Pod)
	if err != nil {
		return identity.Proxy{}, 0, status.Error(codes.PermissionDenied, err.Error())
	}
	return p, n, nil
}

// Admit implements serve.Directory.
func (o *ours) Admit(ctx context.Context, _ []string) (serve.Admission, error) {
	p, n, err := admit(ctx, o.verifier)
	if err != nil {
		return serve.Admission{}, err
	}
	return serve.Admission{Proxy: p, Group: o.groups[o.world.Group(n)]}, nil
}

// Opened implements serve.Observer.
func (o *ours) Opened(identity.Proxy) { o.open.Add(1) }

// Closed implements serve.Observer.
func (o *ours) Closed(_ identity.Proxy, why error) {
	o.open.Add(-1)
	switch status.Code(why) {
	case codes.OK:
	case codes.Unavailable: // it is told to come back
		o.refused.Add(1)
	default:
		o.bad.Add(1)
	}
}

// Refused implements serve.Observer.
func (o *ours) Refused(codes.Code, serve.Bound) { o.refused.Add(1) }

// Sent implements serve.Observer.
func (*ours) Sent(identity.Proxy, *ads.Send, int) {}

// Happened implements serve.Observer.
func (o *ours) Happened(p identity.Proxy, e ads.Effect) {
	switch e := e.(type) {
	case ads.Acked:
		want := o.acks.now.Load()
		for _, r := range e.Resources {
			if want != nil && r == want.resource {
				want.acked(p.Pod)
			}
		}
	case ads.Late:
		o.late.Add(1)
	case ads.Stalled:
		o.stalled.Add(1)
	case ads.Stale:
		o.stale.Add(1)
	case ads.Ahead: // no store is put back here
	case ads.Rejected:
		o.rejected.Add(1)
	case ads.Withheld:
		o.withheld.Add(1)
	}
}
