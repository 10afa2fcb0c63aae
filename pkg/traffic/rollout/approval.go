// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ApprovalPolicy says which users decide about a run in place of the judge.
type ApprovalPolicy string

// The policies.
const (
	ApprovalAnyone    ApprovalPolicy = "Anyone"
	ApprovalNotAuthor ApprovalPolicy = "NotAuthor"
)

// refusesAuthor tells whether the author does not decide. An unknown policy refuses the author.
func (p ApprovalPolicy) refusesAuthor() bool {
	switch p {
	case "", ApprovalAnyone:
		return false
	case ApprovalNotAuthor:
		return true
	}
	return true
}

// Approval is a policy, and the user who has written the release.
type Approval struct {
	Policy ApprovalPolicy
	// Author is spec.rollout.requestedBy; empty if the release names no user.
	Author string
}

// ApprovalOf reads what a release says.
func ApprovalOf(in *v1alpha1.Rollout) Approval {
	return Approval{ApprovalPolicy(in.Approval), in.RequestedBy}
}

// approvalOf returns what the release says, for a run that begins. A run of the revision that the last run had
// keeps the author: a user who has written the release since is no author of that revision.
func (m *machine) approvalOf(to Revision) Approval {
	a := m.Approval
	if last := m.next.Run; last != nil && last.Canary == m.canary() && last.To.Is(to) && last.Approval.Author != "" {
		a.Author = last.Approval.Author
	}
	return a
}

// overrides tells whether a request has a run go forward in place of the judge, or past an approval.
// Rollback, and Promote of the active variation, end the run: they are free. An unknown verb does nothing.
func (c Control) overrides(active string) bool {
	switch c.Verb {
	case VerbApprove, VerbSkip:
		return true
	case VerbPromote:
		return c.Variation != active
	case VerbStart, VerbAdvance, VerbRollback, VerbRetry:
		return false
	}
	return true
}

// refused returns the users who do not decide about a run: its author, and the user who has written the release
// since. Either of two policies is enough: that of when the run began, and that of now. It returns nil if the
// right of the verb is enough, and an empty list if the author is not known.
func (r *Run) refused(now Approval) []string {
	if !r.Approval.Policy.refusesAuthor() && !now.Policy.refusesAuthor() {
		return nil
	}
	users := []string{}
	if r.Approval.Author == "" {
		return users
	}
	users = append(users, r.Approval.Author)
	if now.Author != "" && !isUser(now.Author, r.Approval.Author) {
		users = append(users, now.Author)
	}
	return users
}

// isUser tells whether two names may be those of one user. Kubernetes tells names of another case apart;
// identity providers do not always.
func isUser(a, b string) bool { return strings.EqualFold(a, b) }

// refuseAuthor returns why a user does not decide about a run; empty if the policies permit the user.
func refuseAuthor(run *Run, now Approval, c Control) string {
	users := run.refused(now)
	switch {
	case users == nil || !c.overrides(run.Active):
		return ""
	case len(users) == 0:
		return fmt.Sprintf("approval is %s, and run %d has no author to compare with, since the release named no user at its beginning. Ask for Rollback and then for Retry", ApprovalNotAuthor, run.Number)
	case isUser(users[0], c.RequestedBy):
		return fmt.Sprintf("approval is %s, and %s is the author of run %d: %s has to ask", ApprovalNotAuthor, c.RequestedBy, run.Number, approver(users))
	case slices.ContainsFunc(users, func(user string) bool { return isUser(user, c.RequestedBy) }):
		return fmt.Sprintf("approval is %s, and %s has written the release last: %s has to ask", ApprovalNotAuthor, c.RequestedBy, approver(users))
	}
	return ""
}

// approver names the person who may decide where some users may not.
func approver(refused []string) string {
	if len(refused) == 0 {
		return "a person"
	}
	return "another user than " + strings.Join(refused, " or ")
}

// RefuseVerb returns why a user may not ask for a verb of the run under way, by the approval policy alone;
// empty if the user may.
func RefuseVerb(r *v1alpha1.ABRelease, c *v1alpha1.RolloutControl) string {
	if r.Spec.Rollout == nil || r.Status.Rollout == nil || r.Status.Rollout.Run == nil || c == nil {
		return ""
	}
	return refuseAuthor(runOf(r.Status.Rollout.Run), ApprovalOf(r.Spec.Rollout), *ControlOf(c))
}

// Approver names the person who may approve a stage of the run under way, such as "another user than ada".
// It is empty where the right to approve is enough.
func Approver(r *v1alpha1.ABRelease) string {
	if r.Spec.Rollout == nil || r.Status.Rollout == nil || r.Status.Rollout.Run == nil {
		return ""
	}
	if users := runOf(r.Status.Rollout.Run).refused(ApprovalOf(r.Spec.Rollout)); len(users) > 0 {
		return approver(users)
	}
	return ""
}
