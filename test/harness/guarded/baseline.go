// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Describe writes what matters of a Baseline in one line, findings in their order
// and then the masks:
// "Drifted: Changed /spec/replicas by bob (Untrusted, Admission) [autoscaler /spec/replicas]".
func Describe(b *v1alpha1.Baseline) string {
	var text strings.Builder
	text.WriteString(string(b.Status.State))
	for i := range b.Status.Findings {
		f, before := &b.Status.Findings[i], "; "
		if i == 0 {
			before = ": "
		}
		fmt.Fprintf(&text, "%s%s %s by %s (%s, %s)",
			before, f.Operation, cmp.Or(f.Path, "object"), cmp.Or(f.Actor.User, "?"), f.Actor.Class, f.Actor.Source)
	}
	for i := range b.Status.Masks {
		fmt.Fprintf(&text, " [%s %s]", b.Status.Masks[i].Rule, b.Status.Masks[i].Path)
	}
	if b.Status.RetirementTime != nil && b.Status.State != v1alpha1.StateRetired {
		text.WriteString(" retired")
	}
	return text.String()
}

// Reads is a check that a Baseline reads like this, see [Describe].
func Reads(want string) func(*v1alpha1.Baseline) error {
	return func(b *v1alpha1.Baseline) error {
		if got := Describe(b); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	}
}

// Authorized is the number of the revision that a Baseline authorizes, 0 for none.
func Authorized(b *v1alpha1.Baseline) int64 {
	if b.Spec.Authorized == nil {
		return 0
	}
	return b.Spec.Authorized.Number
}
