// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

const (
	// maxWaitingFor is the schema's bound, in bytes.
	maxWaitingFor = 512
	// maxReasonsTold bounds how many reasons are named.
	maxReasonsTold = 4
)

// waitingFor says in words what holds the policy back; empty when nothing does.
func (s *subject) waitingFor() string {
	if len(s.gathered.Problems) > 0 {
		return diff.TruncateText(diff.Printable(s.gathered.Problems[0].Error()), maxWaitingFor)
	}
	var parts []string
	if s.policy.Spec.Mode == v1alpha1.PolicyModeHalted {
		parts = append(parts, "it is halted")
	}
	if in := &s.gathered.Input; !in.Opening.Open && len(in.Drifts) > 0 {
		parts = append(parts, in.Opening.Why)
	}
	parts = append(parts, s.reasons()...)
	return diff.TruncateText(diff.Printable(strings.Join(parts, "; ")), maxWaitingFor)
}

// reasons are why drift is left out, the most frequent first, each with one example.
func (s *subject) reasons() []string {
	counts := map[planner.Reason]int{}
	for i := range s.out.LeftOut {
		counts[s.out.LeftOut[i].Reason]++
	}
	ordered := slices.SortedFunc(maps.Keys(counts), func(a, b planner.Reason) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	var out []string
	for _, reason := range ordered[:min(len(ordered), maxReasonsTold)] {
		_, example := s.count(reason)
		out = append(out, fmt.Sprintf("%d %s (%s)", counts[reason], reason, example))
	}
	if more := len(ordered) - maxReasonsTold; more > 0 {
		out = append(out, "and "+plural.Of(more, "other reason"))
	}
	return out
}
