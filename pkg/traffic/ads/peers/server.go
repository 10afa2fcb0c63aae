// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

const (
	service = "plumbline.xds.v1.Peers"
	method  = "Watch"
)

// Guard says who may ask.
type Guard interface {
	// Admit looks at the values of an authorization header. An error with a gRPC status
	// is told as it is.
	Admit(ctx context.Context, authorization []string) error
}

const (
	// batch is how many proxies and routes are told at once: some hundred kilobytes.
	batch = 2000
	// pace is how long changes are gathered after some were told.
	pace = 20 * time.Millisecond
	// watchers is how many may ask at once: the leader, and those that it follows when it
	// is not known yet who has been cut off.
	watchers = 8
)

// Counter says what the proxies of this replica have counted of each variation since
// it was started.
type Counter func() []Count

// Server tells what one replica knows.
type Server struct {
	index *acknowledged.Index
	count Counter
	guard Guard
	epoch time.Time
	slots chan struct{}
	// ending closes when this replica ends: others need not wait for it.
	ending <-chan struct{}
	// aged is told how old the watches of whoever asks are; may be nil.
	aged func(time.Duration)
	// obey is told what whoever asks orders; may be nil.
	obey  func([]Order)
	cells Cells
}

// Cells are those of this replica.
type Cells interface {
	// Epoch is when it began to count.
	Epoch() time.Time
	// Cells are those after a position, so many at most.
	Cells(after signals.Position, limit int) (cells []signals.Told, lost bool)
}

// NewServer tells what is in an index, and what is counted, until ending closes.
func NewServer(index *acknowledged.Index, count Counter, guard Guard, ending <-chan struct{}) *Server {
	return &Server{index: index, count: count, guard: guard, epoch: time.Now(), slots: make(chan struct{}, watchers), ending: ending}
}

// Counts has cells be told as well.
func (s *Server) Counts(cells Cells) *Server {
	s.cells, s.epoch = cells, cells.Epoch()
	return s
}

// Tells has a function be told how old the watches of whoever asks are.
func (s *Server) Tells(aged func(time.Duration)) *Server {
	s.aged = aged
	return s
}

// Obeys has a function be told what whoever asks orders, each time anew.
func (s *Server) Obeys(obey func([]Order)) *Server {
	s.obey = obey
	return s
}

// Register the service with a gRPC server that was made with serve.Options.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: service, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: method, ServerStreams: true, ClientStreams: true, Handler: s.watch}},
	}, s)
}

func (s *Server) watch(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	if err := s.guard.Admit(ctx, metadata.ValueFromIncomingContext(ctx, "authorization")); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d replicas ask already", watchers)
	}
	var asked Question
	if err := stream.RecvMsg(&asked); err != nil {
		return err
	}
	go s.listen(stream, asked) // ends when the stream does
	return s.tell(ctx, stream, signals.Position{Epoch: signals.EpochOf(asked.Epoch), Number: asked.Cell})
}

// listen to what whoever asks tells of itself, from the first question on.
func (s *Server) listen(stream grpc.ServerStream, q Question) {
	for {
		if q.Aged && s.aged != nil {
			s.aged(q.Age)
		}
		if len(q.Orders) > 0 && s.obey != nil {
			s.obey(q.Orders)
		}
		if stream.RecvMsg(&q) != nil {
			return
		}
	}
}

// tell everything, and then what changes.
func (s *Server) tell(ctx context.Context, stream grpc.ServerStream, told signals.Position) error {
	timer := time.NewTimer(pace)
	defer timer.Stop()
	update := Update{Epoch: s.epoch}
	var counted time.Time
	for read := (acknowledged.Cursor{}); ; {
		changed := s.index.Changed()
		changes, next, more := s.index.Since(read, batch)
		read = next
		update.Number++
		update.Now, update.Changes, update.Complete = time.Now(), changes, update.Complete || !more
		if update.Counts = nil; update.Now.Sub(counted) >= Beat {
			update.Counts, counted = s.count(), update.Now
		}
		if update.Cells = s.closed(&told); len(update.Cells) == batch {
			more = true
		}
		if err := stream.SendMsg(&update); err != nil {
			return err
		}
		if more {
			continue
		}
		if !s.await(ctx, timer, changed) {
			return status.Error(codes.Unavailable, "this replica ends")
		}
	}
}

// closed are the cells after those that were told.
func (s *Server) closed(told *signals.Position) (cells []Cell) {
	if s.cells == nil {
		return nil
	}
	after, _ := s.cells.Cells(*told, batch) // of those that are lost the numbers tell
	for _, c := range after {
		cells, *told = append(cells, Cell{c.Number, c.Data}), c.Position
	}
	return cells
}

// await returns when there is something to tell; false when there is nobody any more
// who tells, or listens.
func (s *Server) await(ctx context.Context, timer *time.Timer, changed <-chan struct{}) bool {
	timer.Reset(pace)
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	timer.Reset(Beat)
	select {
	case <-changed:
	case <-timer.C:
	case <-s.ending:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}
