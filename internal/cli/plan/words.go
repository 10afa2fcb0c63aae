// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// waitsFor says what has to happen before a plan goes on; nothing for one
// that runs or has ended.
func (a *app) waitsFor(p *v1alpha1.RemediationPlan) string {
	control := p.Spec.Control
	switch {
	case remediation.HasEnded(p):
		return ""
	case p.Status.Phase == "":
		return "an executor: no executor has taken it yet"
	case control.Verb == v1alpha1.PlanCancel:
		return "its end, which " + invocation.NameActor(control.RequestedBy) + " asked for"
	case p.Status.Phase == v1alpha1.PlanPaused && control.Verb == v1alpha1.PlanPause:
		return invocation.AppendReason("a person to resume it; paused by "+invocation.NameActor(control.RequestedBy), control.Reason)
	case control.Verb == v1alpha1.PlanPause:
		return "its pause, which " + invocation.NameActor(control.RequestedBy) + " asked for"
	case p.Status.DeferralReason == "":
		return ""
	case p.Status.ResumeTime == nil:
		return p.Status.DeferralReason
	}
	return fmt.Sprintf("%s (%s)", p.Status.DeferralReason, a.FormatUntil(*p.Status.ResumeTime))
}
