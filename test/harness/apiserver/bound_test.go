// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// reluctant allows each thing only when it is asked for a second time, and keeps what
// it was asked.
type reluctant struct {
	asked []authorizationv1.SubjectAccessReviewSpec
}

func (r *reluctant) create(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
	review := object.(*authorizationv1.SubjectAccessReview)
	r.asked = append(r.asked, review.Spec)
	review.Status.Allowed = len(r.asked)%2 == 0
	return nil
}

func (r *reluctant) client(roles ...client.Object) client.Client {
	return fake.NewClientBuilder().WithObjects(roles...).WithInterceptorFuncs(interceptor.Funcs{Create: r.create}).Build()
}

func TestAwaitBoundAsksForEachRuleUntilItIsAllowed(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"pods/log", "pods"}, Verbs: []string{"list", "get"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"update"}, ResourceNames: []string{"web"}},
	}
	everywhere := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: rules}
	here := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r"}, Rules: rules}
	tests := map[string]struct {
		subject         rbacv1.Subject
		namespace, role string
		user            string
		groups          []string
	}{
		"a user everywhere":               {rbacv1.Subject{Kind: "User", Name: "alice"}, "", "ClusterRole", "alice", nil},
		"a group in a namespace":          {rbacv1.Subject{Kind: "Group", Name: "people"}, "shop", "Role", "", []string{"people"}},
		"an account, by the cluster role": {rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ci", Name: "d"}, "shop", "ClusterRole", "system:serviceaccount:ci:d", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &reluctant{}
			if err := apiserver.AwaitBound(t.Context(), r.client(everywhere, here), tc.subject, tc.namespace, rbacv1.RoleRef{Kind: tc.role, Name: "r"}); err != nil {
				t.Fatal(err)
			}
			want := func(asked authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewSpec {
				asked.Namespace = tc.namespace
				return authorizationv1.SubjectAccessReviewSpec{User: tc.user, Groups: tc.groups, ResourceAttributes: &asked}
			}
			log := want(authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log"})
			web := want(authorizationv1.ResourceAttributes{Verb: "update", Group: "apps", Resource: "deployments", Name: "web"})
			if diff := cmp.Diff([]authorizationv1.SubjectAccessReviewSpec{log, log, web, web}, r.asked); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAwaitBoundTellsOfARoleThatIsNotThere(t *testing.T) {
	err := apiserver.AwaitBound(t.Context(), (&reluctant{}).client(), rbacv1.Subject{Kind: "User", Name: "alice"}, "", rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"})
	if err == nil || !strings.Contains(err.Error(), "ClusterRole r") {
		t.Errorf("got %v", err)
	}
}
