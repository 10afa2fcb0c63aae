// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// A record that is a pipe without a writer hangs at its opening, as all calls of a file
// system do whose server is away. However many calls hang, the next one ends with its
// context; when the server is back, so is the store.
func TestAFileSystemThatHangsHoldsUpNoCaller(t *testing.T) {
	dir, name := t.TempDir(), evidence.Name("chain", 1)
	s, pipe := open(t, dir), filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.Mkdir(filepath.Dir(pipe), 0o750), syscall.Mkfifo(pipe, 0o640)); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := s.Read(ctx, name)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || reasonOf(err) != evidence.StoreUnreachable {
			t.Fatalf("a call that hangs ends with %v", err)
		}
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // lets all readers go on
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(pipe), writer.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), name); !errors.Is(err, evidence.ErrNotFound) {
		t.Errorf("a store that is back answers %v", err)
	}
}

// A test removed its folder while a call that the executor had given up wrote a record into it.
// The same call can outlive the process that ends. The pipe holds the call of a caller that has gone.
func TestACallThatItsCallerHasGivenUpOutlivesNoOwner(t *testing.T) {
	dir, name := t.TempDir(), evidence.Name("chain", 1)
	s, pipe := open(t, dir), filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.Mkdir(filepath.Dir(pipe), 0o750), syscall.Mkfifo(pipe, 0o640)); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Read(soon, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a call that hangs ends with %v", err)
	}
	if err := s.Close(soon); !errors.Is(err, context.DeadlineExceeded) || reasonOf(err) != evidence.StoreUnreachable {
		t.Errorf("with a call under way, closing ends with %v", err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // lets the reader go on
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(pipe), writer.Close(), s.Close(t.Context()), s.Close(t.Context())); err != nil {
		t.Errorf("once the call is back, closing ends with %v", err)
	}
	if err := s.Create(t.Context(), name, []byte("x")); reasonOf(err) == "" {
		t.Errorf("a store that is closed answers %v", err)
	}
	if err := s.Ready(t.Context()); reasonOf(err) == "" {
		t.Errorf("a store that is closed is ready: %v", err)
	}
}
