// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/itchyny/gojq"
)

const (
	// jqSteps bounds a path expression: a usual one takes under a hundred steps
	// on a sample, and one that never ends must not hang the caller.
	jqSteps = 100_000
	// jqLength bounds its text, in bytes.
	jqLength = 4096
)

// errTooLong is a matter of ours: Argo CD, which gives each expression a second,
// may come to an end.
var errTooLong = errors.New("it takes too long to be tried out")

// deletePath takes what a jq path expression names out of a document, as Argo CD
// does: by the program del(expression) of the same library.
func deletePath(document []byte, expression string) ([]byte, error) {
	code, err := compilePath(expression)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		return nil, fmt.Errorf("reading the sample: %w", err)
	}
	results := code.RunWithContext(&steps{Context: context.Background(), left: jqSteps}, value)
	first, ok := results.Next()
	if !ok {
		return nil, errors.New("it yields nothing")
	}
	if err, failed := first.(error); failed {
		return nil, err
	}
	if _, more := results.Next(); more {
		return nil, errors.New("it yields more than one object")
	}
	return gojq.Marshal(first)
}

// compilePath reads an expression. One that Argo CD cannot read either makes the
// comparison of the whole Application fail there.
func compilePath(expression string) (*gojq.Code, error) {
	if len(expression) > jqLength {
		return nil, errTooLong
	}
	query, err := gojq.Parse("del(" + expression + ")")
	if err != nil {
		return nil, fmt.Errorf("parsing it: %w", err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("compiling it: %w", err)
	}
	return code, nil
}

// steps ends a program after a number of steps: the library asks Done before
// each. Counted steps end it at the same place on every machine, a clock would
// not.
type steps struct {
	context.Context
	left int
}

var ended = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (s *steps) Done() <-chan struct{} {
	if s.left--; s.left < 0 {
		return ended
	}
	return nil
}

func (s *steps) Err() error {
	if s.left < 0 {
		return errTooLong
	}
	return nil
}

func isTooLong(err error) bool { return errors.Is(err, errTooLong) }
