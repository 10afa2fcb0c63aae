// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// checkDenyPolicy asks whether guards in mode Deny do refuse. A policy whose
// parameter kind is gone matches nothing and says nothing about it.
func checkDenyPolicy(s *Snapshot) []Finding {
	switch {
	case !s.Policies.known():
		return []Finding{s.Policies.unknown("whether guards in mode Deny are enforced")}
	case s.policy(denyPolicy) != nil && s.Resources.known() && !s.serves(v1alpha1.GroupVersion.Group, "clusterspecguards"):
		return []Finding{withoutParameters(s.policy(denyPolicy))}
	case !s.Guards.known():
		return []Finding{s.Guards.unknown("which guards are in mode Deny")}
	case !s.Resources.known():
		return []Finding{s.Resources.unknown("whether the kind of the policy's parameters is served")}
	}
	denying := s.denying()
	structure := policyFindings(s, expectDeny(s))
	if len(denying) == 0 {
		return withoutDeny(s, structure)
	}
	out := structure
	for _, g := range denying {
		out = append(out, enforcement(g)...)
	}
	return append(out, denyProbe(s)...)
}

// denying are the guards in mode Deny that are not suspended.
func (s *Snapshot) denying() []*Guard {
	var out []*Guard
	for i := range s.Guards.Value {
		g := &s.Guards.Value[i]
		if g.Spec.Mode == v1alpha1.GuardModeDeny && !g.suspended(s) {
			out = append(out, g)
		}
	}
	return out
}

// suspended: a policy has no clock, so a guard in mode Deny stays suspended until
// the assessor has said of this generation that the time is over.
func (g *Guard) suspended(s *Snapshot) bool {
	if g.Spec.Suspend == nil {
		return false
	}
	over := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionSuspended)
	lifted := over != nil && over.Status == metav1.ConditionFalse && over.ObservedGeneration == g.Generation
	return s.Now.Before(g.Spec.Suspend.EndTime.Time) || (g.Spec.Mode == v1alpha1.GuardModeDeny && !lifted)
}

// withoutParameters: the policy looks for its kind first, and not to find it is
// an error.
func withoutParameters(p *Policy) Finding {
	harm := "the policy is silently off and every write passes"
	if p.FailurePolicy == admissionv1.Fail {
		harm = "every write of a guarded kind is refused"
	}
	return Finding{Severity: Critical, Object: validatingPolicy + "/" + denyPolicy, Fix: reinstallFix,
		Message: "the kind of its parameters, ClusterSpecGuard, is not served: " + harm}
}

// withoutDeny: what is wrong with the policy harms nobody yet.
func withoutDeny(s *Snapshot, structure []Finding) []Finding {
	if s.policy(denyPolicy) == nil {
		return []Finding{{Severity: Info, Message: "no guard is in mode Deny, and the policy " + denyPolicy + " is not installed"}}
	}
	if len(structure) == 0 {
		return []Finding{{Severity: OK, Message: "no guard is in mode Deny; the policy " + denyPolicy + " stands ready"}}
	}
	for i := range structure {
		if structure[i].Severity != Unknown {
			structure[i].Severity = Warning
		}
		structure[i].Message += " (no guard is in mode Deny at present)"
	}
	return structure
}

// enforcement is what the assessor has proved about one guard.
func enforcement(g *Guard) []Finding {
	condition := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEnforced)
	switch {
	case condition == nil || condition.Status == metav1.ConditionTrue:
		return nil
	case condition.Status == metav1.ConditionFalse:
		return []Finding{{Severity: Critical, Object: g.ID(), Fix: "kubectl describe clusterspecguard " + g.Name,
			Message: fmt.Sprintf("it is not enforced (%s): %s", condition.Reason, condition.Message)}}
	default:
		return []Finding{{Severity: Unknown, Object: g.ID(), Fix: "kubectl describe clusterspecguard " + g.Name,
			Message: fmt.Sprintf("cannot tell whether it is enforced (%s): %s", condition.Reason, condition.Message)}}
	}
}

func denyProbe(s *Snapshot) []Finding {
	probe, plan := s.Probes.Deny, s.Probes.DenyPlan
	switch {
	case plan.Guard == "":
		return nil // no write can be made up that a guard would have to refuse
	case !probe.known():
		return []Finding{probe.unknown("whether " + plan.Guard + " really rejects an untrusted write")}
	case !probe.present() || probe.Value.By == denyPolicy:
		return nil
	case probe.Value.Refused:
		return []Finding{{Severity: Unknown, Object: plan.Guard,
			Message: "cannot tell whether it really rejects an untrusted write: another policy or webhook rejected it: " + probe.Value.Message}}
	case plan.Trusted:
		return []Finding{{Severity: Unknown, Object: plan.Guard, Fix: "run as a user that the guard does not trust",
			Message: "cannot tell whether it really rejects an untrusted write: your user is among its trusted writers"}}
	default:
		return []Finding{{Severity: Critical, Object: plan.Guard, Fix: reinstallFix,
			Message: fmt.Sprintf("a dry-run create of a %s in namespace %s by %s, an untrusted user, was not rejected", plan.Kind.Kind, plan.Namespace, s.User.Value.Name)}}
	}
}
