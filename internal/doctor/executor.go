// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// executorLogFix shows the pods that carry plans out, and what they say.
func (s *Snapshot) executorLogFix() string {
	selector := " -n plumbline-system -l app.kubernetes.io/component=" + s.executorComponent()
	return "kubectl get pods" + selector + "\nkubectl logs" + selector + " --tail=50"
}

// checkExecutorWorkload asks whether the process that puts drift back is there,
// and whether somebody counts on one that is not.
func checkExecutorWorkload(s *Snapshot) []Finding {
	const what = "whether the executor runs"
	switch s.executor() {
	case ReadUnknown:
		return []Finding{s.executorUnknown(what)}
	case ReadAbsent:
		return countingOnNobody(s)
	case ReadValue:
	}
	w := s.executorWorkload()
	if w == nil {
		return []Finding{{Severity: Critical, Object: "Deployment/" + s.Namespace + "/" + ExecutorName, Fix: reinstallFix, Message: "it does not exist, and the assessor expects it: there is no remediation"}}
	}
	f, found := readiness(s, *w)
	if !found {
		return []Finding{{Severity: OK, Object: "Deployment/" + s.Namespace + "/" + w.Name, Message: fmt.Sprintf("%d of %d replicas are ready", w.Ready, w.Desired)}}
	}
	if w.Ready == 0 {
		f.Message += ": there is no remediation"
		if s.Remediation.Policies.known() && len(s.writing()) == 0 { // nor is there anything to be
			f.Severity, f.Message = Warning, f.Message+", and no policy asks for it at present"
		}
	}
	return []Finding{f}
}

// countingOnNobody finds policies that would act, in an installation that cannot.
func countingOnNobody(s *Snapshot) []Finding {
	if !s.Remediation.Policies.known() {
		return []Finding{s.Remediation.Policies.unknown("whether policies count on an executor, which is not enabled")}
	}
	policies := s.writing()
	if len(policies) == 0 {
		return []Finding{{Severity: OK, Message: "the executor is not enabled, and no policy is Active: Plumbline remediates no drift"}}
	}
	var names, namespaces []string
	for _, p := range policies {
		names = append(names, p.Name)
		if e := s.environment(p.Spec.EnvironmentName); e != nil {
			namespaces = append(namespaces, e.Namespaces...)
		}
	}
	slices.Sort(namespaces)
	namespaces = slices.DeleteFunc(slices.Compact(namespaces), func(name string) bool {
		return slices.Contains(specguard.ExcludedNamespaces(s.Namespace), name)
	})
	return []Finding{{Severity: Warning, Object: "RemediationPolicy/" + names[0], Fix: enableFix(names, namespaces),
		Message: fmt.Sprintf("there is no remediation, though policies are Active (%s): the executor is not enabled", named(names))}}
}

// enableFix gives the values, or takes the policies' word back.
func enableFix(policies, namespaces []string) string {
	return "enable it with these values of the chart, and apply the chart again:\nexecutor:\n  enabled: true\n  namespaces: [" + strings.Join(namespaces, ", ") +
		"]\nor let the policies observe only:\nkubectl plumbline policy deactivate " + policies[0]
}

func checkExecutorLeader(s *Snapshot) []Finding {
	return leadership{ExecutorName, s.executorComponent(), "an executor", "no remediation begins, and remediation under way stands still", s.Remediation.Lease}.check(s)
}

// checkExecutorNamespaces looks for policies that could never repair, because the
// executor may not write where their objects are.
func checkExecutorNamespaces(s *Snapshot) []Finding {
	const what = "whether the executor may write where policies want it to"
	r := &s.Remediation
	switch {
	case !r.Policies.known():
		return []Finding{r.Policies.unknown(what)}
	case !s.Roles.known():
		return []Finding{s.Roles.unknown(what)}
	}
	policies := s.writing()
	if len(policies) == 0 {
		return []Finding{{Severity: OK, Message: "no policy is Active that would have anything written"}}
	}
	switch {
	case !r.Environments.known():
		return []Finding{r.Environments.unknown(what)}
	case !s.Namespaces.known():
		return []Finding{s.Namespaces.unknown(what)}
	case !s.Guards.known():
		return []Finding{s.Guards.unknown(what)}
	}
	guarded, bound := s.guardedNamespaces(), s.boundNamespaces()
	var out []Finding
	for _, p := range policies {
		if f, found := s.reach(p, guarded, bound); found {
			out = append(out, f)
		}
	}
	return out
}

