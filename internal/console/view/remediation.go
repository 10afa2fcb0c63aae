// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/preview"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// Remediation has the values of the page that asks again before a remediation.
type Remediation struct {
	Baseline *v1alpha1.Baseline
	// PolicyName is that of the policy, and Policy is nil if the caller may not read it.
	PolicyName string
	Policy     *v1alpha1.RemediationPolicy
	// Revision is the number of the authorized state that a rollback leads to; 0 for the last one that was ready.
	Revision int64
	// Report is the preview; nil if there is none, and Unread says why.
	Report *preview.Report
	Unread string
	Now    time.Time
}

// RefuseRevision says why the policy cannot lead to the revision; empty if it can, or if that is not known.
func (in *Remediation) RefuseRevision() string {
	if in.Revision == 0 || in.Policy == nil || in.Policy.Spec.Action == v1alpha1.ActionRollback {
		return ""
	}
	return notNow(fmt.Sprintf("a revision is for a policy that rolls back, and the action of policy %s is %s", in.PolicyName, in.Policy.Spec.Action))
}

// RemediationOf shows the preview of a remediation, and the form that asks for it.
func RemediationOf(in *Remediation) Page {
	b := in.Baseline
	page := Page{Title: "Remediate " + wording.QualifiedName(b), Entry: DriftPath, Time: in.Now, Still: true}
	page.Sections = []Section{{Title: "Object", Facts: []wording.Field{
		{Label: "Object", Value: wording.QualifiedName(b)}, {Label: "State", Value: wording.DescribeState(b)}, {Label: "Policy", Value: in.PolicyName},
	}}}
	if in.Unread != "" {
		page.Unread = append(page.Unread, "No preview is shown: "+in.Unread)
	}
	if in.Report != nil {
		page.Sections = append(page.Sections, previewOf(in.Report, in.Now), leftOutOfPreview(in.Report, in.Now))
	}
	f := Form{
		ID: "remediate", Action: pathOf(ObjectPath, b.Namespace, b.Name, "remediate"), Button: "Remediate the object now",
		Lines:  []string{fmt.Sprintf("The request has your name, and policy %s makes the plan within its limits.", in.PolicyName)},
		Inputs: []Input{hidden("policy", in.PolicyName), reasonInput()}, Wants: []Want{{"create", "remediationrequests", b.Namespace, ""}},
	}
	if in.Revision > 0 {
		page.Sections[0].Facts = append(page.Sections[0].Facts, wording.Field{Label: "Revision", Value: fmt.Sprint(in.Revision)})
		f.Lines = append(f.Lines, fmt.Sprintf("The object is rolled back to revision %d.", in.Revision))
		f.Inputs = append(f.Inputs, hidden("revisionNumber", fmt.Sprint(in.Revision)))
	}
	if why := actions.RefuseRemediation(b); why != "" {
		f.Barred = notNow(why.Words())
	} else if in.Policy != nil {
		f.Barred = cmp.Or(planner.Refusal(in.PolicyName, in.Policy), in.RefuseRevision())
	}
	page.Sections = append(page.Sections, actionsOf(f))
	return page
}

// previewOf has the steps of the plans that would be made, each with the result of its dry run.
func previewOf(r *preview.Report, now time.Time) Section {
	t := &Table{Caption: "Writes of the plan, each tried as a dry run", Columns: []string{"Object", "Action", "Result", "Changes", "Severity", "Users"}, Empty: "There is no write to make."}
	for i := range r.Plans {
		for n := range r.Plans[i].Steps {
			s := &r.Plans[i].Steps[n]
			t.Rows = append(t.Rows, []Cell{
				text(r.Plans[i].Namespace + "/" + s.Object), text(string(s.Action)), dryRunCell(s), {Lines: changesOf(s.Changes)},
				text(fmt.Sprintf("%s (%d), since %s", s.Severity, s.Score, wording.FormatAge(metav1.NewTime(s.FirstSeen), now))), text(wording.ListActors(s.Actors)),
			})
		}
	}
	s := Section{Title: "Preview", Lines: []string{wording.DescribePreview(r)}, Table: t.cut()}
	for _, problem := range r.Problems {
		s.Lines = append(s.Lines, "The policy makes no plans: "+problem)
	}
	if r.Waiting != "" {
		s.Lines = append(s.Lines, "Waiting for: "+r.Waiting)
	}
	if len(r.Notify) > 0 {
		s.Lines = append(s.Lines, "Notifies people about, and does not write: "+strings.Join(r.Notify, ", "))
	}
	return s
}

func dryRunCell(s *preview.Step) Cell {
	state := map[string]string{"✓": "gate-open", "✗": "gate-closed", "?": "gate-unknown"}[wording.MarkDryRun(s.Outcome)]
	return Cell{Text: wording.AppendReason(wording.DescribeDryRun(s.Outcome), s.Message), Mark: wording.MarkDryRun(s.Outcome), State: state}
}

func changesOf(changes []actions.Change) []string {
	lines := make([]string, 0, len(changes))
	for i := range changes {
		c := &changes[i]
		path := wording.NamePath(c.Path)
		switch {
		case c.Before == "":
			lines = append(lines, fmt.Sprintf("%s: + %s", path, c.After))
		case c.After == "":
			lines = append(lines, fmt.Sprintf("%s: - %s", path, c.Before))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s → %s", path, c.Before, c.After))
		}
	}
	return lines
}

func leftOutOfPreview(r *preview.Report, now time.Time) Section {
	t := &Table{Caption: "Drift without a plan", Columns: []string{"Object", "Reason", "Until"}, Empty: "No drift is left out."}
	for i := range r.LeftOut {
		l := &r.LeftOut[i]
		until := ""
		if l.Until != nil {
			until = wording.FormatUntil(metav1.NewTime(*l.Until), now)
		}
		t.Rows = append(t.Rows, texts(l.Namespace+"/"+l.Object, wording.AppendReason(l.Reason, l.Message), until))
	}
	return Section{Title: "Left out", Lines: []string{plural.Of(len(r.LeftOut), "drift") + " without a plan"}, Table: t.cut()}
}
