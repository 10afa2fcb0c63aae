// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"sync"
)

// errUnanswered is the error of a read that has not returned.
var errUnanswered = errors.New("the read has no answer")

// reading is one of several reads that go on beside each other. Its answer counts when the
// group has been waited for.
type reading[T any] struct {
	value T
	err   error
}

// begin begins a read in a group.
func begin[T any](group *sync.WaitGroup, read func() (T, error)) *reading[T] {
	r := &reading[T]{err: errUnanswered}
	group.Go(func() { r.value, r.err = read() })
	return r
}
