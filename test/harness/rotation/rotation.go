// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"fmt"
	"os"
	"strconv"
)

// Variable is the environment variable that holds the number of the rotation.
const Variable = "PLUMBLINE_ROTATION"

// FromEnvironment reads the number of the rotation, which is 0 by default.
func FromEnvironment() (int, error) {
	text := os.Getenv(Variable)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", Variable, err)
	}
	return int(n), nil
}

// Slice chooses one in so many of n things, by their indexes. As many successive
// rotations choose each thing once.
func Slice(n, of, rotation int) []int {
	var chosen []int
	for i := rotation % of; i < n; i += of {
		chosen = append(chosen, i)
	}
	return chosen
}

// Case is one of the eight cases of a thing that has two sides and two options.
type Case struct {
	Thing             int
	Second            bool // the second side
	FirstOn, SecondOn bool // the options
}

// Pairs chooses 2n of the 8n cases of n things: one for each side of each thing. Any two
// values of thing, side and options occur together in each rotation if n is four or more.
// Four successive rotations choose each case once.
func Pairs(n, rotation int) []Case {
	var chosen []Case
	for thing := range n {
		options := (thing + rotation) % 4
		chosen = append(chosen,
			Case{thing, false, options&1 != 0, options&2 != 0},
			// The second side has the opposite, so that each thing meets each option.
			Case{thing, true, options&1 == 0, options&2 == 0})
	}
	return chosen
}
