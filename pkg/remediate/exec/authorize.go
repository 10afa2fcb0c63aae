// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// forbiddenGroups are never written, whoever asks and whatever the executor's
// rights are: what authorizes, admits or defines must not be put back by a
// machine that is authorized, admitted and defined by it.
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

// Access names the permissions that a plan needs for the write of one target.
type Access struct {
	// Resource of the target, and Namespace and Name of the object.
	Resource        schema.GroupVersionResource
	Namespace, Name string
	// Write is the verb of the write: update, or create for an object that is gone.
	Write string
}

// NotWritableError says that no permission lets a plan write a target.
type NotWritableError string

func (e NotWritableError) Error() string { return string(e) }

// AccessTo returns the permissions that a plan needs for the write of a target. The error
// is a [NotWritableError] where no permission would do; any other error says that the
// resource of the kind is not known.
func AccessTo(mapper meta.RESTMapper, namespace string, target *v1alpha1.PlanTarget) (Access, error) {
	gvk := gvkOf(target)
	if !Writable(gvk) {
		return Access{}, NotWritableError("a " + gvk.Kind + " is never written")
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}, gvk.Version)
	switch {
	case meta.IsNoMatchError(err):
		return Access{}, NotWritableError("the API server does not serve its kind")
	case err != nil:
		return Access{}, fmt.Errorf("finding the resource of %s: %w", gvk.Kind, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return Access{}, NotWritableError("its kind is not namespaced")
	}
	access := Access{Resource: mapping.Resource, Namespace: namespace, Name: target.Name, Write: "update"}
	if target.UID == "" {
		access.Write = "create"
	}
	return access, nil
}

// Attributes returns the access by one verb, as a review names it.
func (a Access) Attributes(verb string) *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Namespace: a.Namespace, Verb: verb, Name: a.Name,
		Group: a.Resource.Group, Version: a.Resource.Version, Resource: a.Resource.Resource,
	}
}

// ExecutorVerbs returns the verbs that the executor needs, in the order in which they are
// asked.
func (a Access) ExecutorVerbs() []string { return []string{"get", a.Write} }

// ExecutorMayNot names a verb that the executor lacks, and the binding that gives it.
func (a Access) ExecutorMayNot(verb string) string {
	role := "plumbline-executor-targets there"
	if a.Resource.Group == v1alpha1.GroupVersion.Group {
		role = "plumbline-executor-standbys there, which the chart has with mesh.enabled"
	}
	return fmt.Sprintf("the executor may not %s %s in namespace %s: bind the ClusterRole %s", verb, a.Resource.Resource, a.Namespace, role)
}

// RequesterReview returns the review of a principal of a plan.
func (a Access) RequesterReview(who planner.Principal) *authorizationv1.SubjectAccessReview {
	return a.review(who, a.Write)
}

// ExecutorReview returns the review of the executor by another process.
func (a Access) ExecutorReview(user, verb string) *authorizationv1.SubjectAccessReview {
	return a.review(planner.Principal{User: user}, verb)
}

func (a Access) review(who planner.Principal, verb string) *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.User, Groups: groupsOf(who), ResourceAttributes: a.Attributes(verb),
	}}
}

// RequesterMayNot names the permission that the user lacks in whose name a plan acts.
func (a Access) RequesterMayNot(user string) string {
	if a.Name == "" {
		return fmt.Sprintf("%s, the user of the plan, may not %s %s for its standby: give the user that permission in namespace %s, or choose another strategy than BlueGreen",
			user, a.Write, a.Resource.Resource, a.Namespace)
	}
	return fmt.Sprintf("%s, the user of the plan, may not %s it", user, a.Write)
}

// authorize asks whether the requester, and the executor itself, may write the target of
// the step. denied names the missing permission.
func (r *run) authorize(ctx context.Context, step int32) (answer protocol.Answer, denied string) {
	access, err := AccessTo(r.Client.RESTMapper(), r.plan.Namespace, r.target(step))
	if never := NotWritableError(""); errors.As(err, &never) {
		return protocol.No, never.Error()
	}
	if err != nil {
		return protocol.Unknown, ""
	}
	var group sync.WaitGroup
	var own []*reading[bool]
	verbs := access.ExecutorVerbs()
	for _, verb := range verbs {
		own = append(own, begin(&group, func() (bool, error) { return r.mayItself(ctx, access, verb) }))
	}
	needed := []Access{access}
	if r.standsBy(step) {
		needed = append(needed, StandbyAccess(r.plan.Namespace)...)
	}
	var principals []asked
	for _, a := range needed {
		principals = append(principals, r.askForPrincipals(ctx, &group, a)...)
	}
	group.Wait()
	for i, may := range own {
		switch {
		case may.err != nil:
			return protocol.Unknown, ""
		case !may.value:
			return protocol.No, access.ExecutorMayNot(verbs[i])
		}
	}
	return judgePrincipals(principals)
}

