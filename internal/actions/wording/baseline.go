// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// KindOf returns the kind of the object that a Baseline is about.
func KindOf(b *v1alpha1.Baseline) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(b.Spec.Target.APIVersion, b.Spec.Target.Kind)
}

// ObjectOf names the object that a Baseline is about.
func ObjectOf(b *v1alpha1.Baseline) string {
	return actions.NameObject(KindOf(b).GroupKind(), b.Spec.Target.Name)
}

// QualifiedName names the object of a Baseline with its namespace.
func QualifiedName(b *v1alpha1.Baseline) string { return b.Namespace + "/" + ObjectOf(b) }

// ValueWidth is how much of a value a table cell shows unless wide.
const ValueWidth = 40

// DescribeChange tells the values before and after, cut to [ValueWidth] unless wide.
func DescribeChange(f *v1alpha1.Finding, wide bool) string {
	limit := ValueWidth
	if wide {
		limit = 2 * 1024 // the longest a finding holds, and more
	}
	before, after := Shorten(f.Before, limit), Shorten(f.After, limit)
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

// NoteChange describes a change that its values do not tell; empty for another change.
func NoteChange(c *actions.Change) string {
	switch {
	case c.Reordered:
		return "reordered"
	case c.Path == "" && c.Operation == string(diff.Added):
		return "exists, and no trusted writer has created it"
	case c.Path == "" && c.Operation == string(diff.Removed):
		return "is gone, and no trusted writer has removed it"
	}
	return ""
}

// DescribeState gives the state of a Baseline; Unknown before the first assessment.
func DescribeState(b *v1alpha1.Baseline) string {
	words := cmp.Or(string(b.Status.State), string(v1alpha1.StateUnknown))
	if b.Status.Contention != nil {
		words += " (contended)"
	}
	return words
}

// DescribeDrift gives state and severity of a Baseline, and since when it is not in sync.
func DescribeDrift(b *v1alpha1.Baseline, now time.Time) string {
	words := DescribeState(b)
	if s := b.Status.Severity; s != nil {
		words += fmt.Sprintf(" · %s (%d)", s.Level, s.Score)
	}
	if b.Status.FirstSeenTime != nil && actions.StandingOf(b) != actions.StandingInSync {
		words += " · since " + FormatAge(*b.Status.FirstSeenTime, now)
	}
	return words
}

// DescribeAuthorized says which user has authorized the object last, and when.
func DescribeAuthorized(b *v1alpha1.Baseline, now time.Time) string {
	in := b.Spec.Authorized
	if in == nil {
		return "Baseline: not authorized, because no trusted writer has created the object"
	}
	return fmt.Sprintf("Baseline: revision %d (%s) by %s, %s", in.Number, in.Origin, NameAuthor(NameWriter(in.By), in.Release), FormatAgo(in.AuthorizationTime, now))
}

// DescribeContention names the writers that fight over an object.
func DescribeContention(c *v1alpha1.Contention, now time.Time) string {
	return fmt.Sprintf("Contention: since %s between %s", FormatAge(c.StartTime, now), strings.Join(c.With, fights))
}

// DescribeMask names a field that an expected writer moved.
func DescribeMask(m *v1alpha1.Mask) string {
	return fmt.Sprintf("Ignored: %s moved by %s (rule %s)", NameField(m.Path), NameWriter(m.Actor.User), m.Rule)
}

// ListBreakGlass names the users that went past a guard that denies, and their reasons; once per write,
// as one write may change many paths.
func ListBreakGlass(findings []v1alpha1.Finding) []string {
	var lines []string
	for i := range findings {
		actor := &findings[i].Actor
		if actor.BreakGlassReason == "" {
			continue
		}
		line := fmt.Sprintf("Break-glass: %s, %q", NameWriter(actor.User), actor.BreakGlassReason)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// SortWorstFirst puts drifted and missing objects first, by their severity.
func SortWorstFirst(baselines []v1alpha1.Baseline) {
	slices.SortFunc(baselines, func(x, y v1alpha1.Baseline) int { return CompareWorstFirst(&x, &y) })
}

// CompareWorstFirst puts the worse of two objects first, as [SortWorstFirst] does.
func CompareWorstFirst(x, y *v1alpha1.Baseline) int {
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
	return cmp.Or(
		cmp.Compare(bad(x), bad(y)), severity.Compare(severityOf(y), severityOf(x)),
		cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}

// Summary counts objects by their standing.
type Summary map[actions.Standing]int

// Summarize counts Baselines.
func Summarize(baselines []v1alpha1.Baseline) Summary {
	s := Summary{}
	for i := range baselines {
		s[actions.StandingOf(&baselines[i])]++
	}
	return s
}

// String names each standing that has objects, and those that matter most in any case.
func (s Summary) String() string {
	var parts []string
	for _, standing := range []actions.Standing{
		actions.StandingInSync, actions.StandingDrifted, actions.StandingMissing, actions.StandingUnknown, actions.StandingRetired, actions.StandingNotGuarded,
	} {
		if n := s[standing]; n > 0 || standing <= actions.StandingDrifted || standing == actions.StandingInSync {
			parts = append(parts, fmt.Sprintf("%d %s", n, NameStanding(standing)))
		}
	}
	return fmt.Sprintf("%d guarded: %s", s.Total(), strings.Join(parts, ", "))
}

// Total counts the objects of all standings.
func (s Summary) Total() int {
	total := 0
	for _, n := range s {
		total += n
	}
	return total
}

// NameStanding names a standing behind a number of objects.
func NameStanding(s actions.Standing) string {
	switch s {
	case actions.StandingMissing:
		return "missing"
	case actions.StandingDrifted:
		return "drifted"
	case actions.StandingUnknown:
		return "unknown"
	case actions.StandingInSync:
		return "in sync"
	case actions.StandingRetired:
		return "retired"
	case actions.StandingNotGuarded:
		return "no longer guarded"
	}
	return "unknown"
}
