// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// boundTime bounds the wait for rights that were just given.
const boundTime = 30 * time.Second

// AwaitBound waits until a subject has what a role gives that was just bound to it;
// without a namespace, everywhere. The API server learns of roles and bindings by a
// watch, as any client does, and refuses what it has not heard of yet.
func AwaitBound(ctx context.Context, admin client.Client, subject rbacv1.Subject, namespace string, ref rbacv1.RoleRef) error {
	rules, err := rulesOf(ctx, admin, namespace, ref)
	if err != nil {
		return err
	}
	for i := range rules {
		if len(rules[i].Resources) == 0 {
			continue
		}
		spec := question(subject, namespace, &rules[i])
		what := fmt.Sprintf("%s %s has what %s %s gives (%v)", subject.Kind, subject.Name, ref.Kind, ref.Name, spec.ResourceAttributes)
		if err := awaitAllowed(ctx, admin, what, spec); err != nil {
			return err
		}
	}
	return nil
}

// rulesOf reads a role. One that is to be put together of others may have none yet;
// then there is nothing to wait for.
func rulesOf(ctx context.Context, admin client.Client, namespace string, ref rbacv1.RoleRef) ([]rbacv1.PolicyRule, error) {
	var role rbacv1.Role
	var clusterRole rbacv1.ClusterRole
	key, object := client.ObjectKey{Name: ref.Name}, client.Object(&clusterRole)
	if ref.Kind == "Role" {
		key.Namespace, object = namespace, &role
	}
	if err := admin.Get(ctx, key, object); err != nil {
		return nil, fmt.Errorf("reading what %s %s gives: %w", ref.Kind, ref.Name, err)
	}
	return append(role.Rules, clusterRole.Rules...), nil
}

// question asks for one thing that a rule allows. The last verb is the one that other
// roles are least likely to give, too.
func question(subject rbacv1.Subject, namespace string, rule *rbacv1.PolicyRule) authorizationv1.SubjectAccessReviewSpec {
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	asked := &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: rule.Verbs[len(rule.Verbs)-1], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	spec := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: asked, User: subject.Name}
	switch subject.Kind {
	case rbacv1.GroupKind:
		spec.User, spec.Groups = "", []string{subject.Name}
	case rbacv1.ServiceAccountKind:
		spec.User = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	}
	return spec
}

func awaitAllowed(ctx context.Context, admin client.Client, what string, spec authorizationv1.SubjectAccessReviewSpec) error {
	return waits.Until(ctx, boundTime, what, func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		err := admin.Create(ctx, review)
		if err == nil && !review.Status.Allowed {
			err = fmt.Errorf("it is not allowed: %q", review.Status.Reason)
		}
		return err
	})
}
