// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Change is one difference at a path, an RFC 6901 pointer. Before and after are canonical
// JSON in which values that look like secrets are redacted.
type Change struct {
	Path      string `json:"path"`
	Operation string `json:"operation"`
	Before    string `json:"before,omitempty"`
	After     string `json:"after,omitempty"`
	// Reordered: the same elements in another order.
	Reordered bool `json:"reordered,omitempty"`
}

// ReportChanges returns changes in their order, with values that look like secrets redacted.
func ReportChanges(changes []diff.Change) []Change {
	reports := make([]Change, 0, len(changes))
	for _, change := range changes {
		redacted := diff.Redact(change)
		reports = append(reports, Change{
			Path: redacted.Path.String(), Operation: string(redacted.Op),
			Before: string(redacted.Before), After: string(redacted.After),
			Reordered: redacted.Reordered(),
		})
	}
	return reports
}
