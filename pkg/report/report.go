// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/printable"
)

// Source is the source of each report and of each result.
const Source = "plumbline"

// The words of the two APIs for a result.
const (
	Pass  openreports.Result = "pass"
	Fail  openreports.Result = "fail"
	Error openreports.Result = "error"
)

// Bounds of a report.
const (
	// MaxResults is how many results a report names; its summary counts all of them.
	MaxResults = 500
	// maxBytes is how many bytes of JSON the results take: etcd stores 1.5 MiB.
	maxBytes = 768 << 10
	// maxOwners is how many guards own a report.
	maxOwners = 64
	// maxText is the length of a text in bytes.
	maxText = 512
)

// Build makes the report of a namespace from the Baselines of the namespace. It fills the
// owners, the summary and the results; the name and the labels are the caller's. owners has the guards
// that exist, by their names in Baseline.status.guards. Objects that are retired or that no
// guard selects have no result. The worst results come first, and Build leaves out results
// beyond [MaxResults] or 768 KiB. ok is false if no object has a result.
func Build(baselines []*v1alpha1.Baseline, owners map[string]metav1.OwnerReference) (report openreports.Report, ok bool) {
	named, room := map[string]bool{}, maxBytes
	worst := slices.Clone(baselines)
	slices.SortFunc(worst, compareWorstFirst)
	for _, b := range worst {
		result, judged := findResult(b.Status.State)
		if !judged {
			continue
		}
		ok = true
		countResult(&report.Summary, result)
		for _, guard := range b.Status.Guards {
			named[guard] = true
		}
		if len(report.Results) == MaxResults || room <= 0 {
			continue
		}
		built := buildResult(b, result)
		if room -= sizeOf(&built); room > 0 {
			report.Results = append(report.Results, built)
		}
	}
	report.Source = Source
	report.OwnerReferences = selectOwners(named, owners)
	return report, ok
}

// sizeOf returns the bytes that a result takes as JSON.
func sizeOf(result *openreports.ReportResult) int {
	raw, err := json.Marshal(result)
	if err != nil {
		return maxBytes // it could not be written
	}
	return len(raw)
}

// findResult returns the result of a state; judged is false for objects that no guard
// selects any more. An unknown state is an error, so that no reader takes it for a pass.
func findResult(state v1alpha1.DriftState) (result openreports.Result, judged bool) {
	switch state {
	case v1alpha1.StateInSync:
		return Pass, true
	case v1alpha1.StateDrifted, v1alpha1.StateMissing:
		return Fail, true
	case v1alpha1.StateRetired, v1alpha1.StateNotGuarded:
		return "", false
	case v1alpha1.StateUnknown:
		return Error, true
	}
	return Error, true
}

func countResult(s *openreports.ReportSummary, result openreports.Result) {
	switch result {
	case Pass:
		s.Pass++
	case Fail:
		s.Fail++
	default:
		s.Error++
	}
}

// compareWorstFirst sorts failures by their score, then errors, then passes, and equal ones
// by name, so that equal Baselines make equal reports.
func compareWorstFirst(a, b *v1alpha1.Baseline) int {
	return cmp.Or(cmp.Compare(rankResult(a), rankResult(b)), cmp.Compare(scoreOf(b), scoreOf(a)), cmp.Compare(a.Name, b.Name))
}

func rankResult(b *v1alpha1.Baseline) int {
	result, _ := findResult(b.Status.State)
	return slices.Index([]openreports.Result{Fail, Error, Pass, ""}, result)
}

func scoreOf(b *v1alpha1.Baseline) int32 {
	if b.Status.Severity == nil {
		return 0
	}
	return b.Status.Severity.Score
}

