// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/faultproxy"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/replay"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// What the chart gives a pod of each.
const (
	webhookMemory  = 256 << 20
	assessorMemory = 512 << 20
)

// stand is a webhook and an assessor that reach one Redis through one proxy.
type stand struct {
	*world
	hook      *hook
	assessor  *server.Process
	proxy     *faultproxy.Proxy
	redis     *server.Redis
	directory string
	admin     *redis.Client // past the proxy
	started   map[*server.Process]float64
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{world: shared.newWorld(t)}
	// The path of a socket may have 107 bytes, and t.TempDir is too long.
	directory, err := os.MkdirTemp("", "fr") //nolint:usetesting // see above
	s.Must(err)
	t.Cleanup(func() { _ = os.RemoveAll(directory) }) // under the system's temporary directory
	s.directory = directory
	s.startRedis()
	t.Cleanup(func() { s.redis.Kill() }) // not bound now: it may be another one by then
	s.admin = s.redis.Client()
	t.Cleanup(func() { _ = s.admin.Close() }) // the server goes away with it
	s.proxy, err = faultproxy.Start("unix", s.redis.Socket)
	s.Must(err)
	t.Cleanup(func() {
		if err := s.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	address := "--redis-address=" + s.proxy.Address()
	s.hook = s.webhook(address)
	s.assessor = s.world.assessor("", address)
	s.started = map[*server.Process]float64{}
	for _, p := range s.processes() {
		s.started[p] = s.metric(p, "process_start_time_seconds")
	}
	s.UnderGuard()
	return s
}

func (s *stand) startRedis() {
	s.t.Helper()
	var err error
	s.redis, err = server.StartRedis(s.Ctx(), s.directory)
	s.Must(err)
}

func (s *stand) processes() map[int64]*server.Process {
	return map[int64]*server.Process{webhookMemory: s.hook.Process, assessorMemory: s.assessor}
}

// in is the stand of a test within a test.
func (s *stand) in(t *testing.T) *stand {
	inner := *s
	inner.world = s.world.in(t)
	h := *s.hook
	h.world = inner.world
	inner.hook = &h
	return &inner
}

func (s *stand) do(args ...any) {
	s.t.Helper()
	s.Must(s.admin.Do(s.Ctx(), args...).Err())
}

// healthy waits until both processes say that they reach Redis, and until a
// record has gone all the way: bob is named for what only a record tells.
func (s *stand) healthy(name string) {
	s.t.Helper()
	s.comes(s.hook.Process, exactly(1), "plumbline_admission_records_redis_up")
	s.comes(s.assessor, exactly(1), "plumbline_assessor_admission_records_up")
	replicas := 10
	// A call to Redis has 50 ms, which a busy machine may not give to each.
	s.Eventually("a record names bob", func() error {
		replicas++
		s.Scale(bob, name, replicas)
		want := fmt.Sprintf("Changed /spec/replicas by %s (Untrusted, Admission)", bob)
		return s.soon(name, func(b *v1alpha1.Baseline) error {
			if !strings.Contains(guarded.Describe(b), want) {
				return fmt.Errorf("the baseline is %s", guarded.Describe(b))
			}
			return nil
		})
	})
}

// soon gives a check some looks at a Baseline before it gives up.
func (s *stand) soon(name string, check func(*v1alpha1.Baseline) error) error {
	var last error
	for range 50 {
		b, err := s.Baseline(name)
		if err == nil {
			err = check(b)
		}
		if last = err; last == nil {
			return nil
		}
	}
	return last
}

// unharmed checks that both processes are those of the beginning, and that they
// stay within the memory that the chart gives them.
func (s *stand) unharmed() {
	s.t.Helper()
	for limit, p := range s.processes() {
		if at := s.metric(p, "process_start_time_seconds"); at != s.started[p] {
			s.t.Error("a process was restarted")
		}
		now, peak, err := replay.ResidentBytes(p.PID())
		s.Must(err)
		s.t.Logf("%d MiB are resident, %d at most", now>>20, peak>>20)
		if peak >= limit {
			s.t.Errorf("%d MiB were resident, the limit is %d", peak>>20, limit>>20)
		}
	}
}

// reviews are how many reviews there were, and how many seconds they took together.
func (s *stand) reviews() (n, seconds float64) {
	s.t.Helper()
	const name = "plumbline_admission_duration_seconds"
	return s.metric(s.hook.Process, name+"_count"), s.metric(s.hook.Process, name+"_sum")
}

// answersFirst waits until a record waits for Redis although each write was answered:
// a review that waited for Redis would have been answered after its record was done with.
func (s *stand) answersFirst(name string) {
	s.t.Helper()
	n := 0
	s.Eventually("a record waits for Redis whose write was answered", func() error {
		n++
		s.SetEnv(ci, name, "ANSWERED", fmt.Sprint(n))
		if s.metric(s.hook.Process, "plumbline_admission_records_queue_depth") == 0 {
			return fmt.Errorf("after %d writes none waits", n)
		}
		return nil
	})
}