// mayItself asks whether the executor may do something with the target.
func (r *run) mayItself(ctx context.Context, access Access, verb string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: access.Attributes(verb)}}
	if err := r.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether the executor may %s it: %w", verb, err)
	}
	return Allowed(&review.Status), nil
}

// asked is a principal of a plan, and what keeps the principal from writing the target.
type asked struct {
	principal planner.Principal
	denied    *reading[string]
}

// askForPrincipals asks whether the principals of the plan may write the target. It returns
// nil when it is not known who they are.
func (r *run) askForPrincipals(ctx context.Context, group *sync.WaitGroup, access Access) []asked {
	plan := &r.plan.Spec.Plan
	if plan.Request != nil && r.policy == nil {
		return nil
	}
	var policy *v1alpha1.RemediationPolicySpec
	if r.policy != nil {
		policy = &r.policy.Spec
	}
	var out []asked
	for _, who := range Principals(plan, policy) {
		out = append(out, asked{who, begin(group, func() (string, error) { return r.denies(ctx, access, who) })})
	}
	return out
}

// denies names what keeps a principal from writing the target; empty when it may.
func (r *run) denies(ctx context.Context, access Access, who planner.Principal) (string, error) {
	review := access.RequesterReview(who)
	if err := r.Client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("asking whether %s may write it: %w", who.User, err)
	}
	if !Allowed(&review.Status) {
		return access.RequesterMayNot(who.User), nil
	}
	return MissingAccount(ctx, r.Client, who)
}

// judgePrincipals says what the answers about principals mean.
func judgePrincipals(principals []asked) (answer protocol.Answer, denied string) {
	for _, who := range principals {
		switch {
		case who.denied.err != nil:
			return protocol.Unknown, ""
		case who.denied.value != "":
			return protocol.No, who.denied.value
		}
	}
	if len(principals) == 0 {
		return protocol.Unknown, ""
	}
	return protocol.Yes, ""
}

// Principals returns the users whose right a plan needs: its requester, and for a plan that
// answers a request the principal of the policy as well. policy counts for the latter alone.
func Principals(plan *v1alpha1.PlannedRemediation, policy *v1alpha1.RemediationPolicySpec) []planner.Principal {
	out := []planner.Principal{{User: plan.Requester, Groups: plan.RequesterGroups}}
	if plan.Request != nil && policy != nil {
		out = append(out, planner.PrincipalOf(policy))
	}
	return out
}

// MissingAccount says that a principal is a ServiceAccount which was deleted; empty when the
// account exists, or when the principal is none. RoleBindings name accounts, so a review of
// access answers yes for an account that is gone.
func MissingAccount(ctx context.Context, from client.Reader, who planner.Principal) (string, error) {
	name, ok := who.Account()
	if !ok {
		return "", nil
	}
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := from.Get(ctx, name, account)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return "", fmt.Errorf("reading ServiceAccount %s: %w", name, err)
	case account.DeletionTimestamp == nil:
		return "", nil
	}
	return fmt.Sprintf("the ServiceAccount %s, which the plan acts as, does not exist", name), nil
}

// Allowed says whether a review allows the request that it names.
func Allowed(s *authorizationv1.SubjectAccessReviewStatus) bool { return s.Allowed && !s.Denied }

// groupsOf returns the groups of a principal: those that were confirmed when the request
// was made, and those that every such user has.
func groupsOf(who planner.Principal) []string {
	groups := append(slices.Clone(who.Groups), "system:authenticated")
	if account, ok := who.Account(); ok {
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+account.Namespace)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

func gvkOf(t *v1alpha1.PlanTarget) canon.GVK { return canon.ParseGVK(t.APIVersion, t.Kind) }
