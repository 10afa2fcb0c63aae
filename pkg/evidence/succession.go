// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// KeyEnd says where the range of a key ends in one chain. It stands in for the signature
// of a key whose private half is gone.
type KeyEnd struct {
	Chain string `json:"chain"`
	// Key may sign the records up to Last, and Successor those after it.
	Key       string `json:"key"`
	Last      int64  `json:"last"`
	Successor string `json:"successor"`
}

// ParseKeyEnds reads the ends of keys from JSON; nil data has none.
func ParseKeyEnds(data []byte) ([]KeyEnd, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var ends []KeyEnd
	if err := json.Unmarshal(data, &ends); err != nil {
		return nil, fmt.Errorf("parsing the ends of evidence keys: %w", err)
	}
	return ends, nil
}

// Succession names the key that may sign from the next record on. The record is signed by
// the predecessor, or by the successor where a [KeyEnd] says the same.
type Succession struct {
	Predecessor string `json:"predecessor"`
	Successor   string `json:"successor"`
}

func (s *Succession) validate() error {
	if s == nil {
		return nil
	}
	if s.Predecessor == s.Successor {
		return invalid("succession.successor", "is the predecessor")
	}
	return cmp.Or(
		required(keyPattern, "succession.predecessor", s.Predecessor, maxName),
		required(keyPattern, "succession.successor", s.Successor, maxName),
	)
}

// signing follows which key may sign the next record of a chain. A key signs no record
// after the record of its successor.
type signing struct {
	// current may sign the next record; any key may while it is empty.
	current string
	// passed are the keys that have a successor.
	passed map[string]bool
	// unsure says that the record before could not be read: it may have named a successor.
	unsure bool
	// ends are those of this chain, by their key.
	ends map[string]KeyEnd
}

func newSigning(chain string, ends []KeyEnd) *signing {
	s := &signing{passed: map[string]bool{}, ends: map[string]KeyEnd{}}
	for _, end := range ends {
		if end.Chain == chain {
			s.ends[end.Key] = end
		}
	}
	return s
}

// follow judges the key of a record, and goes on to the next one. The text says what is
// wrong with the key; it is empty for a key that may sign here.
func (k *signing) follow(s Sealed) string {
	wrong := k.judge(s)
	if wrong != "" && k.knows(s.KeyID) {
		return wrong // those after it are judged as if this one did not exist
	}
	k.pass(s.KeyID)
	if succession := s.Record.Succession; wrong == "" && succession != nil && succession.Predecessor == s.KeyID {
		k.pass(succession.Successor)
	}
	k.unsure = false
	return wrong
}

func (k *signing) judge(s Sealed) string {
	at := s.Record.Chain.Sequence
	if end, ended := k.ends[s.KeyID]; ended && at > end.Last {
		return fmt.Sprintf("key %s may sign records up to %d alone", s.KeyID, end.Last)
	}
	end, ended := k.ends[k.current]
	switch {
	case k.current == "", s.KeyID == k.current:
		return ""
	case k.passed[s.KeyID]:
		return fmt.Sprintf("key %s has a successor, and signs no further record", s.KeyID)
	case ended && end.Successor == s.KeyID && at == end.Last+1, k.unsure:
		return ""
	}
	return fmt.Sprintf("signed by key %s, and key %s alone may sign here", s.KeyID, k.current)
}

// knows says whether a key has had its turn in this chain.
func (k *signing) knows(key string) bool {
	_, ended := k.ends[key]
	return ended || k.passed[key]
}

// pass makes a key the current one.
func (k *signing) pass(key string) {
	if k.current != "" && k.current != key {
		k.passed[k.current] = true
	}
	k.current = key
}

// next is the key that may sign the record after a sequence.
func (k *signing) next(sequence int64) string {
	if end, ended := k.ends[k.current]; ended && sequence >= end.Last {
		return end.Successor
	}
	return k.current
}

// lose says that a record could not be read.
func (k *signing) lose() { k.unsure = true }

// AddKeyEnd adds an end to those that are known. The end of a key in a chain is told once:
// a later one changes nothing.
func AddKeyEnd(ends []KeyEnd, end KeyEnd) []KeyEnd {
	same := func(e KeyEnd) bool { return e.Chain == end.Chain && e.Key == end.Key }
	if slices.ContainsFunc(ends, same) {
		return ends
	}
	return append(slices.Clone(ends), end)
}
