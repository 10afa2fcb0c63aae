// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// Entry is what splits.map has of a port.
type Entry struct {
	Key, Value string
}

// EntryOf a port; false if no split divides it.
func EntryOf(p envoyxds.Port) (Entry, bool) {
	if p.Division == nil {
		return Entry{}, false
	}
	return Entry{entryKey(p), formatEntry(p.Sequence, p.Division.Segments, countSegments(len(listVariations(p))))}, true
}

// entryKey has a digest of all that decides what a value of the entry means to a request.
func entryKey(p envoyxds.Port) string {
	d := sha256.New()
	add := func(parts ...string) {
		for _, part := range parts {
			fmt.Fprintf(d, "%d:%s", len(part), part)
		}
	}
	key := p.Division.Key
	add(key.Kind.String(), key.Name, key.Domain, strconv.FormatBool(key.Secure), p.Division.Salt)
	for _, f := range p.Division.Forced {
		add("forced", f.Header, f.Value, f.Variation)
	}
	for _, v := range listVariations(p) {
		add("variation", v)
	}
	const digits = 12 // 48 bits, far beyond the workers that live at one time
	return portName(p) + "@" + hex.EncodeToString(d.Sum(nil))[:digits]
}

// listVariations returns the variations of a port, in the order of its arms.
func listVariations(p envoyxds.Port) (names []string) {
	for _, a := range p.Arms {
		if !a.Forced {
			names = append(names, a.Variation)
		}
	}
	return names
}

// countSegments returns the largest number of segments of so many variations: each but the stable one, and the stable one
// behind each (traffic.Shares.Layout).
func countSegments(variations int) int { return max(1, 2*(variations-1)) }

// separator of the fields of a value. No name of a variation has it.
const separator = ":"

// formatEntry writes SEQUENCE:ARM:END:ARM:END:…:ARM. A request has the last arm before which no end
// is above its bucket. The value has as many fields as the rules read: what is left over repeats the
// last arm behind the last bucket.
func formatEntry(sequence uint64, segments []traffic.Segment, room int) string {
	fields := []string{strconv.FormatUint(sequence, 10)}
	end := traffic.Weight(0)
	for i := range max(room, len(segments)) {
		s := segments[min(i, len(segments)-1)]
		if i > 0 {
			fields = append(fields, strconv.Itoa(int(end)))
		}
		fields = append(fields, s.Variation)
		end = min(end+s.Weight, traffic.Total)
	}
	return strings.Join(fields, separator)
}

// ParseEntry reads a value as HAProxy does, and refuses any that was not written by [EntryOf]: a
// value that somebody edited.
func ParseEntry(value string) (sequence uint64, segments []traffic.Segment, err error) {
	fields := strings.Split(value, separator)
	sequence, err = strconv.ParseUint(fields[0], 10, 64)
	if err != nil || len(fields)%2 != 0 {
		return 0, nil, fmt.Errorf("reading entry %.100q: want SEQUENCE:ARM:END:…:ARM", value)
	}
	begin := traffic.Weight(0)
	for i := 1; i < len(fields); i += 2 {
		end := traffic.Total
		if i+1 < len(fields) {
			n, err := strconv.ParseUint(fields[i+1], 10, 16)
			if end = traffic.Weight(n); err != nil || end > traffic.Total {
				return 0, nil, fmt.Errorf("reading entry %.100q: end %.20q is not between 0 and %d", value, fields[i+1], traffic.Total)
			}
		}
		if end > begin {
			segments = append(segments, traffic.Segment{Variation: fields[i], Weight: end - begin})
			begin = end
		}
	}
	if begin != traffic.Total || formatEntry(sequence, segments, len(fields)/2) != value {
		return 0, nil, fmt.Errorf("reading entry %.100q: it is not as Plumbline writes it", value)
	}
	return sequence, segments, nil
}

// CheckEntry compares a value that was read back with what a port needs. The error says how they
// differ.
func CheckEntry(want Entry, value string) error {
	if value == want.Value {
		return nil
	}
	wanted, _, err := ParseEntry(want.Value)
	if err != nil {
		return err
	}
	has, _, err := ParseEntry(value)
	switch {
	case err != nil:
		return fmt.Errorf("the entry %s was edited: %w", want.Key, err)
	case has == wanted:
		return fmt.Errorf("the entry %s was edited: it has sequence %d with other shares, %.200q", want.Key, has, value)
	default:
		return fmt.Errorf("%s has sequence %d, want %d", want.Key, has, wanted)
	}
}
