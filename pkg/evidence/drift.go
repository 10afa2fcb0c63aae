// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// MaxPathBytes bounds the paths that a record shows, so that a record of usual
// size stays below 4 KiB.
const MaxPathBytes = 1536

// Drift lists the paths that differed. Never a value.
type Drift struct {
	// Paths in byte order; the first ones, when all would be too long.
	Paths []string `json:"paths"`
	// Total number of paths.
	Total int `json:"total"`
	// Digest of all of them; see [PathsDigest].
	Digest string `json:"digest"`
}

// NewDrift sorts the paths, drops repeated ones, and keeps as many whole ones
// from the front as MaxPathBytes allows.
func NewDrift(paths []string) *Drift {
	all := slices.Clone(paths)
	slices.Sort(all)
	all = slices.Compact(all)
	d := &Drift{Paths: []string{}, Total: len(all), Digest: PathsDigest(all)}
	size := 0
	for _, path := range all {
		size += len(path)
		if size > MaxPathBytes {
			break
		}
		d.Paths = append(d.Paths, path)
	}
	return d
}

// PathsDigest is the SHA-256 of the paths in the given order, each written as
// its length in bytes in decimal, a space, the path and a newline. The lengths
// keep a path with a newline in it from reading as two.
func PathsDigest(paths []string) string {
	h := sha256.New()
	for _, path := range paths {
		fmt.Fprintf(h, "%d %s\n", len(path), path)
	}
	return digestPrefix + hex.EncodeToString(h.Sum(nil))
}
