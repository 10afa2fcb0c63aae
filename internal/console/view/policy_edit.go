// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// PolicyField is a field of a policy that a form edits, by its name in the REST API.
type PolicyField struct {
	Name, Label string
	// Words are those of an enum; none for other fields.
	Words []string
	// IsNumber and IsSeveral say how the API has the value.
	IsNumber, IsSeveral bool
}

// PolicyFields are the fields that the form edits. All others stay as they are.
var PolicyFields = []PolicyField{
	{Name: "trigger", Label: "Trigger", Words: wire.Words[v1alpha1.RemediationTrigger]()},
	{Name: "action", Label: "Action", Words: wire.Words[v1alpha1.RemediationAction]()},
	{Name: "strategy", Label: "Strategy", Words: wire.Words[v1alpha1.RemediationStrategy]()},
	{Name: "minimumSeverity", Label: "Least severity", Words: wire.Words[v1alpha1.SeverityLevel]()},
	{Name: "minimumDriftAge", Label: "Least age of a drift (hh:mm:ss)"},
	{Name: "maximumDriftAge", Label: "Greatest age of a drift (hh:mm:ss)"},
	{Name: "maxConcurrentRemediations", Label: "Remediations at once", IsNumber: true},
	{Name: "maxRemediationsPerHour", Label: "Remediations in an hour", IsNumber: true},
	{Name: "maxRemediationsPerDay", Label: "Remediations in a day", IsNumber: true},
	{Name: "cooldownPeriod", Label: "Cooldown (hh:mm:ss)"},
	{Name: "maxTargets", Label: "Targets of a plan", IsNumber: true},
	{Name: "maxTargetPercent", Label: "Targets of a plan, in percent", IsNumber: true},
	{Name: "minHealthyPercent", Label: "Least healthy targets, in percent", IsNumber: true},
	{Name: "allowedDays", Label: "Allowed days", Words: wire.Words[v1alpha1.Weekday](), IsSeveral: true},
	{Name: "allowedStartTime", Label: "Allowed from (hh:mm)"},
	{Name: "allowedEndTime", Label: "Allowed until (hh:mm)"},
	{Name: "urgent", Label: "Urgent drift outside of the times", Words: wire.Words[v1alpha1.Permission]()},
}

// maxFieldLength is how many characters a value of the form has.
const maxFieldLength = 64

// editForm leads to the page that edits the policy.
func editForm(p *v1alpha1.RemediationPolicy) Form {
	return Form{
		ID: "edit", Leads: true, Action: pathOf(PoliciesPath, p.Name, "edit"), Button: "Edit the policy",
		Lines: []string{"The next page has the values. You see the changes before the policy is saved."}, Wants: []Want{{"update", "remediationpolicies", "", p.Name}},
	}
}

// PolicyEdit has the values of the page that edits a policy.
type PolicyEdit struct {
	Policy *v1alpha1.RemediationPolicy
	// Version is the ETag of the policy as the page shows it.
	Version string
	// Before has the values of the policy by field, and After those of the form. Shown is Before as a text, by
	// which the next request tells the values that the caller has changed.
	Before, After map[string][]string
	Shown         string
	// Tried says that the API server takes the values.
	Tried bool
	Now   time.Time
}

// PolicyEditOf shows the values of a policy as inputs, or once the API server takes them as changes that the caller
// saves.
func PolicyEditOf(in *PolicyEdit) Page {
	page := Page{Title: "Edit policy " + in.Policy.Name, Entry: PoliciesPath, Time: in.Now, Still: true}
	f := Form{
		ID: "edit", Action: pathOf(PoliciesPath, in.Policy.Name, "edit"), Button: "Show the changes", Inputs: []Input{hidden("version", in.Version), hidden("shown", in.Shown)},
		Wants: []Want{{"update", "remediationpolicies", "", in.Policy.Name}},
		Lines: []string{"An empty value stands for the default. Your name is written into the policy, and an active policy acts with your permissions."},
	}
	if in.Tried {
		page.Sections = []Section{{Title: "Changes", Lines: []string{"The API server takes these values. No object is stored yet."}, Table: in.changes()}}
		f.Button, f.Inputs = "Save the policy", append(f.Inputs, hidden("confirmed", "yes"))
	}
	for i := range PolicyFields {
		field := &PolicyFields[i]
		if !in.Tried {
			f.Inputs = append(f.Inputs, field.input(in.After[field.Name]))
			continue
		}
		values := in.After[field.Name]
		if len(values) == 0 && !field.IsSeveral {
			values = []string{""}
		}
		for _, value := range values {
			f.Inputs = append(f.Inputs, hidden(field.Name, value))
		}
	}
	page.Sections = append(page.Sections, actionsOf(f))
	return page
}

// input is the input of a field with values.
func (f *PolicyField) input(values []string) Input {
	in := Input{Name: f.Name, Label: f.Label, MaxLength: maxFieldLength, Value: strings.Join(values, " ")}
	if len(f.Words) == 0 {
		return in
	}
	in.Kind, in.Value = ListInput, ""
	if f.IsSeveral {
		in.Kind = BoxesInput
	} else {
		in.Choices = []Choice{{Label: "default", Chosen: len(values) == 0}}
	}
	for _, word := range f.Words {
		in.Choices = append(in.Choices, Choice{Value: word, Label: word, Chosen: slices.Contains(values, word)})
	}
	return in
}

// changes has the fields that differ.
func (in *PolicyEdit) changes() *Table {
	t := &Table{Caption: "Changes of the policy", Columns: []string{"Field", "Before", "After"}, Empty: "No value has changed."}
	words := func(values []string) string {
		if text := strings.Join(values, ", "); text != "" {
			return text
		}
		return "default"
	}
	for i := range PolicyFields {
		field := &PolicyFields[i]
		if before, after := words(in.Before[field.Name]), words(in.After[field.Name]); before != after {
			t.Rows = append(t.Rows, texts(field.Label, before, after))
		}
	}
	return t
}
