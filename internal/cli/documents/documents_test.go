// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// endless is an input without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestOpenInput_ReadsNoMoreThanItsBound(t *testing.T) {
	_, _, err := ReadInput("-", endless{})
	want := fmt.Sprintf("standard input: offset %d: input of more than %d bytes", maxInputBytes, maxInputBytes)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, _, err = ReadInput("-", io.MultiReader(strings.NewReader("a"), errorReader{}))
	if err == nil || err.Error() != "reading standard input: unexpected EOF" {
		t.Errorf("a failing read gave %v", err)
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
