// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/test/harness/asker"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

// BenchmarkFirstChangedResponse sends all requests of a real Envoy to the other one of
// two backends, time after time, and measures from the call that publishes this until
//
//   - sent: the server has handed the response over to gRPC,
//   - acknowledged: the server has read that the Envoy has it,
//   - first: one of two clients has its first response from the other backend,
//   - all: both have.
//
// The clients have one connection each and ask without a pause, so a response is some
// hundred microseconds later than it could be. The reference is go-control-plane's
// SnapshotCache, with the same resources and a sidecar of its own, in the same run.
//
// It fails when a response is not that of the backend which was published last or is
// just being published, and when none ever changes.
func BenchmarkFirstChangedResponse(b *testing.B) {
	for _, of := range []struct {
		name  string
		start func(*testing.B, *sightings) publisher
	}{{"plumbline", startOurs}, {"snapshot", startSnapshots}} {
		b.Run(of.name, func(b *testing.B) {
			seen := &sightings{}
			r := &race{resources: &shop{front: freeport.Address(b), a: backend(b, "a"), b: backend(b, "b")}, seen: seen, to: of.start(b, seen)}
			r.resources.listener = listener(r.resources.front, "web")
			r.begin(b)
			for b.Loop() {
				r.step(b)
			}
			r.report(b)
		})
	}
}

// publisher is a discovery server with a proxy of its own.
type publisher interface {
	// prepare resources; the result publishes them. What it takes to make them into
	// those of the server is no part of what is measured.
	prepare(b *testing.B, all []*ads.Resource) (publish func() error)
	// join starts the proxy.
	join()
}

// ours is Plumbline's.
type ours struct{ world *world }

func startOurs(b *testing.B, seen *sightings) publisher {
	w := newWorld(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watch = func(e ads.Effect) {
		now := seen.now.Load()
		switch e := e.(type) {
		case ads.Send:
			if slices.Contains(e.Resources, now.route) {
				note(now.sent)
			}
		case ads.Acked:
			if slices.Contains(e.Resources, now.route) {
				note(now.acknowledged)
			}
		case ads.Rejected:
			b.Errorf("the proxy refuses %s: %s", e.Resource.Name, e.Message)
		}
	}
	return ours{w}
}

func (o ours) prepare(_ *testing.B, all []*ads.Resource) func() error {
	return func() error {
		o.world.publish(all...)
		return nil
	}
}

func (o ours) join() { o.world.proxy("web-0") }

// sightings of one step by the server.
type sightings struct{ now atomic.Pointer[sighting] }

// sighting is when a route was sent and acknowledged for the first time.
type sighting struct {
	route              *ads.Resource
	sent, acknowledged chan time.Time
}

func (s *sightings) expect(route *ads.Resource) *sighting {
	next := &sighting{route, make(chan time.Time, 1), make(chan time.Time, 1)}
	s.now.Store(next)
	return next
}

// note the moment, if it is the first.
func note(of chan<- time.Time) {
	select {
	case of <- time.Now():
	default:
	}
}

// askers is how many clients there are.
const askers = 2

// race is what is measured: who sees a step when.
type race struct {
	resources *shop
	seen      *sightings
	to        publisher
	// changes are the first answers of each client that differ from its last one.
	changes  [askers]chan asker.Answer
	answers  atomic.Int64
	inB      bool
	measured map[string][]time.Duration
}

// begin with all requests at a, and the clients.
func (r *race) begin(b *testing.B) {
	b.Helper()
	r.measured = map[string][]time.Duration{}
	first := r.resources.weighted(0)
	seen := r.seen.expect(first[len(first)-1])
	if err := r.to.prepare(b, first)(); err != nil {
		b.Fatal(err)
	}
	r.to.join()
	await(b, "the first route is acknowledged", seen.acknowledged)
	answersBy(b, r.resources.front, "a")
	for i := range r.changes {
		r.changes[i] = make(chan asker.Answer, 1)
		last := "200 a"
		asker.Start(b, r.resources.front, 0, func(a asker.Answer) {
			r.answers.Add(1)
			if a.Text == last {
				return
			}
			last = a.Text
			select {
			case r.changes[i] <- a:
			case <-b.Context().Done():
			}
		})
	}
}

// step to the other backend.
func (r *race) step(b *testing.B) {
	b.Helper()
	r.inB = !r.inB
	want, weight := "200 a", uint32(0)
	if r.inB {
		want, weight = "200 b", 10_000
	}
	all := r.resources.weighted(weight)
	seen := r.seen.expect(all[len(all)-1])
	publish := r.to.prepare(b, all)
	begin := time.Now()
	if err := publish(); err != nil {
		b.Fatal(err)
	}
	var first, last time.Duration
	for i := range r.changes {
		a := await(b, "a client has an answer of the other backend", r.changes[i])
		if a.Text != want {
			b.Fatalf("a client was answered %q, want %q", a.Text, want)
		}
		took := a.At.Sub(begin)
		if i == 0 || took < first {
			first = took
		}
		last = max(last, took)
	}
	for name, took := range map[string]time.Duration{
		"sent":         await(b, "it is sent", seen.sent).Sub(begin),
		"acknowledged": await(b, "it is acknowledged", seen.acknowledged).Sub(begin),
		"first":        first, "all": last,
	} {
		r.measured[name] = append(r.measured[name], took)
	}
}

func (r *race) report(b *testing.B) {
	b.Helper()
	for i := range r.changes {
		select {
		case a := <-r.changes[i]:
			b.Errorf("a client was answered %q without a step", a.Text)
		default:
		}
	}
	for name, took := range r.measured {
		quantile.Report(b, name, took)
	}
	b.ReportMetric(float64(r.answers.Load())/b.Elapsed().Seconds(), "answers/s")
	b.ReportMetric(0, "ns/op") // with one number for all of it nothing is said
}

// weighted are all resources with so much for b, the route last.
func (s *shop) weighted(weight uint32) []*ads.Resource {
	s.sequence++
	return s.withBoth(route("web", s.sequence, share{"web|b", weight}, share{"web|a", 10_000 - weight}))
}

// await what comes, for as long as patience lasts.
func await[T any](b *testing.B, what string, from <-chan T) T {
	b.Helper()
	return poll.Receive(b, patience, what, from)
}
