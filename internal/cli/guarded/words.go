// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"cmp"
	"slices"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// PrintResult is the one line per object that kubectl's verbs print.
func PrintResult(inv *invocation.Invocation, b *v1alpha1.Baseline, words string) error {
	return inv.Print(invocation.Printable(QualifiedName(b)), " ", words, "\n")
}

// QualifiedName names the object of a Baseline with its namespace.
func QualifiedName(b *v1alpha1.Baseline) string {
	return b.Namespace + "/" + ObjectOf(b)
}

// ValueWidth is how much of a value a table cell shows without -o wide.
const ValueWidth = 40

// DescribeChange tells the values before and after, cut to [ValueWidth] unless wide.
func DescribeChange(f *v1alpha1.Finding, wide bool) string {
	limit := ValueWidth
	if wide {
		limit = 2 * 1024 // the longest a finding holds, and more
	}
	before, after := invocation.Shorten(f.Before, limit), invocation.Shorten(f.After, limit)
	switch f.Operation {
	case v1alpha1.OperationAdded:
		return "+ " + after
	case v1alpha1.OperationRemoved:
		return "- " + before
	case v1alpha1.OperationChanged:
		return before + " → " + after
	default:
		return string(f.Operation) + ": " + before + " → " + after
	}
}

// DescribeState gives the state of a Baseline; Unknown before the first assessment.
func DescribeState(b *v1alpha1.Baseline) string {
	words := cmp.Or(string(b.Status.State), string(v1alpha1.StateUnknown))
	if b.Status.Contention != nil {
		words += " (contended)"
	}
	return words
}

// SortWorstFirst puts drifted and missing objects first, by their severity.
func SortWorstFirst(baselines []v1alpha1.Baseline) {
	severityOf := func(b *v1alpha1.Baseline) v1alpha1.Severity {
		if b.Status.Severity == nil {
			return v1alpha1.Severity{}
		}
		return *b.Status.Severity
	}
	bad := func(b *v1alpha1.Baseline) int {
		if s := actions.StandingOf(b); s > actions.StandingDrifted {
			return int(s)
		}
		return 0 // missing and drifted rank by severity
	}
	slices.SortFunc(baselines, func(x, y v1alpha1.Baseline) int {
		return cmp.Or(
			cmp.Compare(bad(&x), bad(&y)), severity.Compare(severityOf(&y), severityOf(&x)),
			cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}
