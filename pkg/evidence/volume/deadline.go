// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"
)

// maxCalls bounds how many calls are under way, those that have not come back after their
// deadline included: each of them holds a thread.
const maxCalls = 8

// calls are those that are under way, one element for each.
type calls chan struct{}

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
