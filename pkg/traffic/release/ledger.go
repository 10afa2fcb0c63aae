// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Block is how many sequences a release gets at a time: so many decisions cost one
// write of the ledger.
const Block = 1000

// Entry is what is known of the sequences of one Service, and outlives its releases: a
// proxy never goes back to a lower one.
//
// An entry is dropped some time after its Service is gone, see [Look]. While a release holds the
// Service, its own sequences are those above Plain, up to
// Ceiling. Plain is what the Service has without one. When the holder is gone, the
// Service has Ceiling, which nothing of the holder has passed. That the holder is gone
// and that it is not seen yet look alike to a replica; it has to ask, since Ceiling
// said too early is a sequence that the release is held below for long.
type Entry struct {
	Plain uint64 `json:"plain"`
	// Ceiling, Release and Holder, its uid, are empty without a holder.
	Ceiling uint64 `json:"ceiling,omitempty"`
	Release string `json:"release,omitempty"`
	Holder  string `json:"holder,omitempty"`
	// Gone is since when the Service is not there, in seconds since 1970, of an entry without a
	// holder; 0 while the Service is there.
	Gone int64 `json:"gone,omitempty"`
	// Floor is what none of the dropped entries was above, in the entry of those.
	Floor uint64 `json:"floor,omitempty"`
}

// ParseEntry reads one.
func ParseEntry(text string) (e Entry, err error) {
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return Entry{}, fmt.Errorf("reading an entry of sequences: %w", err)
	}
	if e.Ceiling != 0 && e.Ceiling < e.Plain || e.Holder == "" && e.Ceiling != 0 {
		return Entry{}, fmt.Errorf("reading an entry of sequences: %s contradicts itself", text)
	}
	return e, nil
}

// String is how it is stored.
func (e Entry) String() string {
	text, err := json.Marshal(e)
	if err != nil {
		return "{}" // it has no field that could fail
	}
	return string(text)
}

// Hold has a release hold the Service for its next decision, which may take two sequences. before is
// the highest sequence that it has taken, 0 if nothing is in force. floor is what the next one is above.
func (e Entry) Hold(name, uid string, before uint64) (held Entry, floor uint64) {
	switch {
	case e.Holder != uid:
		// Whoever held it before has passed nothing above its ceiling.
		e = Entry{Plain: e.top(), Release: name, Holder: uid}
		e.Ceiling = max(e.Plain, before) + Block
	case before == 0:
		// It has decided and lost what it decided.
		e.Plain = e.Ceiling
		e.Ceiling += Block
	case before+2 > e.Ceiling:
		e.Ceiling = before + Block
	}
	return e, e.Plain
}

// Settle is the entry when the holder is gone.
func (e Entry) Settle() Entry { return Entry{Plain: e.top()} }

// Restore is the entry when e is what is stored and known what was last seen there:
// one that somebody has put back is put forward again, since proxies never go back.
func (e Entry) Restore(known Entry) Entry {
	switch {
	case e.Holder == known.Holder:
		e.Plain, e.Ceiling, e.Floor = max(e.Plain, known.Plain), max(e.Ceiling, known.Ceiling), max(e.Floor, known.Floor)
		return e
	case e.Plain >= known.top(): // what holder or settlement came after it
		return e
	default:
		return known
	}
}

// top is what nothing of the entry has passed.
func (e Entry) top() uint64 { return max(e.Plain, e.Ceiling) }

// LedgerName is the ConfigMap, in Plumbline's namespace, that has the entries.
const LedgerName = "plumbline-xds-sequences"

// EntryKey of a Service. Namespaces have no dots.
func EntryKey(service types.NamespacedName) string { return service.Namespace + "." + service.Name }

// ParseEntries reads the data of the ConfigMap. What cannot be read is an error: to
// begin anew would be to go back.
func ParseEntries(data map[string]string) (map[string]Entry, error) {
	entries := make(map[string]Entry, len(data))
	var errs []error
	for key, text := range data {
		e, err := ParseEntry(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
		entries[key] = e
	}
	return entries, errors.Join(errs...)
}

// FormatEntries is the data of the ConfigMap.
func FormatEntries(entries map[string]Entry) map[string]string {
	data := make(map[string]string, len(entries))
	for key, e := range entries {
		data[key] = e.String()
	}
	return data
}
