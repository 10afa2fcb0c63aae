// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// objectForms ask for the verbs of an object.
func objectForms(in *Object) Section {
	s := actionsOf(acceptForm(in), checkForm(in.Baseline), remediateForm(in))
	if q := in.Baseline.Status.Quarantine; q != nil {
		s.Forms = append(s.Forms, liftForm(in.Baseline, q))
	}
	s.Lines = askedOf(in.Baseline)
	return s
}

// askedOf names the requests about an object that stand, and the last one that the assessor refused.
func askedOf(b *v1alpha1.Baseline) []string {
	var lines []string
	if a := b.Spec.Accept; a != nil {
		lines = append(lines, wording.AppendReason(fmt.Sprintf("Asked: to accept %s, by %s", actions.ShortenHash(a.Hash), wording.NameActor(a.RequestedBy)), a.Reason))
	}
	if l := b.Spec.Lift; l != nil {
		lines = append(lines, wording.AppendReason("Asked: to end the quarantine, by "+wording.NameActor(l.RequestedBy), l.Reason))
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed); c != nil && meta.IsStatusConditionFalse(b.Status.Conditions, c.Type) {
		lines = append(lines, "The last request to accept was refused: "+c.Message)
	}
	if asked := b.Annotations[v1alpha1.AnnotationCheckRequested]; asked != "" && asked != b.Status.CheckRequested {
		lines = append(lines, "A check is asked for, and not made yet.")
	}
	return lines
}

// acceptForm names the state that the page shows: another one is refused.
func acceptForm(in *Object) Form {
	b := in.Baseline
	f := Form{
		ID: "accept", Action: pathOf(ObjectPath, b.Namespace, b.Name, "accept"), Button: "Accept the observed state",
		Lines:  []string{"The observed state " + actions.ShortenHash(b.Status.Observed.Hash) + " becomes the authorized state. If the object has changed since, it is not accepted."},
		Inputs: []Input{hidden("hash", b.Status.Observed.Hash), reasonInput()}, Wants: []Want{{"patch", "baselines", b.Namespace, b.Name}},
	}
	if _, refused := actions.PlanAccept([]v1alpha1.Baseline{*b}, true, actions.AcceptFilter{}, in.Now); len(refused) > 0 {
		f.Barred = notNow(refused[0].Reason.Words())
	}
	return f
}

func checkForm(b *v1alpha1.Baseline) Form {
	f := Form{
		ID: "check", Action: pathOf(ObjectPath, b.Namespace, b.Name, "check"), Button: "Check the object now",
		Lines: []string{"The assessor compares the live object with its authorized state."}, Wants: []Want{{"patch", "baselines", b.Namespace, b.Name}},
	}
	if !actions.IsCheckable(b) {
		f.Barred = notNow("there is no object to check: it is retired, or no guard selects it any more")
	}
	return f
}

// liftForm names the quarantine that the page shows: a later one stays.
func liftForm(b *v1alpha1.Baseline, q *v1alpha1.Quarantine) Form {
	f := Form{
		ID: "lift", Action: pathOf(ObjectPath, b.Namespace, b.Name, "lift"), Button: wording.Lift.Short, Lines: wording.Lift.Paragraphs(),
		Inputs: []Input{hidden("token", q.Token), reasonInput()}, Wants: []Want{{"patch", "baselines", b.Namespace, b.Name}},
	}
	if q.Token == "" {
		f.Barred = notNow("the quarantine has no token yet, by which a request would name it")
	}
	return f
}

// remediateForm leads to the preview of a policy that selects the object.
func remediateForm(in *Object) Form {
	b := in.Baseline
	f := Form{
		ID: "remediate", Leads: true, Action: pathOf(ObjectPath, b.Namespace, b.Name, "remediate"), Button: "Preview a remediation",
		Lines: []string{"The preview shows the plan of a policy, and tries its write. It stores no object."}, Wants: []Want{{"create", "remediationrequests", b.Namespace, ""}},
	}
	policies := Input{Name: "policy", Label: "Policy", Kind: ListInput}
	for i := range in.Outlook.Explanations {
		name := in.Outlook.Explanations[i].Policy
		if !slices.ContainsFunc(policies.Choices, func(c Choice) bool { return c.Value == name }) {
			policies.Choices = append(policies.Choices, Choice{Value: name, Label: name})
		}
	}
	why := actions.RefuseRemediation(b)
	switch {
	case why != "":
		f.Barred = notNow(why.Words())
	case len(policies.Choices) > 0:
		f.Inputs = []Input{policies}
	case in.Outlook.Unread != "": // a remediator may name a policy without the right to read it
		f.Inputs = []Input{{Name: "policy", Label: "Policy", MaxLength: maxName}}
	default:
		f.Barred = notNow("no policy selects the object")
	}
	if f.Barred == "" && len(in.Revisions) > 0 {
		f.Inputs = append(f.Inputs, in.revisionsInput())
	}
	return f
}

// revisionsInput has the authorized states that are kept, the newest first.
func (in *Object) revisionsInput() Input {
	revisions := Input{Name: "revisionNumber", Label: "Revision, for a policy that rolls back", Kind: ListInput, Choices: []Choice{{Label: "the last one that was ready"}}}
	for i := range in.Revisions {
		s := &in.Revisions[i].Spec
		revisions.Choices = append(revisions.Choices, Choice{
			Value: fmt.Sprint(s.Number), Label: fmt.Sprintf("%d, %s, by %s", s.Number, wording.FormatTime(&s.AuthorizationTime, in.Now), wording.NameAuthor(s.By, s.Release)),
		})
	}
	return revisions
}

// maxName is how many characters the name of an object has.
const maxName = 253
