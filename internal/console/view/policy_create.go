// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"time"
)

// newPolicyForm leads to the page that creates a policy.
func newPolicyForm() Form {
	return Form{
		ID: "create", Leads: true, Action: NewPolicyPath, Button: "New policy", Wants: wantsNewPolicy(),
		Lines: []string{"The next page has the values of an example. A new policy observes alone."},
	}
}

func wantsNewPolicy() []Want { return []Want{{"create", "remediationpolicies", "", ""}} }

// PolicyCreation has the values of the page that creates a policy.
type PolicyCreation struct {
	// Example has the values of a policy by field.
	Example map[string][]string
	// Environments are the names of those that the caller may read.
	Environments []string
	Unread       Unread
	Now          time.Time
}

// PolicyCreationOf shows the values of an example as inputs of a new policy.
func PolicyCreationOf(in *PolicyCreation) Page {
	f := Form{
		ID: "create", Action: NewPolicyPath + "/create", Button: "Create the policy", Wants: wantsNewPolicy(),
		Lines: []string{
			"The policy observes alone: its page shows its decisions, and has the form that activates it.",
			"An empty value stands for the default. Your name is written into the policy.",
		},
		Inputs: []Input{{Name: "name", Label: "Name", MaxLength: maxName}, in.environmentInput()},
	}
	for i := range PolicyFields {
		field := &PolicyFields[i]
		f.Inputs = append(f.Inputs, field.input(in.Example[field.Name]))
	}
	return Page{Title: "New policy", Entry: PoliciesPath, Time: in.Now, Still: true, Unread: in.Unread.sentences(), Sections: []Section{actionsOf(f)}}
}

// environmentInput has the Environments that are known, or takes a name.
func (in *PolicyCreation) environmentInput() Input {
	environment := Input{Name: "environmentName", Label: "Environment", MaxLength: maxName}
	if len(in.Environments) == 0 {
		return environment
	}
	environment.Kind = ListInput
	for _, name := range slices.Sorted(slices.Values(in.Environments)) {
		environment.Choices = append(environment.Choices, Choice{Value: name, Label: name})
	}
	return environment
}
