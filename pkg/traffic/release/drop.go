// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// KeptFor is how long an entry stays after its Service is gone: longer than any stream of a
// proxy, half an hour and a tenth of that at random, and than connections that drain, ten minutes.
const KeptFor = 45 * time.Minute

// droppedKey is where the ledger has what was dropped: no namespace has this name. Plain is the
// sum of the dropped entries, since a route of many Services has the sum of their sequences,
// which never falls. A release that knows nothing of it reads an entry like any other, and adds
// it up likewise.
const droppedKey = "_.dropped"

// Look is what the entries that nothing holds depend on.
type Look struct {
	Now time.Time
	// KeptFor is the constant of this name, or less in a test.
	KeptFor time.Duration
	// Present says that a Service is there.
	Present func(types.NamespacedName) bool
}

// Mark notes of each entry that nothing holds since when its Service is gone. Of a ledger that
// has no room for all marks, as one of before there were marks, some entries wait for theirs.
func (l Look) Mark(entries map[string]Entry) {
	waiting := (Size(entries) - maxStored + markBytes - 1) / markBytes
	for key, e := range entries {
		service, is := serviceOf(key)
		if !is || e.Holder != "" {
			continue
		}
		switch {
		case l.Present(service):
			e.Gone = 0
		case e.Gone == 0 && waiting > 0:
			waiting--
		case e.Gone == 0 || e.Gone > l.Now.Unix(): // a time to come is no time
			e.Gone = l.Now.Unix()
		}
		entries[key] = e
	}
}

// Due are the Services whose entries may be dropped, if no proxy has a route of theirs.
func (l Look) Due(entries map[string]Entry) (due []types.NamespacedName) {
	for key, e := range entries {
		if service, is := serviceOf(key); is && e.Holder == "" && e.Gone > 0 && !l.Present(service) &&
			l.Now.Sub(time.Unix(e.Gone, 0)) >= l.KeptFor {
			due = append(due, service)
		}
	}
	slices.SortFunc(due, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return due
}

// Drop takes out the entries of these Services that no release holds, and counts them.
func Drop(entries map[string]Entry, services []types.NamespacedName) (dropped int) {
	for _, service := range services {
		e, is := entries[EntryKey(service)]
		if !is || e.Holder != "" {
			continue
		}
		all := entries[droppedKey]
		entries[droppedKey] = Entry{Plain: all.Plain + e.Plain, Floor: max(all.Floor, e.Plain)}
		delete(entries, EntryKey(service))
		dropped++
	}
	return dropped
}

// EntryOf a Service for a release that has decided nothing yet. One whose entry was dropped goes
// on above it, and so does each Service that is new.
func EntryOf(entries map[string]Entry, service types.NamespacedName) Entry {
	e, is := entries[EntryKey(service)]
	if !is {
		e.Plain = entries[droppedKey].Floor
	}
	return e
}

// Follow is what a replica believes that knew some entries and reads others: what is stored,
// without those that were dropped, which are named. Entries that are missing although nothing was
// dropped instead are kept, since someone has taken them out.
func Follow(known, stored map[string]Entry) (believed map[string]Entry, dropped []types.NamespacedName) {
	var missing []string
	var sum uint64
	for key, e := range known {
		if _, is := stored[key]; !is {
			missing = append(missing, key)
			sum += e.top()
		}
	}
	if len(missing) == 0 {
		return stored, nil
	}
	if stored[droppedKey].Plain >= known[droppedKey].Plain+sum && !slices.Contains(missing, droppedKey) {
		for _, key := range missing {
			if service, is := serviceOf(key); is {
				dropped = append(dropped, service)
			}
		}
		return stored, dropped
	}
	for _, key := range append(missing, droppedKey) {
		if e, is := known[key]; is {
			stored[key] = e
		} else {
			delete(stored, key)
		}
	}
	return stored, nil
}

// serviceOf an entry; false for that of the dropped ones.
func serviceOf(key string) (types.NamespacedName, bool) {
	namespace, name, found := strings.Cut(key, ".")
	return types.NamespacedName{Namespace: namespace, Name: name}, found && key != droppedKey
}
