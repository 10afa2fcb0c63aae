// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// DescribePacket lists the facts of the evidence of a plan, without drift, results and contents.
func DescribePacket(p *packet.Packet, wide bool, now time.Time) []Field {
	m := &p.Metrics
	fields := []Field{
		{Label: "Packet", Value: p.ID},
		{Label: "Plan", Value: p.Plan.Namespace + "/" + p.Plan.Name},
		{Label: "Status", Value: p.Status},
		{Label: "Policy", Value: fmt.Sprintf("%s (generation %d, %s)", p.Policy.Name, p.Policy.Generation, FormatHash(p.Policy.Digest, wide))},
		{Label: "Drift report", Value: p.DriftReportID},
		{Label: "Correlation", Value: p.CorrelationID},
		{Label: "Initiated by", Value: describeRequester(p.InitiatedBy, p.Requester)},
		{Label: "Approved by", Value: strings.Join(p.Approvers, ", ")},
		{Label: "Initiated", Value: FormatTime(new(metav1.NewTime(p.InitiatedAt)), now)},
	}
	if completed := FormatTime(new(metav1.NewTime(p.CompletedAt)), now); completed != "" {
		fields = append(fields, Field{Label: "Completed", Value: completed + FormatTook(p.Duration)})
	}
	return append(fields,
		Field{Label: "Targets", Value: fmt.Sprintf("%d: %d succeeded, %d failed, %d skipped", m.TotalTargets, m.Succeeded, m.Failed, m.Skipped)},
		Field{Label: "Targets took", Value: FormatDurations(m.Durations)})
}

// DescribeDetectedDrift names the drift of one object of a plan, and lists the details.
func DescribeDetectedDrift(drift *packet.Drift, wide bool, now time.Time) (words string, details []string) {
	words = fmt.Sprintf("%d  %s  %s", drift.Step, drift.Object, drift.Action)
	if s := drift.Severity; s != nil {
		words += fmt.Sprintf("  %s (%d)", s.Level, s.Score)
	}
	if !drift.FirstSeen.IsZero() {
		details = append(details, fmt.Sprintf("%s, since %s, by %s", drift.DriftType, FormatAge(metav1.NewTime(drift.FirstSeen), now), ListActors(drift.Actors)))
	}
	for _, path := range drift.Paths {
		details = append(details, NamePath(path))
	}
	if drift.DesiredHash != "" {
		details = append(details, FormatHash(drift.DriftedHash, wide)+" → "+FormatHash(drift.DesiredHash, wide))
	}
	return words, details
}

// DescribeResult says how a step ended, and lists the details.
func DescribeResult(r *packet.Result, wide bool) (words string, details []string) {
	ended := r.Status
	if r.Reason != "" {
		ended += " (" + r.Reason + ")"
	}
	words = fmt.Sprintf("%d  %s  %s: %s%s", r.Step, r.Object, r.Action, ended, FormatTook(r.Duration))
	if r.PreviousDigest != "" {
		details = append(details, fmt.Sprintf("%s → %s, record #%d", FormatHash(r.PreviousDigest, wide), FormatHash(r.CurrentDigest, wide), r.Record))
	}
	if e := r.Effect; e != nil {
		details = append(details, fmt.Sprintf("effect %s, record #%d", describeEffect(&e.Assessment), e.Record))
	}
	return words, details
}

// DescribeContents lists the contents that the records of a plan name, each with its digest and its size, or
// the reason why it is not believed.
func DescribeContents(p *packet.Packet, wide bool) []string {
	lines := []string{describeContent("Policy", p.Policy.Digest, p.Policy.Content, wide), describeContent("Plan", p.Plan.Digest, p.Plan.Content, wide)}
	for _, artifact := range p.GeneratedArtifacts {
		lines = append(lines, describeContent(string(artifact.Of)+nameSteps(artifact.Steps), artifact.Digest, artifact.Content, wide))
	}
	return lines
}

func describeContent(what, digest string, c packet.Content, wide bool) string {
	if c.Problem != "" {
		return fmt.Sprintf("%s  %s  %s", what, FormatHash(digest, wide), c.Problem)
	}
	return fmt.Sprintf("%s  %s  %s", what, FormatHash(digest, wide), plural.Of(len(c.Body), "byte"))
}

func nameSteps(steps []int32) string {
	words := make([]string, len(steps))
	for i, step := range steps {
		words[i] = fmt.Sprint(step)
	}
	if len(steps) == 1 {
		return " of step " + words[0]
	}
	return " of steps " + strings.Join(words, ", ")
}