func (s *Snapshot) reach(p *v1alpha1.RemediationPolicy, guarded map[string]bool, bound []string) (Finding, bool) {
	f := Finding{Severity: Warning, Object: "RemediationPolicy/" + p.Name}
	e := s.environment(p.Spec.EnvironmentName)
	if e == nil {
		f.Message = fmt.Sprintf("its Environment %s does not exist: it can never remediate an object", p.Spec.EnvironmentName)
		f.Fix = "make the Environment, or a policy of another one:\nkubectl get environments"
		return f, true
	}
	var unbound []string
	for _, namespace := range e.Namespaces {
		if guarded[namespace] && !slices.Contains(bound, namespace) {
			unbound = append(unbound, namespace)
		}
	}
	if len(unbound) == 0 {
		return Finding{}, false
	}
	f.Message = fmt.Sprintf("the executor may not write in %s of its Environment %s: it can never remediate drift there", named(unbound), e.Name)
	f.Fix = "add to executor.namespaces of the chart's values and apply the chart again, or:"
	for _, namespace := range unbound[:min(len(unbound), maxNamed)] {
		f.Fix += "\nkubectl create rolebinding " + executorTargets + " -n " + namespace + " --clusterrole=" + executorTargets +
			" --serviceaccount=" + usualNamespace + ":" + ExecutorName
	}
	return f, true
}

// checkEvidence asks whether the records of what was done are kept, and can be
// read and verified.
func checkEvidence(s *Snapshot) []Finding {
	w := s.executorWorkload()
	if w == nil {
		return []Finding{{Severity: Unknown, Message: "cannot tell where records are kept: the Deployment " + ExecutorName + " does not exist"}}
	}
	return slices.Concat(publicKeys(s, w.Name), keptWhere(s, w), servedRecords(s))
}

func publicKeys(s *Snapshot, deployment string) []Finding {
	keys := s.Remediation.PublicKeys
	f := Finding{Severity: Warning, Object: "ConfigMap/" + s.Namespace + "/" + EvidenceName}
	block, _ := pem.Decode([]byte(keys.Value))
	restart := "the executor fills it in when it starts:\nkubectl rollout restart deployment " + deployment + " -n plumbline-system"
	switch {
	case !keys.known():
		f = keys.unknown("whether the public keys of the evidence are there")
		f.Object = "ConfigMap/" + s.Namespace + "/" + EvidenceName
	case !keys.present():
		f.Message = "it does not exist: an auditor without a copy of the public keys cannot verify records"
		f.Fix = reinstallFix + "\n" + restart
	case block == nil:
		f.Message = "it has no public key: an auditor without a copy cannot verify records"
		f.Fix = restart
	default:
		return nil
	}
	return []Finding{f}
}

// evidenceVolume is the name of the volume that records go to.
const evidenceVolume = "evidence"

func keptWhere(s *Snapshot, w *Workload) []Finding {
	if !strings.HasPrefix(w.arg("--evidence="), "file:") || !slices.Contains(w.Fleeting, evidenceVolume) {
		return nil
	}
	return []Finding{{Severity: Warning, Object: "Deployment/" + s.Namespace + "/" + w.Name,
		Message: "records are in a volume that goes with its pod (mayBeLost): after that the writes of the executor cannot be proven",
		Fix:     "set executor.evidence.url to a bucket, or leave executor.evidence.volume.source out, and apply the chart again"}}
}

const servedFix = "\nopen port 8081 of these pods to the control plane, or set executor.evidence.serve to false"

// servedRecords asks whether records can be read through the API server, where
// that is wanted.
func servedRecords(s *Snapshot) []Finding {
	component, wanted := s.ServesRecords()
	if !wanted {
		return nil
	}
	if !s.Pods.known() {
		return []Finding{s.Pods.unknown("whether the executor serves its records")}
	}
	var out []Finding
	for _, pod := range s.Pods.Value {
		if pod.Component != component || !pod.Ready {
			continue // executor.workload tells of those that are not ready
		}
		switch served := pod.Records; {
		case served.Right != "":
			out = append(out, served.unknown("whether "+pod.Name+" serves its records"))
		case !served.present():
			out = append(out, Finding{Severity: Warning, Object: "Pod/" + s.Namespace + "/" + pod.Name, Fix: s.executorLogFix() + servedFix,
				Message: "its records cannot be read through the API server, as executor.evidence.serve asks: " + served.why()})
		}
	}
	return out
}
