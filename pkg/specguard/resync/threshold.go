// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"regexp"
	"strconv"
)

// Percent is a share from 1 to 100.
type Percent int

// DefaultThreshold is the driftThreshold when nobody says one.
const DefaultThreshold Percent = 10

var thresholdForm = regexp.MustCompile(`^([1-9][0-9]?|100)%$`)

// ParseThreshold reads a driftThreshold such as 10%, from 1% to 100%; empty is
// [DefaultThreshold]. The error is a *InputError of kind NotAPercentage, and with it
// comes DefaultThreshold.
func ParseThreshold(text string) (Percent, error) {
	if text == "" {
		return DefaultThreshold, nil
	}
	match := thresholdForm.FindStringSubmatch(text)
	if match == nil {
		return DefaultThreshold, &InputError{Kind: ProblemNotAPercentage, Text: quoted(text), Detail: "not a percentage from 1% to 100%"}
	}
	percent, err := strconv.Atoi(match[1])
	if err != nil {
		return DefaultThreshold, &InputError{Kind: ProblemNotAPercentage, Text: quoted(text), Detail: "not a percentage from 1% to 100%"}
	}
	return Percent(percent), nil
}

// Of is the share of a total, rounded up, and at least 1: a small installation is
// checked too. A share outside of 1 to 100 counts as the nearest of these, a
// negative total as none. Whole numbers only: 7 % of 100 is 7, which in floating
// point it is not.
func (p Percent) Of(total int) int {
	share := min(max(int(p), 1), 100)
	// In two parts, so that no total overflows.
	return max(total/100*share+(total%100*share+99)/100, 1)
}
