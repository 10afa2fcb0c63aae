// SPDX-License-Identifier: Apache-2.0

package failpoint

import (
	"os"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// MakeShortDirectory makes a directory for a socket, whose path may have 107 bytes;
// t.TempDir is too long.
func MakeShortDirectory(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "xf") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) }) // under the system's temporary directory
	return directory
}

// StartRedis starts a Redis that ends with the test.
func StartRedis(t *testing.T) *server.Redis {
	t.Helper()
	r, err := server.StartRedis(t.Context(), MakeShortDirectory(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return r
}

// CheckMirrored checks that there was a mirror at all.
func (w *World) CheckMirrored(r *server.Redis) {
	w.t.Helper()
	c := r.Client()
	defer func() { _ = c.Close() }() // only read
	n, err := c.DBSize(w.t.Context()).Result()
	w.Must(err)
	if n == 0 {
		w.t.Error("Redis has no key: nothing was mirrored")
	}
}
