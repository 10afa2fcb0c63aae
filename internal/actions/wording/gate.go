// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/explain"
)

// MarkGate returns the mark of a gate of a policy: one column.
func MarkGate(state explain.State) string {
	switch state {
	case explain.Open:
		return "✓"
	case explain.Closed:
		return "✗"
	case explain.Unknown:
	}
	return "?"
}

// SplitGate tells whether a gate is one of a ledger, and which.
func SplitGate(g *explain.Gate) (ledger, name string) {
	if ledger, name, found := strings.Cut(g.Name, "/"); found {
		return ledger, name
	}
	return "", g.Name
}

// IsUnbound tells that a gate is open and compares no values.
func IsUnbound(g *explain.Gate) bool {
	return g.State == explain.Open && g.Value == "" && g.Limit == "" && (g.Message == "" || strings.HasSuffix(g.Message, "no limit"))
}

// DescribeUnbound names open gates without a bound.
func DescribeUnbound(names []string) string {
	return "without limit or finding: " + strings.Join(names, ", ")
}

// DescribeUnseen names gates that depend on options of the executor, which a user cannot read.
func DescribeUnseen(names []string) string {
	return "unknown here, as options of the executor: " + strings.Join(names, ", ")
}

// IsUnseen tells whether the verdict leaves a gate aside, because the user cannot read the options of the executor.
func IsUnseen(g *explain.Gate) bool { return g.State == explain.Unknown && g.Aside }

// zeroUnits are the units of a duration without a value behind other units, as in 1h0m0s.
var zeroUnits = regexp.MustCompile(`(\d[hm])0[ms](0s)?\b`)

// shortenDurations leaves out the units of durations that have no value.
func shortenDurations(text string) string { return zeroUnits.ReplaceAllString(text, "$1") }

// DescribeCommand names the command of a person for a drift that no plan remediates.
func DescribeCommand(e *explain.Explanation) string { return "To remediate it now: " + e.Command }

// DescribeGate tells the value of a gate, its limit, its message and its end.
func DescribeGate(g *explain.Gate, now time.Time) string {
	var parts []string
	switch {
	case g.Value != "" && g.Limit != "":
		parts = append(parts, fmt.Sprintf("%s, wants %s", g.Value, g.Limit))
	case g.Value != "" || g.Limit != "":
		parts = append(parts, cmp.Or(g.Value, g.Limit))
	}
	if g.Message != "" {
		parts = append(parts, g.Message)
	}
	if g.State == explain.Closed && !g.Until.IsZero() {
		parts = append(parts, FormatUntil(metav1.NewTime(g.Until), now))
	}
	if len(parts) == 0 {
		return map[explain.State]string{explain.Open: "all gates are open", explain.Unknown: "not known"}[g.State]
	}
	return shortenDurations(strings.Join(parts, "; "))
}

// DescribeVerdict is the sentence at the end of an explanation, with how far a time is away.
func DescribeVerdict(e *explain.Explanation, now time.Time) string {
	sentence := e.String()
	if e.Verdict == explain.RepairedAt {
		sentence += " (in " + FormatDuration(e.At.Sub(now)) + ")"
	}
	return shortenDurations(strings.ToUpper(sentence[:1]) + sentence[1:])
}

// DescribeUnexplained tells why an object has no explanation. policy is the asked policy;
// empty if all were asked.
func DescribeUnexplained(b *v1alpha1.Baseline, policy string) string {
	switch actions.StandingOf(b) {
	case actions.StandingInSync:
		return "it is in sync: there is no drift to remediate"
	case actions.StandingRetired:
		return "it is retired: there is no drift to remediate"
	case actions.StandingNotGuarded:
		return "no guard selects it any more"
	case actions.StandingUnknown:
		return "its state is unknown, and drift of an unknown state is not remediated"
	case actions.StandingDrifted, actions.StandingMissing:
	}
	if policy != "" {
		return "policy " + policy + " does not select it"
	}
	return "it has drifted, and no policy selects it"
}

// IsLookedAt says that the status of a policy speaks of the spec as it is.
func IsLookedAt(p *v1alpha1.RemediationPolicy) bool {
	return p.Status.ObservedGeneration != 0 && p.Status.ObservedGeneration == p.Generation
}

// DescribeLimits gives the limits of a policy.
func DescribeLimits(s *v1alpha1.RemediationSafety) string {
	return fmt.Sprintf("%d at once, %d/h, %d/d", s.MaxConcurrent, s.MaxPerHour, s.MaxPerDay)
}
