// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Rule is a rule of people for one kind. It takes the place of the built-in one, but not
// of what holds for every object: one that is being deleted, is stalled, or of whose
// generation its controller has not heard, is not ready.
type Rule struct {
	// Source names where the rule stands, for people.
	Source string
	// Holds says whether an object, given as JSON, meets the rule. It fails when that
	// cannot be told.
	Holds func(object []byte) (bool, error)
}

// judge takes an error for a rule that does not hold: a mistake in a rule must not let
// the next batch begin.
func (r *Rule) judge(doc *canon.Document) (State, string) {
	holds, err := r.Holds(doc.Root().Raw())
	switch {
	case err != nil:
		return notReady("the rule in %s fails: %s", r.Source, diff.TruncateText(fmt.Sprint(err), maxQuoted))
	case !holds:
		return notReady("the rule in %s does not hold", r.Source)
	}
	return ready("the rule in %s holds", r.Source)
}
