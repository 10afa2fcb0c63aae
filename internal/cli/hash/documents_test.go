// SPDX-License-Identifier: Apache-2.0

package hash

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/cli/documents"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var documentSeeds = []string{
	deploymentJSON, deploymentYAML, "", "---\n", "a: &a [*a]\n", "{\"a\":1}{", "a: 1\n---\nb: .5\n", "? [a]\n: b", "\ufeffa: !!str 1\n",
	"<<: {a: 1}\n", "a: \"\\ud83d\"\n", "a: 0x1_F\n", "a: |\n  x\n y\n", "%TAG ! x\n---\na: 1\n", "a: 1e400", "\xff", "a: [1,\n", "- a\n---\n{}", "a: {b: 1\n",
}

// checkReadDocuments: what is accepted is an object that both algorithms can
// hash, and what is refused names an offset inside the input.
func checkReadDocuments(t interface{ Fatalf(string, ...any) }, input []byte) {
	docs, err := documents.Parse("x", input)
	if err != nil {
		fault, ok := errors.AsType[*documents.InputError](err)
		if !ok || fault.Offset < 0 || fault.Offset > len(input) {
			t.Fatalf("%q: %v", input, err)
		}
		return
	}
	for i := range docs {
		for _, algorithm := range []canon.Algorithm{"", canon.DDEM002} {
			for _, bare := range []bool{false, true} {
				_, err := hashDocument(&docs[i], algorithm, bare)
				fault, ok := errors.AsType[*documents.InputError](err)
				if err != nil && (!ok || fault.Offset < 0 || fault.Offset > len(input)) {
					t.Fatalf("%q: %s, bare %v, of %s: %v", input, algorithm, bare, docs[i].Body, err)
				}
			}
		}
	}
}

func FuzzReadDocuments(f *testing.F) {
	for _, seed := range documentSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) { checkReadDocuments(t, input) })
}

// TestReadDocuments_AnyInput mixes what YAML and JSON are made of; it finds more
// in a second than the fuzzer, which has to carry the coverage of every client
// library that the package links.
func TestReadDocuments_AnyInput(t *testing.T) {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{
			"\n", "\n  ", " ", ": ", "- ", "? ", "{", "}", "[", "]", ",", "\"", "'", "#", "&a ", "*a", "!!str ", "!", "|\n", ">-\n", "---\n", "...\n", "<<", "%YAML 1.1\n",
			"a", "b", "spec", "1", "-1.5e3", "true", "~", "\\", "\\u00e9", "é", "\u2028", "\r", "\t", "\x00", "\xff", "\ufeff",
		}),
		rapid.SampledFrom(documentSeeds),
	)
	rapid.Check(t, func(t *rapid.T) {
		checkReadDocuments(t, []byte(strings.Join(rapid.SliceOfN(part, 0, 24).Draw(t, "parts"), "")))
	})
}
