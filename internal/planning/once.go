// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"sync"
	"time"
)

// Once is a Source that reads the World of another one a single time, for all questions of
// one command or request. Its methods may be called from any goroutine.
type Once struct {
	Source

	once  sync.Once
	world *World
	err   error
}

// World implements Source. It returns the World of the first call, and its error.
func (s *Once) World(ctx context.Context, now time.Time) (*World, error) {
	s.once.Do(func() { s.world, s.err = s.Source.World(ctx, now) })
	return s.world, s.err
}
