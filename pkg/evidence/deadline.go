// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"time"
)

// WithDeadline returns a store of which each call but List ends after a time: a server
// that accepts a connection and never answers must not hold up the caller. An ended
// Create may still take effect, as after any other error.
func WithDeadline(store Store, each time.Duration) Store { return &deadlineStore{store, each} }

type deadlineStore struct {
	Store
	each time.Duration
}

// Create implements Store.
func (s *deadlineStore) Create(ctx context.Context, name string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.each)
	defer cancel()
	return s.Store.Create(ctx, name, data)
}

// Read implements Store.
func (s *deadlineStore) Read(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.each)
	defer cancel()
	return s.Store.Read(ctx, name)
}

// Ready implements Store.
func (s *deadlineStore) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.each)
	defer cancel()
	return s.Store.Ready(ctx)
}
