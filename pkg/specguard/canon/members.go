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

// sortMembers puts the children of a closed map in key order; false when a key
// is there twice.
func (d *Document) sortMembers(n *node) bool {
	members := d.nodes[n.first : n.first+n.count]
	keys := d.memberKeys[:0]
	for i := range members {
		keys = append(keys, memberKey{prefix: keyPrefix(d.keyOf(&members[i])), index: uint32(i)})
	}
	d.memberKeys = keys
	slices.SortFunc(keys, func(a, b memberKey) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(d.keyOf(&members[a.index]), d.keyOf(&members[b.index]))
	})
	for i := 1; i < len(keys); i++ {
		a, b := keys[i-1], keys[i]
		if a.prefix == b.prefix && bytes.Equal(d.keyOf(&members[a.index]), d.keyOf(&members[b.index])) {
			return false
		}
	}
	d.stack = append(d.stack, members...)
	unsorted := d.stack[len(d.stack)-len(members):]
	for i, key := range keys {
		members[i] = unsorted[key.index]
	}
	d.stack = d.stack[:len(d.stack)-len(members)]
	return true
}

// keyPrefix orders as the key does, but for keys that begin alike: a shorter
// key is filled up with zeros, and then compared whole.
func keyPrefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var prefix uint64
	for i, c := range key {
		prefix |= uint64(c) << (56 - 8*i)
	}
	return prefix
}
