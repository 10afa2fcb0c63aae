// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// An nginx that was killed leaves its socket, and one that is ending still listens.
func TestOnlyASocketWithoutAListenerIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "probe.sock")
	if err := removeStaleSocket(path); err != nil {
		t.Errorf("a socket that is not there is an error: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if err := removeStaleSocket(path); err == nil {
		t.Error("a socket with a listener is stale")
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a socket with a listener was removed: %v", err)
	}
	l.SetUnlinkOnClose(false) // as a program that is killed
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := removeStaleSocket(path); err != nil {
		t.Errorf("a stale socket is an error: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stale socket is there still (%v)", err)
	}
}
