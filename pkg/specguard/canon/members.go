// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// memberKey stands for a member while its map is sorted: sixteen bytes to move
// instead of a node, and one comparison for most keys.
type memberKey struct {
	prefix uint64 // the first eight bytes of the key, zeros behind it
	index  uint32
}

// moveSorted moves the members above base of the stack to the arena in key
// order; false when a key is there twice.
func (d *Document) moveSorted(base int) bool {
	members := d.stack[base:]
	keys := d.memberKeys[:0]
	for i := range members {
		n := &members[i]
		text := d.src
		if n.flags&keyDecoded != 0 {
			text = d.text
		}
		keys = append(keys, memberKey{prefix: keyPrefixIn(text, n.keyStart, n.keyEnd), index: uint32(i)})
	}
	d.memberKeys = keys
	compare := func(a, b memberKey) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(d.keyOf(&members[a.index]), d.keyOf(&members[b.index]))
	}
	sortByPrefix(keys, compare)
	for i := 1; i < len(keys); i++ {
		if keys[i-1].prefix == keys[i].prefix && compare(keys[i-1], keys[i]) == 0 {
			return false
		}
	}
	first := len(d.nodes)
	d.nodes = slices.Grow(d.nodes, len(members))[:first+len(members)]
	out := d.nodes[first:]
	for i, key := range keys {
		out[i] = members[key.index]
	}
	return true
}

// insertionLimit is up to how many keys insertion beats the general sort.
const insertionLimit = 40

// sortByPrefix sorts by compare, which orders by prefix first.
func sortByPrefix(keys []memberKey, compare func(a, b memberKey) int) {
	if len(keys) > insertionLimit {
		slices.SortFunc(keys, compare)
		return
	}
	for i := 1; i < len(keys); i++ {
		key, j := keys[i], i
		for ; j > 0; j-- {
			before := keys[j-1]
			if before.prefix < key.prefix || before.prefix == key.prefix && compare(before, key) <= 0 {
				break
			}
			keys[j] = before
		}
		keys[j] = key
	}
}

// keyPrefixIn is the first eight bytes of text[start:end], zeros behind it: it
// orders as the whole does, but for texts that begin alike. It reads beyond the
// end where there is text, and shifts that out.
func keyPrefixIn(text []byte, start, end uint32) uint64 {
	length := end - start
	if rest := text[start:]; len(rest) >= 8 {
		prefix := binary.BigEndian.Uint64(rest)
		if length < 8 {
			prefix &^= ^uint64(0) >> (8 * length)
		}
		return prefix
	}
	var prefix uint64
	for i, c := range text[start:end] {
		prefix |= uint64(c) << (56 - 8*i)
	}
	return prefix
}
