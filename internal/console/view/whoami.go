// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
)

// Right is what a role of the chart allows in a namespace.
type Right struct {
	// Means is what a person does with the right.
	Means, Verb, Resource string
	// Role is the ClusterRole of the chart that has the right.
	Role string
}

// Rights are the rights that the console tells about.
var Rights = []Right{
	{"read objects and their drift", "list", "baselines", "plumbline-view"},
	{"read plans", "list", "remediationplans", "plumbline-view"},
	{"read policies", "list", "remediationpolicies", "plumbline-view"},
	{"read releases", "list", "abreleases", "plumbline-view"},
	{"read assessments", "list", "effectivenessassessments", "plumbline-view"},
	{"read bodies of revisions", "get", "baselinerevisions", "plumbline-history"},
	{"accept drift and ask for checks", "update", "baselines", "plumbline-admin"},
	{"execute, pause, resume and cancel plans", "update", "remediationplans", "plumbline-plan-operator"},
	{"remediate drift now", "create", "remediationrequests", "plumbline-remediator"},
	{"write releases", "update", "abreleases", "plumbline-release"},
	{"approve, promote, skip and retry runs", "approve", "abreleases", "plumbline-release-approver"},
	{"write policies", "update", "remediationpolicies", "plumbline-policy-author"},
	{"halt remediation", "update", "remediationledgers", "plumbline-ledger-operator"},
}

// RoleOf returns the role of the chart that has a right to a resource; empty if no role is known.
func RoleOf(verb, resource string) string {
	switch verb {
	case "get":
		if resource != "baselinerevisions" {
			verb = "list" // a role that lists a kind also gets its objects
		}
	case "patch":
		verb = "update"
	case "create":
		if resource == "remediationpolicies" {
			verb = "update" // an author of policies has both
		}
	case "promote", "skip", "retry":
		verb = "approve"
	}
	for _, r := range Rights {
		if r.Verb == verb && r.Resource == resource {
			return r.Role
		}
	}
	return ""
}

// Answer says whether the caller has a right; Unread says why that is not known.
type Answer struct {
	Right
	Allowed bool
	Unread  string
}

// Whoami is what the page about the caller is made from.
type Whoami struct {
	User authenticationv1.UserInfo
	// Namespace that the answers are about; empty for the whole cluster.
	Namespace string
	Answers   []Answer
	Now       time.Time
}

// WhoamiOf shows the caller as the API server knows them, their rights, and the roles that are missing.
func WhoamiOf(in *Whoami) Page {
	where := "in the whole cluster"
	if in.Namespace != "" {
		where = "in namespace " + in.Namespace
	}
	t := &Table{Caption: "Rights " + where, Columns: []string{"To", "Right", "Answer", "Role of the chart that has it"}, Empty: "No right was asked for."}
	for _, a := range in.Answers {
		answer, role := Cell{Text: "yes", Mark: "✓", State: "gate-ok"}, text("")
		switch {
		case a.Unread != "":
			answer, role = Cell{Text: "not known: " + a.Unread, Mark: "?", State: "gate-unknown"}, text(a.Role)
		case !a.Allowed:
			answer, role = Cell{Text: "no", Mark: "✗", State: "gate-holds"}, text(a.Role)
		}
		t.Rows = append(t.Rows, []Cell{text(a.Means), text(a.Verb + " " + a.Resource), answer, role})
	}
	return Page{
		Title: "Whoami", Entry: WhoamiPath, Time: in.Now, Filters: []Filter{namespaceFilter(in.Namespace)},
		Sections: []Section{
			{Title: "You", Facts: []wording.Field{
				{Label: "User", Value: wording.NameActor(in.User.Username)}, {Label: "Groups", Value: strings.Join(in.User.Groups, ", ")},
			}},
			{Title: "Rights", Table: t},
		},
	}
}
