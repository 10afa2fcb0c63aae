// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// Silence is after which time a replica is not heard. Each tells something every
// [Beat], if only that there is nothing new.
const (
	Silence = 6 * time.Second
	Beat    = time.Second
)

// The bounds of what one replica may tell: five times as much as one is made for.
const (
	maxProxies = 50_000
	maxRoutes  = 500_000
)

// Mirror is what another replica knows, as far as it has told that. It may be used by
// many at once; only one tells.
type Mirror struct {
	mu sync.Mutex
	// known is what it told at last completely, and loading what it has begun to tell.
	known, loading *acknowledged.Index
	number         uint64
	heard          time.Time
	tally          Tally
	cells          signals.Log
}

// NewMirror knows nothing.
func NewMirror() *Mirror { return &Mirror{known: acknowledged.NewIndex()} }

// Begin says that it tells everything anew.
func (m *Mirror) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loading, m.number = acknowledged.NewIndex(), 0
}

// Take what it tells. After an error nothing more may be taken but after Begin.
func (m *Mirror) Take(u *Update, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u.Number != m.number+1 {
		return fmt.Errorf("update %d follows %d", u.Number, m.number)
	}
	m.number = u.Number
	into := m.known
	if m.loading != nil {
		into = m.loading
	}
	for _, c := range u.shifted(now) {
		if c.UID == "" {
			return errors.New("a proxy without a uid")
		}
		into.Merge(c, now)
	}
	if proxies, routes := into.Size(); proxies > maxProxies || routes > maxRoutes {
		return fmt.Errorf("it tells of more than %d proxies or %d routes of them", maxProxies, maxRoutes)
	}
	if u.Complete && m.loading != nil {
		m.known, m.loading = m.loading, nil
	}
	if m.loading == nil {
		m.heard = now
	}
	if err := m.keep(u); err != nil {
		return err
	}
	return m.tally.Add(u.Epoch, u.Counts, now)
}

// keep the cells of an update.
func (m *Mirror) keep(u *Update) error {
	epoch := signals.EpochOf(u.Epoch)
	for _, c := range u.Cells {
		last := m.cells.Last()
		if epoch < last.Epoch || epoch == last.Epoch && c.Number <= last.Number {
			return fmt.Errorf("cell %d of epoch %d follows %d of %d", c.Number, epoch, last.Number, last.Epoch)
		}
		cell, err := signals.DecodeCell(c.Data)
		if err != nil {
			return err
		}
		m.cells.Add(signals.Position{Epoch: epoch, Number: c.Number}, cell.Slot, cell.Start, c.Data)
	}
	return nil
}

// Last is the position of the last cell that it has told.
func (m *Mirror) Last() signals.Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cells.Last()
}

// Cells are those that it has told, see [signals.Log.After].
func (m *Mirror) Cells(after signals.Position, limit int) (cells []signals.Told, lost bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cells.After(after, limit)
}

// Heard says that it is known what it knows.
func (m *Mirror) Heard(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.heard.IsZero() && now.Sub(m.heard) < Silence
}

// Records are what it has told of routes of these proxies; see [acknowledged.Index.Records].
func (m *Mirror) Records(uids, routes []string) map[string]acknowledged.Record {
	m.mu.Lock()
	known := m.known
	m.mu.Unlock()
	return known.Records(uids, routes)
}

// Held are the routes that its proxies have; see [acknowledged.Index.Held].
func (m *Mirror) Held() map[string]bool {
	m.mu.Lock()
	known := m.known
	m.mu.Unlock()
	return known.Held()
}

// Counted is what its proxies have counted of the variations of a service since a
// time, by name; see [Tally.Since].
func (m *Mirror) Counted(namespace, service string, since time.Time) (map[string]Count, time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tally.Since(namespace, service, since)
}
