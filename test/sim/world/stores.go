// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// storeFault is what is wrong with the store of the records while it is broken.
type storeFault int

const (
	// storeFails answers each call with an error.
	storeFails storeFault = iota + 1
	// storeHangs answers no call.
	storeHangs
	// storeClaimsReady says that it is ready, and takes no record.
	storeClaimsReady
)

var storeFaults = map[storeFault]string{storeFails: "fails", storeHangs: "hangs", storeClaimsReady: "claims to be ready"}

// storeDeadline bounds each call of the store, as in the executor's process.
const storeDeadline = 5 * time.Second

// breaksStore for a while.
func (p *person) breaksStore() {
	p.w.count("store that " + storeFaults[p.w.storeFault])
	atMost := 3 * time.Minute
	if p.w.storeFault == storeHangs && p.Rand().IntN(2) == 0 {
		atMost = time.Hour
	}
	p.forAWhile(atMost, func() { p.w.broken.Store(true) }, func() { p.w.broken.Store(false) })
}

var errBroken = errors.New("the store is broken")

// fault is what the store does instead of a call; nil when it carries the call out.
func (s *store) fault(ctx context.Context, ready bool) error {
	if !s.w.broken.Load() {
		return nil
	}
	switch s.w.storeFault {
	case storeFails:
		return errBroken
	case storeHangs:
		s.hang(ctx)
		return fmt.Errorf("waiting for the store: %w", errBroken)
	case storeClaimsReady:
		if !ready {
			return errBroken
		}
	}
	return nil
}

// hang until the caller, or its process, has ended, or the store answers again.
func (s *store) hang(ctx context.Context) {
	for s.w.broken.Load() && ctx.Err() == nil && s.l.Context().Err() == nil {
		s.l.Linger(ctx, time.Second)
	}
}

// patient waits for an answer for as long as that takes.
type patient struct{ evidence.Store }

// Create implements evidence.Store.
func (p patient) Create(ctx context.Context, name string, data []byte) error {
	return p.Store.Create(context.WithoutCancel(ctx), name, data) //nolint:wrapcheck // it stands for the store
}

// Read implements evidence.Store.
func (p patient) Read(ctx context.Context, name string) ([]byte, error) {
	return p.Store.Read(context.WithoutCancel(ctx), name) //nolint:wrapcheck // it stands for the store
}

// Ready implements evidence.Store.
func (p patient) Ready(ctx context.Context) error {
	return p.Store.Ready(context.WithoutCancel(ctx)) //nolint:wrapcheck // it stands for the store
}

// endless takes no record of the end of a plan, and says that it did.
type endless struct {
	evidence.Store
	w *World
}

// Create implements evidence.Store.
func (e endless) Create(ctx context.Context, name string, data []byte) error {
	sealed, err := evidence.Open(e.w.keys.ring, data)
	if err == nil && sealed.Record.Decides() && protocol.Final(v1alpha1.PlanPhase(sealed.Record.Result.State)) {
		return nil
	}
	return e.Store.Create(ctx, name, data) //nolint:wrapcheck // it stands for the store
}

// store is the store of records behind a network.
type store struct {
	evidence.Store
	w *World
	l *schedule.Life
}

// whileLocked marks what is asked while the records are locked: all about records, and not about
// their bodies.
func whileLocked(ctx context.Context, name string) context.Context {
	if _, _, isRecord := evidence.ParseName(name); isRecord {
		return schedule.Alone(ctx)
	}
	return ctx
}

// Create implements evidence.Store.
func (s *store) Create(ctx context.Context, name string, data []byte) error {
	ctx = whileLocked(ctx, name)
	if err := s.fault(ctx, false); err != nil {
		return storeError("create", name, err)
	}
	_, err := schedule.Call(ctx, s.l, schedule.Message{What: "evidence create " + name, Writes: true}, func() (any, error) {
		err := s.Store.Create(context.WithoutCancel(ctx), name, data)
		if err == nil {
			s.w.recordings.note(name, s.l)
		}
		return nil, err //nolint:wrapcheck // it stands for the store
	})
	return storeError("create", name, err)
}

// Read implements evidence.Store.
func (s *store) Read(ctx context.Context, name string) ([]byte, error) {
	ctx = whileLocked(ctx, name)
	if err := s.fault(ctx, false); err != nil {
		return nil, storeError("read", name, err)
	}
	data, err := schedule.Call(ctx, s.l, schedule.Message{What: "evidence read " + name}, func() ([]byte, error) {
		return s.Store.Read(context.WithoutCancel(ctx), name)
	})
	return data, storeError("read", name, err)
}

// List is never asked by an executor.
func (s *store) List(ctx context.Context, chain string) iter.Seq2[string, error] {
	return s.Store.List(ctx, chain)
}

// Ready implements evidence.Store.
func (s *store) Ready(ctx context.Context) error {
	if err := s.fault(ctx, true); err != nil {
		return storeError("probe", "", err)
	}
	_, err := schedule.Call(ctx, s.l, schedule.Message{What: "evidence ready"}, func() (any, error) {
		return nil, s.Store.Ready(context.WithoutCancel(ctx))
	})
	return storeError("probe", "", err)
}

func storeError(op, name string, err error) error {
	if err == nil || errors.Is(err, evidence.ErrExists) || errors.Is(err, evidence.ErrNotFound) {
		return err
	}
	return &evidence.StoreError{Op: op, Name: name, Reason: evidence.StoreUnreachable, Err: err}
}
