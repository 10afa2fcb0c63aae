// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"fmt"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// DescribeActivation describes the effect of a policy that is active with the rights of a user.
func DescribeActivation(p *v1alpha1.RemediationPolicy, as planner.Principal) []Field {
	s := &p.Spec
	fields := []Field{
		{"Policy", fmt.Sprintf("%s, of Environment %s", p.Name, s.EnvironmentName)},
		{"Does", fmt.Sprintf("%s (%s) on severity %s and above, trigger %s", s.Action, s.Strategy, s.MinimumSeverity, s.Trigger)},
		{"Within", DescribeLimits(&s.Safety)},
		{"With rights of", namePrincipal(as)},
	}
	if s.Mode == v1alpha1.PolicyModeActive {
		fields = append(fields, Field{"Active so far", "with the permissions of " + namePrincipal(planner.PrincipalOf(s))})
	}
	return append(fields, Field{"Now", describeEligible(p)})
}

// describeEligible says how many objects a policy would have put back.
func describeEligible(p *v1alpha1.RemediationPolicy) string {
	t := p.Status.Targets
	switch {
	case !IsLookedAt(p):
		return "the assessor has not looked at this policy yet: its decision is unknown"
	case t.Eligible == 0:
		return AppendReason(fmt.Sprintf("no plan: %d of %s drifted, none of them to be remediated now", t.Drifted, plural.Of(int(t.Selected), "object")), p.Status.WaitingFor)
	default:
		return AppendReason(fmt.Sprintf("%d of %s drifted, %d of them to be remediated", t.Drifted, plural.Of(int(t.Selected), "object"), t.Eligible), p.Status.WaitingFor)
	}
}

// namePrincipal names a user with the groups.
func namePrincipal(p planner.Principal) string {
	if len(p.Groups) == 0 {
		return p.User
	}
	return p.User + ", groups " + strings.Join(p.Groups, ", ")
}
