// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

func wantsPolicy(p *v1alpha1.RemediationPolicy) []Want {
	return []Want{{"patch", "remediationpolicies", "", p.Name}}
}

// activateForm leads to the page that shows the effect of the policy.
func activateForm(p *v1alpha1.RemediationPolicy) Form {
	f := Form{
		ID: "activate", Leads: true, Action: pathOf(PoliciesPath, p.Name, "activate"), Button: "Activate the policy",
		Lines: []string{"The next page shows the effect of the policy, and asks again."}, Wants: wantsPolicy(p),
	}
	if p.Spec.Mode == v1alpha1.PolicyModeActive {
		f.Button = "Activate the policy with your rights"
	}
	return f
}

func deactivateForm(p *v1alpha1.RemediationPolicy) Form {
	f := Form{
		ID: "deactivate", Action: pathOf(PoliciesPath, p.Name, "deactivate"), Button: "Deactivate the policy", Inputs: []Input{reasonInput()}, Wants: wantsPolicy(p),
		Lines: []string{"The policy still reports its decisions, and makes no plans. Plans under way go on."},
	}
	if actions.ModeOf(p) == v1alpha1.PolicyModeObserveOnly {
		f.Barred = notNow("the policy is deactivated already")
	}
	return f
}

// haltPolicyForm stops a policy at once. The page of a ledger has the form that stops all policies of an Environment.
func haltPolicyForm(p *v1alpha1.RemediationPolicy) Form {
	f := Form{
		ID: "halt", Action: pathOf(PoliciesPath, p.Name, "halt"), Button: "Halt the policy", Inputs: []Input{reasonInput()}, Wants: wantsPolicy(p),
		Lines: []string{"The policy makes no plans, and its plans that have not ended are canceled."},
	}
	if actions.ModeOf(p) == v1alpha1.PolicyModeHalted {
		f.Barred = notNow("the policy is halted already")
	}
	return f
}

// Activation has the values of the page that asks again before an activation.
type Activation struct {
	Policy *v1alpha1.RemediationPolicy
	// Version is the ETag of the policy as the page shows it.
	Version  string
	User     authenticationv1.UserInfo
	Problems []string
	Outlook  Outlook
	Now      time.Time
}

// ActivationOf shows the effect of a policy with the rights of the caller, its gates, and the form that activates
// the policy.
func ActivationOf(in *Activation) Page {
	p := in.Policy
	page := Page{Title: "Activate policy " + p.Name, Entry: PoliciesPath, Time: in.Now, Still: true}
	if in.Outlook.Unread != "" {
		page.Unread = append(page.Unread, "The gates are not known: "+in.Outlook.Unread)
	}
	as, err := actions.SelectPrincipal(p, v1alpha1.PolicyModeActive, in.User, nil, false)
	if err != nil { // too many groups: the user has to choose
		as = planner.Principal{User: in.User.Username}
	}
	page.Sections = []Section{
		{Title: "Effect", Facts: wording.DescribeActivation(p, as), Lines: in.Problems}, gatesOf(&in.Outlook), actionsOf(activateNowForm(in)),
	}
	for i := range min(len(in.Outlook.Explanations), maxExplained) {
		page.Sections = append(page.Sections, explanationOf(&in.Outlook.Explanations[i], in.Now))
	}
	return page
}

// activateNowForm activates the policy that the page shows with the rights of the caller.
func activateNowForm(in *Activation) Form {
	p, groups := in.Policy, in.User.Groups
	f := Form{
		ID: "activate", Action: pathOf(PoliciesPath, p.Name, "activate"), Button: "Activate the policy now", Wants: wantsPolicy(p),
		Lines:  []string{"The policy remediates drift within its limits. Its permissions are checked at each step."},
		Inputs: []Input{hidden("version", in.Version)},
	}
	if p.Spec.ServiceAccountName != "" {
		f.Lines = append(f.Lines, "You need the verb impersonate on the ServiceAccount, or the verb delegate on the policy.")
	} else {
		f.Lines = append(f.Lines, "Your name is written into the policy, with the groups that you choose.")
		if len(groups) > 0 {
			f.Inputs = append(f.Inputs, hidden("choose", "groups"), groupsInput(groups))
		}
	}
	f.Inputs = append(f.Inputs, reasonInput())
	return f
}

// groupsInput has the groups whose rights the policy may use; all are chosen at first.
func groupsInput(groups []string) Input {
	in := Input{Name: "groups", Label: "Groups whose permissions the policy may use", Kind: BoxesInput}
	for _, group := range slices.Compact(slices.Sorted(slices.Values(groups))) {
		in.Choices = append(in.Choices, Choice{Value: group, Label: group, Chosen: true})
	}
	return in
}
