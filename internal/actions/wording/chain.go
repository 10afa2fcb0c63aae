// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// Chain is a verified chain of records with the facts about its end.
type Chain struct {
	evidence.ChainReport
	// Head is how far the ledger says that the chain goes, and Anchor the last of so many Checkpoints; nil
	// where they do not know the chain.
	Head        *evidence.Head
	Anchor      *evidence.Checkpoint
	Checkpoints int
}

// IsOpen tells whether neither a ledger nor the anchor says how far the chain goes.
func (c *Chain) IsOpen() bool { return c.Head == nil && c.Anchor == nil }

// DescribeChain says how far a chain goes and should go, and lists the details. offline says that no ledger
// was asked.
func DescribeChain(c *Chain, offline bool) (words string, details []string) {
	words = fmt.Sprintf("%s, last #%d; %s", plural.Of(c.Records, "good record"), c.Last.Sequence, describeChainEnd(c, offline))
	if c.Anchor != nil {
		details = append(details, fmt.Sprintf("compared with %s, the last one at #%d of %s", plural.Of(c.Checkpoints, "checkpoint"), c.Anchor.Sequence, c.Anchor.At.Format(time.RFC3339)))
	}
	for _, w := range c.Withdrawn {
		details = append(details, fmt.Sprintf("#%d is withdrawn by #%d: it was decided and never stored", w.Sequence, w.By))
	}
	if len(c.Keys) > 1 {
		for _, span := range c.Keys {
			details = append(details, fmt.Sprintf("#%d to #%d signed by key %s", span.From, span.To, FormatKey(span.KeyID, false)))
		}
	}
	return words, details
}

func describeChainEnd(c *Chain, offline bool) string {
	switch {
	case c.Head != nil && c.Ahead > 0:
		return fmt.Sprintf("%d more than the ledger knows of, as a dying writer may leave", c.Ahead)
	case c.Head != nil && c.Last.Sequence >= c.Head.Sequence:
		return "goes as far as the ledger says"
	case c.Head != nil:
		return fmt.Sprintf("should go to %d", c.Head.Sequence)
	case c.Anchor != nil && c.Last.Sequence >= c.Anchor.Sequence:
		return "goes as far as the anchor says"
	case c.Anchor != nil:
		return fmt.Sprintf("should go to %d", c.Anchor.Sequence)
	case offline:
		return "its end was not compared"
	}
	return "its end is not known: no ledger tells it"
}

// ConcludeEvidence says whether records are whole, without a period at the end where more may follow. open
// counts the chains with an unknown end.
func ConcludeEvidence(records, chains, problems, open int) string {
	switch {
	case problems > 0:
		return fmt.Sprintf("NOT WHOLE: %s; the first is where to look", plural.Of(problems, "problem"))
	case records == 0:
		return "No records were found to verify"
	case open > 0:
		return fmt.Sprintf("UNKNOWN: %s in %s are valid, but the end of %s is not known", plural.Of(records, "record"), plural.Of(chains, "chain"), plural.Of(open, "chain"))
	}
	return fmt.Sprintf("Whole: %s in %s", plural.Of(records, "record"), plural.Of(chains, "chain"))
}
