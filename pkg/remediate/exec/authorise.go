// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// forbiddenGroups are never written, whoever asks and whatever the executor's
// rights are: what authorises, admits or defines must not be put back by a
// machine that is authorised, admitted and defined by it.
var forbiddenGroups = []string{
	"plumbline.dev", "rbac.authorization.k8s.io", "admissionregistration.k8s.io",
	"apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
	"certificates.k8s.io", "coordination.k8s.io", "node.k8s.io",
}

// forbiddenKinds of the core group.
var forbiddenKinds = []string{"Secret", "ServiceAccount", "Node", "Namespace", "PersistentVolume", "Pod", "Event"}

// Writable says whether a kind may ever be a target.
func Writable(gvk canon.GVK) bool {
	return !slices.Contains(forbiddenGroups, gvk.Group) && (gvk.Group != "" || !slices.Contains(forbiddenKinds, gvk.Kind))
}

// authorise asks whether the requester, and the executor itself, may do to the
// target what the step does. denied says who may not.
func (r *run) authorise(ctx context.Context, step int32) (answer protocol.Answer, denied string) {
	target := r.target(step)
	gvk := gvkOf(target)
	if !Writable(gvk) {
		return protocol.No, "a " + gvk.Kind + " is never written"
	}
	mapping, err := r.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}, gvk.Version)
	switch {
	case meta.IsNoMatchError(err):
		return protocol.No, "the API server does not serve its kind"
	case err != nil:
		return protocol.Unknown, ""
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return protocol.No, "its kind is not namespaced"
	}
	write := "update"
	if target.UID == "" {
		write = "create"
	}
	attributes := func(verb string) *authorizationv1.ResourceAttributes {
		return &authorizationv1.ResourceAttributes{
			Namespace: r.plan.Namespace, Verb: verb, Name: target.Name,
			Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource,
		}
	}
	for _, verb := range []string{"get", write} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes(verb)}}
		if err := r.Client.Create(ctx, review); err != nil {
			return protocol.Unknown, ""
		}
		if !allowed(review.Status) {
			return protocol.No, fmt.Sprintf("the executor may not %s %s in this namespace: bind the ClusterRole plumbline-executor-targets", verb, mapping.Resource.Resource)
		}
	}
	return r.authoriseRequester(ctx, attributes(write))
}

func (r *run) authoriseRequester(ctx context.Context, attributes *authorizationv1.ResourceAttributes) (answer protocol.Answer, denied string) {
	plan := &r.plan.Spec.Plan
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: plan.Requester, Groups: groupsOf(plan.Requester, plan.RequesterGroups), ResourceAttributes: attributes,
	}}
	if err := r.Client.Create(ctx, review); err != nil {
		return protocol.Unknown, ""
	}
	if !allowed(review.Status) {
		return protocol.No, fmt.Sprintf("%s, in whose name the plan acts, may not %s it", plan.Requester, attributes.Verb)
	}
	return protocol.Yes, ""
}

func allowed(s authorizationv1.SubjectAccessReviewStatus) bool { return s.Allowed && !s.Denied }

// groupsOf are the groups of a user: those that were confirmed when the request
// was made, and those that every such user has.
func groupsOf(user string, confirmed []string) []string {
	groups := append(slices.Clone(confirmed), "system:authenticated")
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(account, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

func gvkOf(t *v1alpha1.PlanTarget) canon.GVK { return canon.ParseGVK(t.APIVersion, t.Kind) }
