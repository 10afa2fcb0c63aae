// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// NameRecord names the event of a signed record: Step 0 Reconcile: Verified.
func NameRecord(r *evidence.Record) string {
	words := string(r.Kind)
	if r.Step != nil {
		words += fmt.Sprintf(" %d %s", r.Step.Index, r.Step.Action)
	}
	ended := r.Result.State
	if r.Result.Reason != "" {
		ended = strings.TrimSpace(ended + " (" + r.Result.Reason + ")")
	}
	return AppendReason(words, ended)
}

// DescribeRecord lists the facts of a signed record. withdrawnBy is the sequence of the record that withdraws
// it, or 0.
func DescribeRecord(s *evidence.Sealed, withdrawnBy int64, wide bool) []Field {
	r := &s.Record
	fields := append([]Field{{Label: "Object", Value: r.Subject.String()}}, describeDelivery(r.Delivery, wide)...)
	if r.Withdraws != nil {
		fields = append(fields, Field{Label: "Withdraws", Value: fmt.Sprintf("#%d, which was decided and never stored", r.Withdraws.Sequence)})
	}
	if r.Drift != nil {
		fields = append(fields, Field{Label: "Drift", Value: fmt.Sprintf("%s: %s", plural.Of(r.Drift.Total, "path"), strings.Join(r.Drift.Paths, ", "))})
	}
	if r.Severity != nil {
		fields = append(fields, Field{Label: "Severity", Value: fmt.Sprintf("%s (%d)", r.Severity.Level, r.Severity.Score)})
	}
	if i := r.Intent; i != nil {
		fields = append(fields, Field{Label: "Intent", Value: fmt.Sprintf("version %s, %s → %s", i.ResourceVersion, FormatHash(i.PreHash, wide), FormatHash(i.DesiredHash, wide))})
	}
	if r.Result.ResourceVersion != "" {
		fields = append(fields, Field{Label: "Wrote", Value: fmt.Sprintf("version %s, %s (%s)", r.Result.ResourceVersion, FormatHash(r.Result.Hash, wide), r.Result.Origin)})
	}
	fields = append(fields, describeAssessed(r.Assessment, wide)...)
	if r.Policy != nil {
		fields = append(fields, Field{Label: "Policy", Value: fmt.Sprintf("%s (%s)", r.Policy.Name, FormatHash(r.Policy.Digest, wide))})
	}
	fields = append(fields,
		Field{Label: "Initiated by", Value: describeRequester(r.InitiatedBy, r.Requester) + prefixed(", approved by ", r.Approver)},
		Field{Label: "Record", Value: fmt.Sprintf("%s, signed by key %s", FormatHash(s.Digest, wide), FormatKey(s.KeyID, wide))})
	if withdrawnBy > 0 {
		fields = append(fields, Field{Label: "Withdrawn", Value: fmt.Sprintf("by #%d: this was decided and never stored", withdrawnBy)})
	}
	return fields
}

// prefixed puts words before a text, and leaves an empty text empty.
func prefixed(words, text string) string {
	if text == "" {
		return ""
	}
	return words + text
}

func describeRequester(initiatedBy, requester string) string {
	return initiatedBy + prefixed(", acting with the permissions of ", requester)
}

// describeDelivery lists the fields that only a record of a release has.
func describeDelivery(d *evidence.Delivery, wide bool) (fields []Field) {
	if d == nil || d.Release == nil {
		return nil
	}
	if run := d.RunNumber(); run > 0 {
		fields = append(fields, Field{Label: "Run", Value: strconv.FormatInt(run, 10)})
	}
	switch {
	case d.Decision != nil:
		fields = append(fields, Field{Label: "Decision", Value: describeDecision(d.Decision)})
	case d.Work != nil:
		fields = append(fields, Field{Label: "Work", Value: describeWork(d.Work)})
		if i := d.Work.Intent; i != nil {
			fields = append(fields, Field{Label: "Intent", Value: describeWorkIntent(i, wide)})
		}
	case d.Range != nil:
		fields = append(fields, Field{Label: "History", Value: fmt.Sprintf("lines %d to %d", d.Range.First, d.Range.Last)})
	}
	return fields
}

// describeDecision formats a line of the history: canary.stage_started, 10 % → 25 %, sequence 1042.
func describeDecision(e *evidence.Decision) string {
	words := e.Event
	switch {
	case e.From != "" && e.To != "":
		words += fmt.Sprintf(", %s %% → %s %%", e.From, e.To)
	case e.To != "":
		words += fmt.Sprintf(", %s %%", e.To)
	}
	if e.Sequence > 0 {
		words += fmt.Sprintf(", sequence %d", e.Sequence)
	}
	return words
}

// describeWork formats a work: web-1-2, Scale of canary to 3 replicas.
func describeWork(w *evidence.Work) string {
	words := fmt.Sprintf("%s, %s of %s", w.Name, w.Verb, w.Variation)
	if w.Replicas != nil {
		words += fmt.Sprintf(" to %d replicas", *w.Replicas)
	}
	return words
}

func describeWorkIntent(i *evidence.WorkIntent, wide bool) string {
	words := "creation"
	if i.ResourceVersion != "" {
		words = "version " + i.ResourceVersion
	}
	if i.TemplateHash != "" {
		words += ", pod template " + FormatHash(i.TemplateHash, wide)
	}
	return words
}

// describeAssessed lists the facts of the record of an assessment, and no facts of other records.
func describeAssessed(x *evidence.Assessment, wide bool) []Field {
	if x == nil {
		return nil
	}
	return []Field{
		{Label: "Effect", Value: fmt.Sprintf("%s, by assessment %s", describeEffect(x), x.Name)},
		{Label: "Hashes", Value: fmt.Sprintf("%s → %s at the write, %s at the end", nameHash(x.PreHash, wide), nameHash(x.PostHash, wide), nameHash(x.CurrentHash, wide))},
	}
}

// describeEffect words the verdict of an assessment: Effective, 9,580 of 10,000 (full).
func describeEffect(x *evidence.Assessment) string {
	words := x.Verdict
	if x.Score != nil {
		words += fmt.Sprintf(", %s of %s", actions.FormatScore(*x.Score), actions.FormatScore(effect.Best))
	}
	if x.Reason != "" {
		words += " (" + x.Reason + ")"
	}
	return words
}

// nameHash is a hash, or says that it is not known.
func nameHash(hash string, wide bool) string {
	if hash == "" {
		return "unknown"
	}
	return FormatHash(hash, wide)
}

// FormatKey gives the id of a key, the first digits alone unless wide.
func FormatKey(id string, wide bool) string {
	if wide || len(id) <= actions.HashDigits {
		return id
	}
	return id[:actions.HashDigits]
}
