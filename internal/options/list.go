// SPDX-License-Identifier: Apache-2.0

package options

import "strings"

// SplitList splits a comma separated flag and drops blanks.
func SplitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
