// SPDX-License-Identifier: Apache-2.0

package routers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/internal/routeowner"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// account is the ServiceAccount of the discovery server.
const account = "plumbline-xds"

// right is one that the discovery server needs, and the value of the chart that gives it.
type right struct {
	authorizationv1.ResourceAttributes
	value string
}

func (r right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}

// rightsOf returns the rights that the discovery server needs for a router and its releases, each once.
func rightsOf(router *v1alpha1.TrafficRouter, releases []v1alpha1.ABRelease, system string) []right {
	rights := []right{
		{authorizationv1.ResourceAttributes{Verb: "list", Group: v1alpha1.GroupVersion.Group, Resource: "trafficrouters"}, "routers.enabled"},
		{authorizationv1.ResourceAttributes{Verb: "update", Group: v1alpha1.GroupVersion.Group, Resource: "trafficrouters", Subresource: "status"}, "routers.enabled"},
	}
	for _, name := range secretsOf(&router.Spec) {
		rights = append(rights, right{authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: system, Name: name}, "routers.secrets"})
	}
	for i := range releases {
		for _, route := range routeowner.RoutesOf(&releases[i]) {
			for _, verb := range []string{"get", "patch"} {
				rights = append(rights, right{authorizationv1.ResourceAttributes{
					Verb: verb, Group: gitops.RouteGroup, Resource: strings.ToLower(route.Kind) + "s", Namespace: route.Namespace, Name: route.Name,
				}, "routers.gatewayAPI.namespaces"})
			}
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(rights, func(r right) bool {
		text := r.String()
		defer func() { seen[text] = true }()
		return seen[text]
	})
}

// secretsOf returns the names of the Secrets that a router names.
func secretsOf(spec *v1alpha1.TrafficRouterSpec) (names []string) {
	if spec.Webhook != nil {
		names = append(names, spec.Webhook.SecretRef.Name)
	}
	if t := spec.Traefik; t != nil {
		names = append(names, t.TokenSecretRef.Name)
		for i := range t.Programs {
			if ref := t.Programs[i].PasswordSecretRef; ref != nil {
				names = append(names, ref.Name)
			}
		}
	}
	return names
}

// checkRights asks the API server which rights the account of the discovery server lacks. A user who may not ask gets an
// Unknown finding.
func checkRights(ctx context.Context, c client.Writer, rights []right, system string) (found []Finding, err error) {
	for _, r := range rights {
		attributes := r.ResourceAttributes
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + system + ":" + account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + system, "system:authenticated"},
			ResourceAttributes: &attributes,
		}}
		switch err := c.Create(ctx, review); {
		case apierrors.IsForbidden(err):
			return []Finding{{State: Unknown, Message: "which permissions the discovery server has: your user may not create subjectaccessreviews.authorization.k8s.io"}}, nil
		case err != nil:
			return nil, fmt.Errorf("asking whether the discovery server may %s: %w", r, err)
		case !review.Status.Allowed:
			found = append(found, Finding{State: Problem, Message: "the discovery server may not " + r.String(), Fix: "set " + r.value + " in the values of the chart"})
		}
	}
	if found == nil {
		found = []Finding{{State: OK, Message: "the discovery server has the permissions that the router needs"}}
	}
	return found, nil
}
