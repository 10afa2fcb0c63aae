// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/test/harness/asker"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

// BenchmarkClamp measures what becomes of a canary with half of the requests when its
// only pod is not ready, or is about to end and still ready, and when there is one again.
// From the beginning of the write that says so
//
//   - write: the API server answers it, which is the reference,
//   - clamped: the Envoy has acknowledged the route in which the canary has no share,
//   - clamped-last: the last request that did not go to the stable version is answered,
//   - clamped-told: the release's status says that all proxies have acknowledged it,
//
// and likewise back, back-first (the first request that the canary answers) and
// back-told. A variation has to be ready for ten seconds until it has its share back;
// back-over is what of back comes after that, and the rest of it is that wait, which is
// counted in whole seconds of the clock.
//
// One client asks a thousand times a second at most; failed is how many of its requests
// fail in each round, and answers how many answers it has in a second.
func BenchmarkClamp(b *testing.B) {
	for _, of := range []struct {
		name         string
		lose, regain func(*clamping)
	}{
		{"unready", func(c *clamping) { c.ready(c.canary, false) }, func(c *clamping) { c.ready(c.canary, true) }},
		{"ending", (*clamping).end, (*clamping).replace},
	} {
		b.Run(of.name, func(b *testing.B) {
			c := newClamping(b)
			for b.Loop() {
				c.lost(of.lose)
				c.regained(of.regain)
			}
			for name, took := range c.measured {
				quantile.Report(b, name, took)
			}
			c.heard.report(b, len(c.measured["clamped"]))
			b.ReportMetric(0, "ns/op") // with one number for all of it nothing is said
		})
	}
}

// hearing is what a client was answered.
type hearing struct {
	mu sync.Mutex
	// first and last answer that was not the stable version's, and how many of that came
	// after them.
	first, last time.Time
	stable      int
	answers     int
	failed      map[string]int
}

func (h *hearing) hear(a asker.Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers++
	switch a.Text {
	case "200 stable":
		h.stable++
		return
	case "200 canary":
	default:
		h.failed[a.Text]++
	}
	if h.first.IsZero() {
		h.first = a.At
	}
	h.last, h.stable = a.At, 0
}

// begin anew.
func (h *hearing) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first, h.last, h.stable = time.Time{}, time.Time{}, 0
}

func (h *hearing) heard() (first, last time.Time, stable int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first, h.last, h.stable
}

func (h *hearing) report(b *testing.B, rounds int) {
	b.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	failed := 0
	for text, n := range h.failed {
		b.Logf("%d times it is answered %q", n, text)
		failed += n
	}
	b.ReportMetric(float64(failed)/float64(rounds), "failed")
	b.ReportMetric(float64(h.answers)/b.Elapsed().Seconds(), "answers/s")
}

// clamping is what is measured.
type clamping struct {
	*shop
	of       *v1alpha1.ABRelease
	server   *replica
	canary   *corev1.Pod
	heard    *hearing
	measured map[string][]time.Duration
}

func newClamping(b testing.TB) *clamping {
	b.Helper()
	s, canary := shopWithTwo(b)
	r := s.start(asksProxies)
	_, front := s.proxy(r, "front-0")
	release := s.release("web", "{type: Percentage, percentages: {stable: 50, canary: 50}}")
	s.acknowledged(release, "stable 50 / canary 50", 0)
	reaches(b, front, "200 canary")
	c := &clamping{shop: s, of: release, server: r, canary: canary, heard: &hearing{failed: map[string]int{}}, measured: map[string][]time.Duration{}}
	c.hold()
	asker.Start(b, front, time.Millisecond, c.heard.hear)
	return c
}

// hold the canary, so that it is there as long as it is about to end.
func (c *clamping) hold() {
	c.t.Helper()
	c.canary.Finalizers = []string{"plumbline.dev/held"}
	c.must(admin.Update(c.t.Context(), c.canary))
}

// end the canary, which goes on answering until it has.
func (c *clamping) end() {
	c.t.Helper()
	c.must(admin.Delete(c.t.Context(), c.canary))
}

