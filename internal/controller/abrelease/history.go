// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"sync"

	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// History keeps the last hour of runs while this replica leads. No decision reads it. [NewHistory] makes one; a nil
// History keeps nothing.
type History struct {
	mu sync.Mutex
	// book and clock are nil while another replica leads.
	book  *history.Book
	clock clock.PassiveClock
}

// NewHistory returns one that keeps nothing until this replica leads.
func NewHistory() *History { return &History{} }

// lead begins anew, until the returned function is called: another leader has kept what was before.
func (h *History) lead(c clock.PassiveClock) (resign func()) {
	if h == nil {
		return func() {}
	}
	set := func(book *history.Book, c clock.PassiveClock) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.book, h.clock = book, c
	}
	set(history.New(c.Now()), c)
	return func() { set(nil, nil) }
}

// Read returns the last hour of a release; false while this replica does not lead.
func (h *History) Read(of history.Release) (history.Series, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.book == nil {
		return history.Series{}, false
	}
	return h.book.Read(of, h.clock.Now()), true
}

// count keeps the counts of a router.
func (h *History) count(s *subject, m *traffic.Measurement) {
	h.keep(func(b *history.Book) { b.Count(nameInHistory(s), m.Cells, s.now) })
}

// note keeps a look at the stage under way.
func (h *History) note(s *subject, before rollout.State, a *analysis) {
	look := history.LookOf(before.Run.Number, int32(before.Current()), a.assessment, a.config.Canary, a.config.Control) //nolint:gosec // at most 16 stages
	h.keep(func(b *history.Book) { b.Note(nameInHistory(s), look, s.now) })
}

// forget drops a release that is gone.
func (h *History) forget(namespace, name string) {
	h.keep(func(b *history.Book) { b.Forget(namespace, name) })
}

func (h *History) keep(change func(*history.Book)) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.book != nil {
		change(h.book)
	}
}

func nameInHistory(s *subject) history.Release {
	return history.Release{Namespace: s.release.Namespace, Name: s.release.Name, UID: string(s.release.UID)}
}
