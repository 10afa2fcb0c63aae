// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/actions/preview"
)

// DescribePreview says at the end of a preview whether its writes lead to the authorized state.
func DescribePreview(r *preview.Report) string {
	total, good := 0, 0
	for i := range r.Plans {
		for j := range r.Plans[i].Steps {
			total++
			if r.Plans[i].Steps[j].Outcome == preview.Converges {
				good++
			}
		}
	}
	switch {
	case len(r.Problems) > 0:
		return "The policy has to be put right first."
	case total == 0:
		return "There is no write to make."
	case good == total && total == 1:
		return "The write would lead to the authorized state. The dry run stored no object."
	case good == total:
		return fmt.Sprintf("All %d writes would lead to the authorized state. The dry runs stored no object.", total)
	}
	return fmt.Sprintf("%d of %d writes would lead to the authorized state. The dry runs stored no object.", good, total)
}

// MarkDryRun returns the mark of a dry run: one column.
func MarkDryRun(o preview.Outcome) string {
	switch o {
	case preview.Converges:
		return "✓"
	case preview.Diverges, preview.Refused, preview.Forbidden, preview.Moved:
		return "✗"
	case preview.Unknown:
	}
	return "?"
}

// DescribeDryRun describes the result of a dry run.
func DescribeDryRun(o preview.Outcome) string {
	switch o {
	case preview.Converges:
		return "leads to the authorized state"
	case preview.Diverges:
		return "would not lead to the authorized state"
	case preview.Refused:
		return "refused"
	case preview.Forbidden:
		return "you may not write it"
	case preview.Moved:
		return "changed since it was looked at"
	case preview.Unknown:
		return "could not be tried"
	default:
		return string(o)
	}
}
