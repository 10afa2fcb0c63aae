// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"encoding/binary"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// murmur2 is the hash of split_clients, by its definition.
func murmur2(text string) uint32 {
	const m, r = 0x5bd1e995, 24
	data := []byte(text)
	h := uint32(len(data)) //nolint:gosec // a short text
	for len(data) >= 4 {
		k := binary.LittleEndian.Uint32(data) * m
		k = (k ^ k>>r) * m
		h = h*m ^ k
		data = data[4:]
	}
	for i, b := range slices.Backward(data) {
		h ^= uint32(b) << (8 * i)
	}
	if len(data) > 0 {
		h *= m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// arm is the variation of a visitor: the first segment whose end is above the visitor's hash.
func arm(r *traffic.Routing, visitor string) string {
	hash, end := uint64(murmur2(r.Salt+"|"+visitor)), uint64(0)
	segments := r.Shares.Layout()
	for _, s := range segments {
		end += uint64(s.Weight) * 0xffffffff / uint64(traffic.Total) //nolint:gosec // no weight is below 0
		if hash < end {
			return s.Variation
		}
	}
	return segments[len(segments)-1].Variation
}
