// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// The bounds of a [Book]. A release with three variations takes some 200 KiB, and at most 350 KiB.
const (
	// Window is how long a value is kept.
	Window = time.Hour
	// Step is the length of a cell, and the time of which one look is kept.
	Step = 10 * time.Second
	// MaxReleases are kept at once. The one without news for the longest time makes room.
	MaxReleases = 64
	// MaxCells and MaxLooks are kept of a release. The oldest make room.
	MaxCells = 9 * MaxLooks
	MaxLooks = int(Window/Step) + 1
	// maxAhead is how far ahead of the leader the clock of a part may be.
	maxAhead = time.Minute
	// maxParts bounds the parts of a router that are told apart.
	maxParts = 64
)

// Release names a release. The UID tells it from a later one with its name.
type Release struct{ Namespace, Name, UID string }

// Book has the series of releases. [New] makes one. One goroutine at a time may use it.
type Book struct {
	// since is when the book was begun, or made room for the last time.
	since    time.Time
	releases map[name]*entry
}

type name struct{ namespace, name string }

// entry is what is kept of one release.
type entry struct {
	uid string
	// since is the time from which on nothing is missing, and news that of the last news.
	since, news time.Time
	cells       []Cell
	looks       []Look
	// counted is the last cell of each part that is counted: a look whose result was not stored reads cells again.
	counted map[string]traffic.Position
}

// New begins a book that has kept nothing.
func New(now time.Time) *Book { return &Book{since: now, releases: map[name]*entry{}} }

// Count adds cells of a router. A cell that was counted before is left out.
func (b *Book) Count(of Release, cells []traffic.Cell, now time.Time) {
	if len(cells) == 0 {
		return
	}
	e := b.entry(of, now)
	for i := range cells {
		c := &cells[i]
		if !e.advance(c.Part, c.Position) || c.Start.After(now.Add(maxAhead)) {
			continue
		}
		e.add(Cell{
			Start: c.Start.Truncate(Step), Variation: c.Variation, Requests: c.Over, Failed: c.Failed, ClientErrors: c.ClientErrors, FailedOver: c.FailedOver,
		})
	}
	e.trim(now)
}

// Note keeps a look. A later one of the same ten seconds takes its place.
func (b *Book) Note(of Release, look Look, now time.Time) {
	e := b.entry(of, now)
	at, same := slices.BinarySearchFunc(e.looks, look, func(x, y Look) int {
		return x.Time.Truncate(Step).Compare(y.Time.Truncate(Step))
	})
	if same {
		e.looks[at] = look
	} else {
		e.looks = slices.Insert(e.looks, at, look)
	}
	e.trim(now)
}

// Forget drops a release that is gone.
func (b *Book) Forget(namespace, of string) { delete(b.releases, name{namespace, of}) }

// Read returns the last hour of a release. A release of which nothing is kept has an empty series.
func (b *Book) Read(of Release, now time.Time) Series {
	s := Series{Since: b.since, Cells: []Cell{}, Looks: []Look{}}
	if e := b.releases[name{of.Namespace, of.Name}]; e != nil && e.uid == of.UID {
		e.trim(now)
		s.Since = e.since
		s.Cells, s.Looks = append(s.Cells, e.cells...), append(s.Looks, e.looks...)
	}
	s.Since = latest(s.Since, now.Add(-Window))
	return s
}

// entry finds what is kept of a release, or makes room for it.
func (b *Book) entry(of Release, now time.Time) *entry {
	key := name{of.Namespace, of.Name}
	e := b.releases[key]
	if e == nil || e.uid != of.UID {
		delete(b.releases, key)
		b.makeRoom(now)
		e = &entry{uid: of.UID, since: b.since, counted: map[string]traffic.Position{}}
		b.releases[key] = e
	}
	e.news = latest(e.news, now)
	return e
}

// makeRoom drops the release without news for the longest time, of several the first by name. From then on it is
// not known of any release that is not kept whether it was dropped.
func (b *Book) makeRoom(now time.Time) {
	if len(b.releases) < MaxReleases {
		return
	}
	var oldest name
	for key, e := range b.releases {
		o := b.releases[oldest]
		if o == nil || cmp.Or(e.news.Compare(o.news), cmp.Compare(key.namespace, oldest.namespace), cmp.Compare(key.name, oldest.name)) < 0 {
			oldest = key
		}
	}
	delete(b.releases, oldest)
	b.since = latest(b.since, now)
}

// advance notes the last cell of a part; false for one that was counted before.
func (e *entry) advance(part string, to traffic.Position) bool {
	last, known := e.counted[part]
	if known && (to.Epoch < last.Epoch || to.Epoch == last.Epoch && to.Cell <= last.Cell) {
		return false
	}
	if !known && len(e.counted) >= maxParts { // replicas come and go; the checkpoint of the judge keeps cells from being read again
		clear(e.counted)
	}
	e.counted[part] = to
	return true
}

// add adds to the cell of the variation, which other parts may have told of.
func (e *entry) add(c Cell) {
	at, same := slices.BinarySearchFunc(e.cells, c, func(x, y Cell) int {
		return cmp.Or(x.Start.Compare(y.Start), cmp.Compare(x.Variation, y.Variation))
	})
	if !same {
		e.cells = slices.Insert(e.cells, at, c)
		return
	}
	has := &e.cells[at]
	has.Requests += c.Requests
	has.Failed += c.Failed
	has.ClientErrors += c.ClientErrors
	has.FailedOver += c.FailedOver
}

// trim drops what is too old, and the oldest of what is too much.
func (e *entry) trim(now time.Time) {
	from := now.Add(-Window)
	if more := len(e.cells) - MaxCells; more > 0 {
		e.since = latest(e.since, e.cells[more-1].Start.Add(Step))
		e.cells = slices.Delete(e.cells, 0, more)
	}
	if more := len(e.looks) - MaxLooks; more > 0 {
		e.since = latest(e.since, e.looks[more-1].Time.Truncate(Step).Add(Step))
		e.looks = slices.Delete(e.looks, 0, more)
	}
	e.cells = slices.DeleteFunc(e.cells, func(c Cell) bool { return c.Start.Before(from) })
	e.looks = slices.DeleteFunc(e.looks, func(l Look) bool { return l.Time.Before(from) })
}

func latest(x, y time.Time) time.Time {
	if x.Before(y) {
		return y
	}
	return x
}
