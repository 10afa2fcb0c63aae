// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

const (
	// patience is how long a replica may take until it has told everything.
	patience = 30 * time.Second
	// soonest and latest are how long it is waited before a replica is asked again.
	soonest, latest = 200 * time.Millisecond, 2 * time.Second
	// maxUpdate is what a replica may tell at once, in bytes.
	maxUpdate = 4 << 20
)

// Follower asks other replicas.
type Follower struct {
	// TLS says how they are known; it is asked for each connection.
	TLS func() (*tls.Config, error)
	// Token is what is shown to them; it is asked for each stream.
	Token func() (string, error)
	// Age is how old the watches of this replica are, which the others are told; may be nil.
	Age func() time.Duration
	// Orders are what the others are ordered, and Changed is closed when there is one more; may be nil.
	Orders  func() []Order
	Changed func() <-chan struct{}
	// Failed is told why a stream has ended.
	Failed func(address string, err error)
}

// Follow one replica until ctx ends.
func (f *Follower) Follow(ctx context.Context, address string, mirror *Mirror) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := soonest; ctx.Err() == nil; wait = min(2*wait, latest) {
		began := time.Now()
		if err := f.once(ctx, address, mirror); ctx.Err() == nil {
			f.Failed(address, err)
		}
		if time.Since(began) > patience {
			wait = soonest
		}
		timer.Reset(wait/2 + rand.N(wait)) //nolint:gosec // no secret
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// once follows one stream to its end.
func (f *Follower) once(ctx context.Context, address string, mirror *Mirror) error {
	config, err := f.TLS()
	if err != nil {
		return err
	}
	token, err := f.Token()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithNoProxy(), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(serve.Codec()), grpc.MaxCallRecvMsgSize(maxUpdate)))
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing is written that could be lost
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	silent := time.AfterFunc(Silence, func() { stop(errSilent) })
	defer silent.Stop()
	ordered := f.changed()
	stream, err := f.open(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), conn, mirror.Last())
	if err != nil {
		return told(ctx, err)
	}
	go f.tell(ctx, stream, ordered) // ends when ctx does, which is when this has returned
	return listen(ctx, stream, mirror, silent)
}

var (
	errSilent  = fmt.Errorf("it has not reported for %s", Silence)
	errEndless = fmt.Errorf("it has not come to an end within %s", patience)
)

// told is why a stream has ended.
func told(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		return cause
	}
	return fmt.Errorf("asking: %w", err)
}

func (f *Follower) open(ctx context.Context, conn *grpc.ClientConn, known signals.Position) (grpc.ClientStream, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{StreamName: method, ServerStreams: true, ClientStreams: true}, "/"+service+"/"+method)
	if err != nil {
		return nil, err
	}
	q := f.question()
	if known != (signals.Position{}) {
		q.Epoch, q.Cell = time.Unix(0, known.Epoch), known.Number
	}
	if err := stream.SendMsg(&q); !errors.Is(err, io.EOF) { // why it has ended is received
		return stream, err
	}
	return stream, nil
}

// question with how old the watches of this replica are, and all orders.
func (f *Follower) question() (q Question) {
	if f.Orders != nil {
		q.Orders = f.Orders()
	}
	if f.Age != nil {
		q.Age, q.Aged = f.Age(), true
	}
	return q
}

// tell whoever is followed every second how old the watches are, and each order at once, until ctx ends.
// ordered is from before the first question, so that no order falls between two.
func (f *Follower) tell(ctx context.Context, stream grpc.ClientStream, ordered <-chan struct{}) {
	ticker := time.NewTicker(Beat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ordered:
			ordered = f.changed()
		case <-ticker.C:
		}
		q := f.question()
		if stream.SendMsg(&q) != nil {
			return // whoever listens is told why
		}
	}
}

// changed is closed when there is one more order; nil if there are none.
func (f *Follower) changed() <-chan struct{} {
	if f.Changed == nil {
		return nil
	}
	return f.Changed()
}

// listen takes what is told; silent ends it when nothing is.
func listen(ctx context.Context, stream grpc.ClientStream, mirror *Mirror, silent *time.Timer) error {
	mirror.Begin()
	began, complete := time.Now(), false
	for {
		var update Update
		if err := stream.RecvMsg(&update); err != nil {
			return told(ctx, err)
		}
		now := time.Now()
		if err := mirror.Take(&update, now); err != nil {
			return fmt.Errorf("listening: %w", err)
		}
		complete = complete || update.Complete
		if !complete && now.Sub(began) > patience {
			return errEndless
		}
		silent.Reset(Silence)
	}
}
