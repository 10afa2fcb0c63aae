// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// limit bounds every wait.
const limit = 20 * time.Second

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// short is a directory in whose path there is room for the name of a socket.
func short(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "pls") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) }) // under the system's temporary directory
	return directory
}

func TestRedisStartsAgainWhereItWasKilledAndHasForgottenEverything(t *testing.T) {
	ctx, directory := bounded(t), short(t)
	first, err := server.StartRedis(ctx, directory)
	if err != nil {
		t.Fatal(err)
	}
	client := first.Client()
	defer func() { _ = client.Close() }()
	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	first.Kill()
	first.Kill()
	if err := client.Ping(ctx).Err(); err == nil {
		t.Error("it answers although it was killed")
	}
	second, err := server.StartRedis(ctx, directory)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Kill()
	if second.Socket != first.Socket {
		t.Errorf("it listens at %s, before at %s", second.Socket, first.Socket)
	}
	if n, err := client.Exists(ctx, "k").Result(); err != nil || n != 0 {
		t.Errorf("%d keys of before, %v", n, err)
	}
}

func TestRedisWithArgumentsOfItsOwnAnswersWhoLogsIn(t *testing.T) {
	ctx := bounded(t)
	port := freeport.For(t)
	login := redis.Options{Addr: "127.0.0.1:" + strconv.Itoa(port), Password: "secret"}
	r, err := server.StartRedisWith(ctx, login, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--requirepass", "secret", "--save", "", "--dir", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Kill()
	if r.Socket != "" {
		t.Errorf("a socket %s that nobody asked for", r.Socket)
	}
	ours := r.Client()
	defer func() { _ = ours.Close() }()
	if err := ours.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
	login.Password = "guess"
	stranger := redis.NewClient(&login)
	defer func() { _ = stranger.Close() }()
	if err := stranger.Ping(ctx).Err(); err == nil {
		t.Error("a stranger got in")
	}
	if said := r.Said(); !strings.Contains(said, "Ready to accept connections") {
		t.Errorf("it said\n%s", said)
	}
}

func TestRedisThatCannotStartSaysWhy(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := server.StartRedis(ctx, short(t), "--no-such-option", "1")
	if err == nil {
		r.Kill()
		t.Fatal("it started")
	}
	if ctx.Err() != nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("got %v", err)
	}
}

func TestAProcessHasTheEnvironmentThatItWasGiven(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	script := "#!/bin/sh\necho \"$POD_NAME $GOMEMLIMIT $GOGC $#\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	tests := map[string]struct {
		environment []string
		want        string
	}{
		"its own name by default": {nil, "program   3"},
		"a name and a limit":      {[]string{"POD_NAME=replica-b", "GOMEMLIMIT=1MiB"}, "replica-b 1MiB  3"},
		"the collector as a test wants it, not as the tests have it": {[]string{"GOGC=50"}, "program  50 3"},
	}
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOGC", "400")
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := server.StartWith(tc.environment, program, "--flag")
			if err != nil {
				t.Fatal(err)
			}
			if how, err := p.Exited(bounded(t)); how != nil || err != nil {
				t.Fatal(how, err)
			}
			if got := strings.TrimSpace(p.Said()); got != tc.want {
				t.Errorf("it saw %q, want %q", got, tc.want)
			}
		})
	}
}
