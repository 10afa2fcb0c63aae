// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"regexp"
	"strconv"
	"strings"
)

// Percent is a share from 1 to 100.
type Percent int

// DefaultThreshold is the driftThreshold when nobody says one.
const DefaultThreshold Percent = 10

// The two forms are those of the field driftThreshold: a percentage, and a fraction with at
// most two decimals, which is a whole percentage too.
var (
	percentageForm = regexp.MustCompile(`^([1-9][0-9]?|100)%$`)
	fractionForm   = regexp.MustCompile(`^(0[.](0[1-9]|[1-9][0-9]?)|1([.]00?)?)$`)
)

// ParseThreshold reads a driftThreshold: a percentage such as 10%, from 1% to 100%, or the
// same as a fraction such as 0.1, from 0.01 to 1. Empty is [DefaultThreshold]. The error is
// a *InputError of kind NotAPercentage, and with it comes DefaultThreshold.
func ParseThreshold(text string) (Percent, error) {
	switch {
	case text == "":
		return DefaultThreshold, nil
	case percentageForm.MatchString(text):
		return wholePercent(text, strings.TrimSuffix(text, "%"))
	case fractionForm.MatchString(text):
		// The digits without the point, in hundredths: 0.1 is 010, and 1 is 100.
		whole, decimals, _ := strings.Cut(text, ".")
		return wholePercent(text, whole+(decimals + "00")[:2])
	default:
		return DefaultThreshold, notAPercentage(text)
	}
}

func wholePercent(text, digits string) (Percent, error) {
	percent, err := strconv.Atoi(digits)
	if err != nil {
		return DefaultThreshold, notAPercentage(text)
	}
	return Percent(percent), nil
}

func notAPercentage(text string) *InputError {
	return &InputError{
		Kind: ProblemNotAPercentage, Text: quoted(text),
		Detail: "neither a percentage from 1% to 100% nor a fraction from 0.01 to 1 with at most two decimals",
	}
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
