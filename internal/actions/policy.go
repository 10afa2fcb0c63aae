// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// ModeOf returns the mode of a policy; one that says none observes.
func ModeOf(p *v1alpha1.RemediationPolicy) v1alpha1.PolicyMode {
	return cmp.Or(p.Spec.Mode, v1alpha1.PolicyModeObserveOnly)
}

// IsInMode reports whether a policy is in the mode already, and acts with these very rights.
func IsInMode(p *v1alpha1.RemediationPolicy, mode v1alpha1.PolicyMode, as planner.Principal) bool {
	current := planner.PrincipalOf(&p.Spec)
	return ModeOf(p) == mode &&
		(mode != v1alpha1.PolicyModeActive || current.User == as.User && slices.Equal(current.Groups, as.Groups))
}

// SelectPrincipal returns the user as whom a policy is to act in the mode: its
// ServiceAccount, or the user who sets the mode, with the groups of [SelectGroups]. A policy
// that does not act needs no groups. The error is an AccountGroupsError, or that of
// SelectGroups.
func SelectPrincipal(p *v1alpha1.RemediationPolicy, mode v1alpha1.PolicyMode, user authenticationv1.UserInfo, named []string, chosen bool) (planner.Principal, error) {
	account := p.Spec.ServiceAccountName
	switch {
	case account != "" && chosen:
		return planner.Principal{}, &AccountGroupsError{Account: account}
	case account != "":
		return planner.PrincipalOf(&p.Spec), nil
	case mode != v1alpha1.PolicyModeActive:
		return planner.Principal{User: user.Username}, nil
	}
	groups, err := SelectGroups(user, named, chosen)
	return planner.Principal{User: user.Username, Groups: groups}, err
}

// AccountGroupsError says that groups were chosen for a policy that acts as a ServiceAccount.
type AccountGroupsError struct{ Account string }

func (e *AccountGroupsError) Error() string {
	return fmt.Sprintf("the policy acts as the ServiceAccount %s, and its groups cannot be chosen", e.Account)
}

// The schema's bounds on the groups that a policy may use.
const (
	maxPolicyGroups     = 32
	maxPolicyGroupBytes = 256
)

// NotMemberError says that a user is not in a group that the policy shall use.
type NotMemberError struct{ User, Group string }

func (e *NotMemberError) Error() string {
	return fmt.Sprintf("you (%s) are not in the group %q", e.User, e.Group)
}

// GroupTooLongError says that the name of a group is longer than a policy holds.
type GroupTooLongError struct {
	Group    string
	MaxBytes int
}

func (e *GroupTooLongError) Error() string {
	return fmt.Sprintf("the group %.40q… is longer than %d bytes", e.Group, e.MaxBytes)
}

// TooManyGroupsError says that a user is in more groups than a policy holds.
type TooManyGroupsError struct{ Count, Max int }

func (e *TooManyGroupsError) Error() string {
	return fmt.Sprintf("you are in %d groups, and a policy holds %d", e.Count, e.Max)
}

// SelectGroups returns those of a user's groups whose rights a policy may use: the named
// ones if they are chosen, otherwise all. The error is a NotMemberError, a
// GroupTooLongError or a TooManyGroupsError.
func SelectGroups(user authenticationv1.UserInfo, named []string, chosen bool) ([]string, error) {
	if !chosen {
		named = user.Groups
	}
	var groups []string
	for _, group := range named {
		switch {
		case group == "":
		case !slices.Contains(user.Groups, group):
			return nil, &NotMemberError{User: user.Username, Group: group}
		case len(group) > maxPolicyGroupBytes:
			return nil, &GroupTooLongError{Group: group, MaxBytes: maxPolicyGroupBytes}
		case !slices.Contains(groups, group):
			groups = append(groups, group)
		}
	}
	if len(groups) > maxPolicyGroups {
		return nil, &TooManyGroupsError{Count: len(groups), Max: maxPolicyGroups}
	}
	return groups, nil
}

// ErrPolicyChanged says that a policy is not the one that was shown.
var ErrPolicyChanged = errors.New("it changed since it was shown; look again")

// RequestMode sets the mode of a policy, and who asked, if nobody has changed its spec since
// it was shown; otherwise the error is ErrPolicyChanged. The reason takes the place of that of an earlier
// request. What is stored is in p afterwards.
func RequestMode(ctx context.Context, c client.Client, p *v1alpha1.RemediationPolicy, mode v1alpha1.PolicyMode, as planner.Principal, reason string, dryRun bool) error {
	shown := p.Generation
	return Submit(ctx, c, "it", p, func(current *v1alpha1.RemediationPolicy) (map[string]any, error) {
		if current.Generation != shown {
			return nil, ErrPolicyChanged
		}
		return modePatch(current, mode, as, reason), nil
	}, patchOptions(dryRun)...)
}

// modePatch sets the mode, and the user who asked for it. A policy of a ServiceAccount names
// no user, and one that does not act needs no groups.
func modePatch(p *v1alpha1.RemediationPolicy, mode v1alpha1.PolicyMode, as planner.Principal, reason string) map[string]any {
	spec := map[string]any{"mode": string(mode)}
	if p.Spec.ServiceAccountName == "" {
		spec["requestedBy"], spec["requestedByGroups"] = as.User, nil
		if len(as.Groups) > 0 {
			spec["requestedByGroups"] = as.Groups
		}
	}
	patch := map[string]any{"spec": spec}
	if _, said := p.Annotations[v1alpha1.AnnotationModeReason]; said || reason != "" {
		patch["metadata"] = map[string]any{"annotations": map[string]any{v1alpha1.AnnotationModeReason: orNull(reason)}}
	}
	return patch
}

// JudgeMode judges whether the assessor has looked at a policy as it was stored with the
// request, at the generation asked. It is refused where the policy is gone.
func JudgeMode(p *v1alpha1.RemediationPolicy, asked int64, deleted bool) Progress {
	switch {
	case deleted:
		return Refused
	case p.Status.ObservedGeneration >= asked:
		return Taken
	default:
		return Pending
	}
}

// AwaitMode waits until the assessor has looked at the policy as it is now, and returns the
// policy as it was last. It is pending still when the context ends first.
func AwaitMode(ctx context.Context, c client.WithWatch, p *v1alpha1.RemediationPolicy) (progress Progress, last *v1alpha1.RemediationPolicy, err error) {
	asked, last := p.Generation, p
	err = Await(ctx, c, p, &v1alpha1.RemediationPolicyList{}, func(current *v1alpha1.RemediationPolicy, deleted bool) bool {
		progress, last = JudgeMode(current, asked, deleted), current
		return progress != Pending
	})
	return progress, last, err
}
