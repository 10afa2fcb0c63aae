// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// checkLedgers looks for ledgers that grant nothing, and for ones that are gone.
func checkLedgers(s *Snapshot) []Finding {
	r := &s.Remediation
	if !r.Ledgers.known() {
		return []Finding{r.Ledgers.unknown("whether a ledger holds remediation back")}
	}
	var out []Finding
	for i := range r.Ledgers.Value {
		out = append(out, s.refusals(&r.Ledgers.Value[i])...)
	}
	if !r.Environments.known() {
		return append(out, r.Environments.unknown("whether Environments have the ledgers that they remember"))
	}
	return append(out, s.forgotten()...)
}

func (s *Snapshot) ledgerObject(name string) string {
	return "RemediationLedger/" + s.Namespace + "/" + name
}

// refusals are the reasons for which one ledger grants nothing, to all or to one
// policy.
func (s *Snapshot) refusals(l *v1alpha1.RemediationLedger) []Finding {
	var out []Finding
	say := func(severity Severity, fix, format string, args ...any) {
		out = append(out, Finding{Severity: severity, Object: s.ledgerObject(l.Name), Fix: fix, Message: fmt.Sprintf(format, args...)})
	}
	if halt := l.Spec.Halt; halt != nil {
		say(Info, resumeFix(l.Name), "%s halted all that it grants: %s", halt.RequestedBy, halt.Reason)
	}
	if from := l.Status.GrantStartTime; from != nil && from.After(s.Now) && l.Spec.Override == nil {
		say(Warning, grantFix(l.Name), "it was recreated, the grants before are unknown, and it grants no steps until %s", from.UTC().Format(time.RFC3339))
	}
	for i := range l.Status.Breakers {
		b := &l.Status.Breakers[i]
		name, limits, there := s.policyOf(b.PolicyUID)
		if there && b.State != v1alpha1.BreakerClosed {
			say(Warning, breakerFix(name), "%s", breakerWords(l, b, name, limits))
		}
	}
	return out
}

// policyOf finds a policy by its uid. Where policies cannot be read its uid has to
// do; one that is gone has nothing held back.
func (s *Snapshot) policyOf(uid string) (name string, settings v1alpha1.CircuitBreakerSettings, there bool) {
	if !s.Remediation.Policies.known() {
		return "with uid " + uid, v1alpha1.CircuitBreakerSettings{}, true
	}
	for i := range s.Remediation.Policies.Value {
		if p := &s.Remediation.Policies.Value[i]; string(p.UID) == uid {
			return p.Name, p.Spec.Safety.CircuitBreaker, true
		}
	}
	return "", v1alpha1.CircuitBreakerSettings{}, false
}

func breakerWords(l *v1alpha1.RemediationLedger, b *v1alpha1.LedgerBreaker, policy string, settings v1alpha1.CircuitBreakerSettings) string {
	words := fmt.Sprintf("the circuit breaker of policy %s is open after %d failures in a row", policy, b.Failures)
	switch {
	case ledger.StateOf(&l.Status, b) == v1alpha1.BreakerHalfOpen:
		return fmt.Sprintf("%s; plan %s/%s shows whether it closes", words, b.Probe.Namespace, b.Probe.PlanName)
	case b.LastOpenTime != nil && settings.OpenDuration != nil:
		return fmt.Sprintf("%s; one step is tried from %s on", words, b.LastOpenTime.Add(settings.OpenDuration.Duration).UTC().Format(time.RFC3339))
	default:
		return words
	}
}

func resumeFix(ledger string) string {
	if ledger == ClusterLedger {
		return "kubectl plumbline resume --all-environments"
	}
	return "kubectl plumbline resume " + ledger
}

func grantFix(ledger string) string {
	return "find the user that deleted it, and wait; or override the wait (YOU is the output of kubectl auth whoami):\n" +
		"kubectl patch remediationledger " + ledger + " -n plumbline-system --type=merge -p '{\"spec\":{\"grant\":{\"requestedBy\":\"YOU\",\"reason\":\"WHY\"}}}'"
}

func breakerFix(policy string) string {
	return "find out why its plans failed; the breaker closes by itself when one does well:\n" +
		"kubectl get remediationplans -A | grep -E 'Failed|PartialSuccess'\nkubectl plumbline explain " + policy
}

const forgottenFix = "find the user that deleted it in the API server's audit log; the executor makes another one, which grants no steps for a day"

// forgotten are the ledgers that Environments remember, and that are gone.
func (s *Snapshot) forgotten() []Finding {
	uids := map[string]string{}
	for i := range s.Remediation.Ledgers.Value {
		l := &s.Remediation.Ledgers.Value[i]
		uids[l.Name] = string(l.UID)
	}
	var out []Finding
	remembered := false
	for _, e := range s.Remediation.Environments.Value {
		if e.Ledger == "" {
			continue
		}
		remembered = true
		f := Finding{Severity: Warning, Object: s.ledgerObject(e.Name), Fix: forgottenFix}
		switch uid, there := uids[e.Name]; {
		case !there:
			f.Message = fmt.Sprintf("Environment %s remembers it, and it is gone: its grants are forgotten", e.Name)
		case uid != e.Ledger:
			f.Message = fmt.Sprintf("Environment %s remembers another one, which is gone: the grants of that one are forgotten", e.Name)
		default:
			continue
		}
		out = append(out, f)
	}
	if _, there := uids[ClusterLedger]; remembered && !there {
		out = append(out, Finding{Severity: Warning, Object: s.ledgerObject(ClusterLedger), Fix: forgottenFix,
			Message: "it is gone, and Environments remember theirs: the grants of the whole cluster are forgotten"})
	}
	return out
}
