// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// SignPolicy names the user who writes a policy as its author. An active policy has the groups that its
// spec names, or else all groups of the user. The errors are those of [SelectPrincipal].
func SignPolicy(spec *v1alpha1.RemediationPolicySpec, user authenticationv1.UserInfo) error {
	named := spec.RequestedByGroups
	spec.RequestedBy, spec.RequestedByGroups = "", nil
	p := &v1alpha1.RemediationPolicy{Spec: *spec}
	as, err := SelectPrincipal(p, ModeOf(p), user, named, len(named) > 0)
	if err == nil && spec.ServiceAccountName == "" {
		spec.RequestedBy, spec.RequestedByGroups = as.User, as.Groups
	}
	return err
}

// IsSamePolicy reports whether a spec asks for no more than what stands, whoever wrote that.
func IsSamePolicy(standing, spec *v1alpha1.RemediationPolicySpec) bool {
	asked := spec.DeepCopy()
	asked.RequestedBy = standing.RequestedBy
	if len(asked.RequestedByGroups) == 0 {
		asked.RequestedByGroups = standing.RequestedByGroups
	}
	return equality.Semantic.DeepEqual(standing, asked)
}

// ReplacePolicy replaces the spec of a policy in the name of a user, if no user has changed the spec since
// it was shown; otherwise the error is ErrPolicyChanged. A spec that asks for no change changes no author.
// p has the stored object afterwards, or the object that a dry run would store.
func ReplacePolicy(ctx context.Context, c client.Client, p *v1alpha1.RemediationPolicy, spec *v1alpha1.RemediationPolicySpec, user authenticationv1.UserInfo, dryRun bool) error {
	if IsSamePolicy(&p.Spec, spec) {
		return nil
	}
	signed := spec.DeepCopy()
	if err := SignPolicy(signed, user); err != nil {
		return err
	}
	return whileUnchanged(ctx, c, p, func() error {
		p.Spec = *signed.DeepCopy()
		if dryRun {
			return c.Update(ctx, p, client.DryRunAll)
		}
		return c.Update(ctx, p)
	})
}

// DeletePolicy deletes a policy, if no user has changed its spec since it was shown; otherwise the error
// is ErrPolicyChanged.
func DeletePolicy(ctx context.Context, c client.Client, p *v1alpha1.RemediationPolicy) error {
	return whileUnchanged(ctx, c, p, func() error {
		uid, version := p.UID, p.ResourceVersion
		return c.Delete(ctx, p, client.Preconditions{UID: &uid, ResourceVersion: &version})
	})
}

// whileUnchanged repeats a write of a policy that a write of its status came before.
func whileUnchanged(ctx context.Context, c client.Client, p *v1alpha1.RemediationPolicy, write func() error) error {
	uid, shown := p.UID, p.Generation
	for range maxConflicts {
		err := write()
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.UID != uid || p.Generation != shown {
			return ErrPolicyChanged
		}
	}
	return &ContendedError{What: "the policy", Attempts: maxConflicts}
}
