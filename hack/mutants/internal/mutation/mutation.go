// SPDX-License-Identifier: Apache-2.0

// Package mutation lists the mutants of a Go source file: copies of the file that
// differ from it in one operator, condition, constant, or statement. A test suite
// that passes with a mutant does not notice this difference.
package mutation

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Dropped stands for the new text of a statement that a mutant lacks.
const Dropped = "(dropped)"

// Key identifies a mutant. It holds no line number, so that a key stays the same
// while other lines of the file change.
type Key struct {
	// File is the path of the source file from the root of the repository.
	File string
	// Function is the name of the function or method, or of the first name that a
	// declaration outside of functions declares.
	Function string
	// Old and New are the lines that the mutant changes, with each run of white space
	// as one space.
	Old, New string
	// Number tells mutants apart that are equal in all else; it counts from 1.
	Number int
}

// String formats the key as one line.
func (k Key) String() string {
	number := ""
	if k.Number > 1 {
		number = fmt.Sprintf(" #%d", k.Number)
	}
	return fmt.Sprintf("%s: %s%s: %s => %s", k.File, k.Function, number, k.Old, k.New)
}

// Mutant is one change of a source file: the bytes from Start to End become Text.
type Mutant struct {
	Key
	Line       int
	Start, End int
	Text       string
}

// Apply returns the source with the change of the mutant.
func (m *Mutant) Apply(source []byte) []byte {
	return slices.Concat(source[:m.Start], []byte(m.Text), source[m.End:])
}

// String formats the mutant as one line that begins with its place.
func (m *Mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s => %s", m.File, m.Line, m.Function, m.Old, m.New)
}

// Shuffle orders mutants by a hash of the seed and their keys. So a change of the
// source adds and removes mutants, but it does not move the others.
func Shuffle(mutants []Mutant, seed uint64) []Mutant {
	type ranked struct {
		rank   [sha256.Size]byte
		mutant Mutant
	}
	all := make([]ranked, len(mutants))
	for i, m := range mutants {
		text := binary.BigEndian.AppendUint64(nil, seed)
		all[i] = ranked{sha256.Sum256(append(text, m.Key.String()...)), m}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(slices.Compare(a.rank[:], b.rank[:]), strings.Compare(a.mutant.String(), b.mutant.String()))
	})
	out := make([]Mutant, len(all))
	for i, r := range all {
		out[i] = r.mutant
	}
	return out
}
