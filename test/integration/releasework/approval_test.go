// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// bound returns a client of a user who has a ClusterRole in the namespace.
func (w *world) bound(user, role string) client.Client {
	w.t.Helper()
	subject, ref := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	w.Must(admin.Create(w.Ctx(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, GenerateName: role + "-"}, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}))
	w.Must(apiserver.AwaitBound(w.Ctx(), admin, subject, w.Name, ref))
	as, err := client.New(apiserver.Impersonate(config, user), client.Options{Scheme: scheme.Scheme})
	w.Must(err)
	return as
}

// TestTheAuthorOfARunDecidesNothingInPlaceOfTheJudge asks as users with the role edit of releases, as administrators
// and as approvers. Alice is the author of the run, and bob has written the release since.
func TestTheAuthorOfARunDecidesNothingInPlaceOfTheJudge(t *testing.T) {
	w := newWorld(t)
	const approver, editor = "plumbline-release-approver", "plumbline-release"
	users := map[string]client.Client{
		"alice": w.bound("alice", approver), "Alice": w.bound("Alice", approver), "bob": w.bound("bob", approver), "ann": w.bound("ann", approver), "eve": w.bound("eve", editor), "root": w.As("root"),
	}
	r := w.releaseOf("alice")
	r.Spec.Rollout.Approval = v1alpha1.ApprovalNotAuthor
	w.Must(w.As("alice").Create(w.Ctx(), r))
	w.release = r
	w.run(3, "Running")
	w.release.Status.Rollout.Run.Approval, w.release.Status.Rollout.Run.Author = v1alpha1.ApprovalNotAuthor, "alice"
	w.Must(w.xds.Status().Update(w.Ctx(), w.release))
	patch := func(user, body string) error {
		return users[user].Patch(w.Ctx(), w.release.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), client.DryRunAll)
	}
	w.Must(users["bob"].Patch(w.Ctx(), w.release.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollout":{"requestedBy":"bob","onUndecided":"Rollback"}}}`))))
	ask := func(user, verb, more string) string {
		return fmt.Sprintf(`{"spec":{"rollout":{"control":{"verb":%q,"run":3,"requestedBy":%q%s}}}}`, verb, user, more)
	}
	const (
		isAuthor = "approval is NotAuthor, and "
		weaker   = "takes another user than alice or bob, with the verb approve"
		lowers   = `{"spec":{"rollout":{"approval":"Anyone","requestedBy":%q}}}`
		removes  = `{"spec":{"rollout":null,"variations":[{"name":"stable","workload":{"kind":"Deployment","name":"web"}},{"name":"canary","workload":{"kind":"Deployment","name":"other"}}]}}`
	)
	tests := map[string]struct{ user, body, refused string }{
		"the author approves":                                   {"alice", ask("alice", "Approve", ""), isAuthor + "alice"},
		"the author with a name in another case approves":       {"Alice", ask("Alice", "Approve", ""), isAuthor + "Alice"},
		"the author skips a stage":                              {"alice", ask("alice", "Skip", ""), isAuthor + "alice"},
		"the author promotes the canary":                        {"alice", ask("alice", "Promote", `,"variation":"canary"`), isAuthor + "alice"},
		"the author ends the run by a promotion":                {"alice", ask("alice", "Promote", `,"variation":"stable"`), ""},
		"the author rolls back":                                 {"alice", ask("alice", "Rollback", ""), ""},
		"the author goes on":                                    {"alice", ask("alice", "Advance", ""), ""},
		"the author tries again":                                {"alice", ask("alice", "Retry", ""), ""},
		"the last writer approves":                              {"bob", ask("bob", "Approve", ""), isAuthor + "bob"},
		"another approver approves":                             {"ann", ask("ann", "Approve", ""), ""},
		"another approver writes and approves at once":          {"ann", `{"spec":{"rollout":{"requestedBy":"ann","control":{"verb":"Approve","run":3,"requestedBy":"ann"}}}}`, isAuthor + "ann"},
		"another approver lowers the policy and skips":          {"ann", `{"spec":{"rollout":{"approval":"Anyone","requestedBy":"ann","control":{"verb":"Skip","run":3,"requestedBy":"ann"}}}}`, isAuthor + "ann"},
		"an administrator, who is no author, approves":          {"root", ask("root", "Approve", ""), ""},
		"a user with the right to edit approves":                {"eve", ask("eve", "Approve", ""), "needs the verb approve"},
		"the author lowers the policy":                          {"alice", fmt.Sprintf(lowers, "alice"), weaker},
		"the author lowers the policy by leaving the field out": {"alice", `{"spec":{"rollout":{"approval":null,"requestedBy":"alice"}}}`, weaker},
		"the author removes the rollout":                        {"alice", removes, weaker},
		"the last writer lowers the policy":                     {"bob", fmt.Sprintf(lowers, "bob"), weaker},
		"a user with the right to edit lowers the policy":       {"eve", fmt.Sprintf(lowers, "eve"), weaker},
		"another approver lowers the policy":                    {"ann", fmt.Sprintf(lowers, "ann"), ""},
		"another approver lowers the policy and names no user":  {"ann", `{"spec":{"rollout":{"approval":"Anyone"}}}`, "set spec.rollout.requestedBy to ann"},
		"another approver removes the rollout":                  {"ann", removes, ""},
		"NotAuthor needs an author":                             {"ann", `{"spec":{"rollout":{"requestedBy":null}}}`, "set requestedBy to the user that writes the release"},
		"the author pauses the run":                             {"alice", `{"spec":{"rollout":{"pause":"Enabled"}}}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := patch(tc.user, tc.body)
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case tc.refused != "" && (!apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("got %v, want %q", err, tc.refused)
			}
		})
	}
}
