// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// describeAssessment describes what the record of an assessment tells; x is nil in other records.
func describeAssessment(d *invocation.Description, x *evidence.Assessment, wide bool) {
	if x == nil {
		return
	}
	d.Field("  Effect", fmt.Sprintf("%s, by assessment %s", effectWords(x), x.Name))
	d.Field("  Hashes", fmt.Sprintf("%s → %s at the write, %s at the end", hashWords(x.PreHash, wide), hashWords(x.PostHash, wide), hashWords(x.CurrentHash, wide)))
}

// effectWords is what an assessment came to: Effective, 9,580 of 10,000 (full).
func effectWords(x *evidence.Assessment) string {
	words := x.Verdict
	if x.Score != nil {
		words += fmt.Sprintf(", %s of %s", actions.FormatScore(*x.Score), actions.FormatScore(effect.Best))
	}
	if x.Reason != "" {
		words += " (" + x.Reason + ")"
	}
	return words
}

// hashWords is a hash, or says that it is not known.
func hashWords(hash string, wide bool) string {
	if hash == "" {
		return "unknown"
	}
	return wording.FormatHash(hash, wide)
}
