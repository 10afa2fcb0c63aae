// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
)

// maxCalls bounds how many calls are under way, those that have not come back after their
// deadline included: each of them holds a thread.
const maxCalls = 8

// calls are those that are under way, one element for each.
type calls chan struct{}

// errClosed refuses a call after the store was closed.
var errClosed = errors.New("the store is closed")

// within makes a call and waits for it until the context ends. The kernel knows no deadline
// for a file: a call on a file system that hangs comes back later, and keeps its place until
// then.
func within[T any](ctx context.Context, s *Store, op, name string, call func() (T, error)) (none T, err error) {
	over := func(why string) error { return failure(op, name, fmt.Errorf("%s: %w", why, context.Cause(ctx))) }
	if ctx.Err() != nil {
		return none, over("not begun")
	}
	select {
	case s.calls <- struct{}{}:
	case <-ctx.Done():
		return none, over("calls of before have not come back")
	}
	select {
	case <-s.closed: // asked with a place: Close waits for each place that was taken before
		<-s.calls
		return none, failure(op, name, errClosed)
	default:
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() { <-s.calls }()
		value, err := call()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, over("the file system has not answered")
	}
}

// Close refuses further calls, and waits until those under way have come back or the context
// ends. Calls whose callers have given up are among them: without Close they could still write
// when the owner of the store has ended. A second Close waits as the first does.
func (s *Store) Close(ctx context.Context) error {
	s.closing.Do(func() { close(s.closed) })
	for taken := range cap(s.calls) {
		select {
		case s.calls <- struct{}{}:
			defer func() { <-s.calls }()
		case <-ctx.Done():
			return failure("close", s.dir, fmt.Errorf("%d calls have not come back: %w", cap(s.calls)-taken, context.Cause(ctx)))
		}
	}
	return nil
}