// replace the canary that is about to end by another one.
func (c *clamping) replace() {
	c.t.Helper()
	c.must(admin.Patch(c.t.Context(), c.canary, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))))
	c.canary = c.backend(fmt.Sprint("web-canary-", len(c.measured["clamped"])), "web", "canary")
	c.hold()
}

func (c *clamping) took(what string, from, to time.Time) {
	c.measured[what] = append(c.measured[what], to.Sub(from))
}

// answers waits until one that is not the stable version has answered, and says when.
func (c *clamping) answers() (first time.Time) {
	c.t.Helper()
	poll.True(c.t, patience, "the canary answers", func() bool {
		first, _, _ = c.heard.heard()
		return !first.IsZero()
	})
	return first
}

// lost measures the way to a release without its canary.
func (c *clamping) lost(lose func(*clamping)) {
	c.t.Helper()
	sequence := c.of.Status.Effective.Sequence + 1
	c.heard.begin()
	c.answers()
	began := time.Now()
	lose(c)
	c.took("write", began, time.Now())
	c.took("clamped", began, c.acked(sequence))
	c.acknowledged(c.of, "stable 100 / canary 0", sequence)
	c.took("clamped-told", began, time.Now())
	// That a half of the requests goes there two hundred times running is no chance.
	poll.True(c.t, patience, "all requests go to the stable version", func() bool { _, _, stable := c.heard.heard(); return stable >= 200 })
	_, last, _ := c.heard.heard()
	c.took("clamped-last", began, last)
}

// regained measures the way back.
func (c *clamping) regained(regain func(*clamping)) {
	c.t.Helper()
	sequence := c.of.Status.Effective.Sequence + 1
	c.heard.begin()
	began := time.Now()
	regain(c)
	var since time.Time
	c.wait(c.of, "the canary is ready again", func(r *v1alpha1.ABRelease) bool {
		if len(r.Status.Clamped) != 1 || r.Status.Clamped[0].ReadyTime == nil {
			return false
		}
		since = r.Status.Clamped[0].ReadyTime.Time
		return true
	})
	back := c.acked(sequence)
	c.took("back", began, back)
	c.took("back-over", since.Add(traffic.Returns), back)
	c.acknowledged(c.of, "stable 50 / canary 50", sequence)
	c.took("back-told", began, time.Now())
	c.took("back-first", began, c.answers())
}

// acked waits until the proxy has acknowledged the route with a sequence. It is looked
// once in a millisecond.
func (c *clamping) acked(sequence int64) time.Time {
	c.t.Helper()
	key, ticker := ads.Key{Type: ads.Route, Name: envoyname.RouteName(c.namespace, "web", 80)}, time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	var last []ads.State
	for begin := time.Now(); time.Since(begin) < patience; <-ticker.C {
		last = nil
		for _, p := range c.server.server.Proxies(c.t.Context(), func(identity.Proxy) bool { return true }) {
			for _, state := range p.Resources {
				if state.Type != key.Type || state.Name != key.Name {
					continue
				}
				if last = append(last, state); state.Stage == ads.Acknowledged && state.Has.Sequence >= uint64(sequence) {
					return time.Now()
				}
			}
		}
	}
	c.t.Fatalf("waited %s until the proxy has acknowledged %s with sequence %d; last seen: %+v", patience, key.Name, sequence, last)
	return time.Time{}
}

// acknowledged waits until the status of a release says that the one proxy has acknowledged a
// split; sequence is what it has to have, if that is known.
func (s *shop) acknowledged(r *v1alpha1.ABRelease, split string, sequence int64) {
	s.t.Helper()
	s.wait(r, fmt.Sprintf("%s is acknowledged", split), func(r *v1alpha1.ABRelease) bool {
		seen := r.Status.Acknowledged
		return r.Status.Split == split && seen != nil && seen.Knowledge == v1alpha1.AcknowledgedProven && seen.Count == "1/1" &&
			seen.Sequence == r.Status.Effective.Sequence && (sequence == 0 || seen.Sequence == sequence)
	})
}