func buildResult(b *v1alpha1.Baseline, result openreports.Result) openreports.ReportResult {
	target := &b.Spec.Target
	out := openreports.ReportResult{
		Source: Source, Result: result, Scored: true,
		Policy: printable.Line(policyOf(b), maxText), Rule: ruleOf(b), Category: "Drift",
		Severity: severityOf(b), Timestamp: timeOf(b), Description: printable.Line(Describe(b), maxText),
		Subjects: []corev1.ObjectReference{{
			APIVersion: target.APIVersion, Kind: target.Kind, Namespace: b.Namespace, Name: target.Name,
		}},
		Properties: map[string]string{"baseline": b.Name, "state": string(b.Status.State)},
	}
	if len(b.Status.Guards) > 1 {
		out.Properties["guards"] = printable.Line(strings.Join(b.Status.Guards, ","), maxText)
	}
	if len(b.Status.Findings) > 0 {
		first := &b.Status.Findings[0]
		out.Properties["actor"] = printable.Line(cmp.Or(first.Actor.User, "unknown"), maxText)
		out.Properties["actorClass"] = string(first.Actor.Class)
		out.Properties["proof"] = string(first.Actor.Source)
	}
	if b.Status.PlanName != "" {
		out.Properties["plan"] = b.Status.PlanName
	}
	return out
}

// policyOf names the first guard of the object: both APIs have room for one policy.
func policyOf(b *v1alpha1.Baseline) string {
	if len(b.Status.Guards) == 0 {
		return "none"
	}
	return b.Status.Guards[0]
}

// ruleOf names the type of the worst finding.
func ruleOf(b *v1alpha1.Baseline) string {
	if len(b.Status.Findings) == 0 {
		return string(b.Status.State)
	}
	return string(b.Status.Findings[0].Type)
}

// severityOf returns the level of the drift in the words of the APIs, which are those of
// Plumbline in lower case; empty without a drift.
func severityOf(b *v1alpha1.Baseline) openreports.ResultSeverity {
	if b.Status.Severity == nil {
		return ""
	}
	return openreports.ResultSeverity(strings.ToLower(string(b.Status.Severity.Level)))
}

// timeOf returns when the state began, as far as the Baseline tells.
func timeOf(b *v1alpha1.Baseline) metav1.Timestamp {
	since := b.CreationTimestamp
	switch {
	case b.Status.FirstSeenTime != nil:
		since = *b.Status.FirstSeenTime
	case b.Spec.Authorized != nil:
		since = b.Spec.Authorized.AuthorizationTime
	}
	if since.IsZero() {
		return metav1.Timestamp{}
	}
	return metav1.Timestamp{Seconds: since.Unix()}
}

// Describe tells the worst finding of a Baseline without its values, or its state.
func Describe(b *v1alpha1.Baseline) string {
	if len(b.Status.Findings) == 0 {
		return describeState(b.Status.State)
	}
	first := &b.Status.Findings[0]
	words := fmt.Sprintf("%s %s by %s (%s, %s)", first.Operation, cmp.Or(first.Path, "the object"), cmp.Or(first.Actor.User, "an unknown writer"), first.Actor.Class, first.Actor.Source)
	if more := int(max(b.Status.FindingsTotal, int32(len(b.Status.Findings)))) - 1; more > 0 {
		words += "; " + plural.Of(more, "further finding")
	}
	if b.Status.State == v1alpha1.StateUnknown {
		words += "; the object could not be read since"
	}
	return words
}

func describeState(state v1alpha1.DriftState) string {
	switch state {
	case v1alpha1.StateInSync:
		return "The object has the authorized content."
	case v1alpha1.StateMissing:
		return "The object is gone, and no trusted writer removed it."
	case v1alpha1.StateDrifted:
		return "The object differs from the authorized content."
	case v1alpha1.StateUnknown, v1alpha1.StateRetired, v1alpha1.StateNotGuarded:
	}
	return "The state of the object is unknown."
}

// selectOwners selects the guards that exist of those that are named, sorted, at most
// [maxOwners]. The garbage collector removes a report when its last owner is gone.
func selectOwners(named map[string]bool, owners map[string]metav1.OwnerReference) []metav1.OwnerReference {
	var selected []metav1.OwnerReference
	for _, guard := range slices.Sorted(maps.Keys(named)) {
		if owner, exists := owners[guard]; exists && len(selected) < maxOwners {
			selected = append(selected, owner)
		}
	}
	return selected
}
