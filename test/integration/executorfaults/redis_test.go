// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"os"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// TestRedisBesideACrash kills an executor that has a mirror of the ledgers in Redis;
// Redis goes on, or dies with it, or comes back empty.
func TestRedisBesideACrash(t *testing.T) {
	takesLong(t)
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	points := []crash{{"after", granted}, {"before", effect}, {"after", effect}, {"after", "the Environment's ledger: 1 granted, 1 ended, 1 records"}}
	fates := map[string]func(*testing.T, *server.Redis, string){
		"Redis goes on": func(*testing.T, *server.Redis, string) {},
		"Redis is gone": func(_ *testing.T, r *server.Redis, _ string) { r.Kill() },
		"Redis is empty": func(t *testing.T, r *server.Redis, directory string) {
			t.Helper()
			r.Kill()
			startRedis(t, directory)
		},
	}
	worlds := shared.prepared(t, len(points)*len(fates))
	next := 0
	for name, fate := range fates {
		for _, point := range points {
			t.Run(name+", "+point.String(), func(t *testing.T) {
				w, f := worlds[next].Within(t), newFiles(t)
				next++
				defer w.Forget()
				// The path of a socket may have 107 bytes, and t.TempDir is too long.
				directory, err := os.MkdirTemp("", "xf") //nolint:usetesting // see above
				w.Must(err)
				t.Cleanup(func() { _ = os.RemoveAll(directory) }) // under the system's temporary directory
				r := startRedis(t, directory)
				plan := w.planned()
				shared.start(t, f, point.fault(), "--redis-address="+r.Socket).killed()
				w.mirrored(r)
				fate(t, r, directory)
				shared.start(t, f, "", "--redis-address="+r.Socket)
				w.succeeded(plan, f)
			})
		}
	}
}

func startRedis(t *testing.T, directory string) *server.Redis {
	t.Helper()
	r, err := server.StartRedis(t.Context(), directory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return r
}

// mirrored checks that there was a mirror at all.
func (w *world) mirrored(r *server.Redis) {
	w.t.Helper()
	c := r.Client()
	defer func() { _ = c.Close() }() // only read
	n, err := c.DBSize(w.t.Context()).Result()
	w.Must(err)
	if n == 0 {
		w.t.Error("Redis has no key: nothing was mirrored")
	}
}
