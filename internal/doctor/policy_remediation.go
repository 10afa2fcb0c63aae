// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// The policies on the kinds of remediation. They hold whether an executor runs or
// not: what is forged today is carried out by the one that is enabled tomorrow.
const (
	policyWritersPolicy     = "plumbline-policy-writers"
	planWritersPolicy       = "plumbline-plan-writers"
	requestWritersPolicy    = "plumbline-request-writers"
	assessmentWritersPolicy = "plumbline-assessment-writers"
	ledgerWritersPolicy     = "plumbline-ledger-writers"
	executorMarksPolicy     = "plumbline-executor-marks"
)

// executorCreationsPolicy is installed with the executor alone.
const executorCreationsPolicy = "plumbline-executor-creations"

// executorStandbysPolicy is installed with the executor and the mesh.
const executorStandbysPolicy = "plumbline-executor-standbys"

// clusterWide are requests on resources that have no namespace.
func clusterWide(requests []request) []request {
	for i := range requests {
		requests[i].clusterScoped = true
	}
	return requests
}

// createAndUpdate are the writes of a kind that no policy has to protect from deletion.
var createAndUpdate = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}

// writesOf are writes of a kind of Plumbline, and the updates of its status.
func writesOf(resource string, operations ...admissionv1.OperationType) []request {
	return append(
		requestsOn([]target{ownKind(resource)}, operations...),
		ownKind(resource+"/status").request(admissionv1.Update))
}

// expectWriters is a policy that sees each of some writes, whoever is the writer.
func expectWriters(name string, requests []request, harm string) expected {
	return expected{kind: validatingPolicy, name: name, unconditional: true, requests: requests, harm: harm}
}

func expectPolicyWriters() expected {
	return expectWriters(policyWritersPolicy, clusterWide(writesOf("remediationpolicies", createAndUpdate...)),
		"a user that may write policies can make the executor act with the permissions of another user")
}

func expectPlanWriters() expected {
	return expectWriters(planWritersPolicy, writesOf("remediationplans", append(createAndUpdate, admissionv1.Delete)...),
		"a user that may write plans can make the executor act with the permissions of another user")
}

func expectRequestWriters() expected {
	return expectWriters(requestWritersPolicy, writesOf("remediationrequests", createAndUpdate...),
		"a user that may ask for a remediation can ask with the permissions of another user")
}

func expectAssessmentWriters() expected {
	return expectWriters(assessmentWritersPolicy, writesOf("effectivenessassessments", append(createAndUpdate, admissionv1.Delete)...),
		"a user that may write assessments can close breakers and hold plans back")
}

func expectLedgerWriters() expected {
	return expectWriters(ledgerWritersPolicy, writesOf("remediationledgers", createAndUpdate...),
		"a user that may write ledgers can lift all limits of remediation")
}

func expectExecutorMarks() expected {
	return expectWriters(executorMarksPolicy, append(
		clusterWide([]request{ownKind("environments/status").request(admissionv1.Update)}),
		ownKind("baselines/status").request(admissionv1.Update)),
		"others move the executor's marks, and the executor writes more than its own")
}

// checkExecutorCreations compares the policy on objects that the executor makes again. Its
// matchCondition lets the creations of all other users pass.
func checkExecutorCreations(s *Snapshot) []Finding {
	return policyFindings(s, expected{
		kind: validatingPolicy, name: executorCreationsPolicy, selector: true, derived: true,
		requests: requestsOn(s.registered(), admissionv1.Create),
		harm:     "an object may be made again after its plan was canceled",
	})
}

// checkExecutorStandbys compares the policy on the ABReleases that the executor writes. Its
// matchCondition lets the writes of all other users pass.
func checkExecutorStandbys(s *Snapshot) []Finding {
	if !s.executorHas(meshFlag) {
		return []Finding{{Severity: OK, Message: "the installation has no mesh: the executor makes no standbys"}}
	}
	return policyFindings(s, expected{
		kind: validatingPolicy, name: executorStandbysPolicy,
		requests: requestsOn([]target{ownKind("abreleases")}, admissionv1.Create, admissionv1.Update, admissionv1.Delete),
		harm:     "with the token of the executor, the requests of each Service can be moved where its role is bound",
	})
}

// Forgery is a write that nobody but Plumbline's own parts may do, and the policy
// that has to refuse it.
type Forgery struct {
	Policy string
	// What was tried, in words.
	What string
	Read[Outcome]
}

// forgeries are the writes that were tried against one policy and passed.
func (s *Snapshot) forgeries(e expected) []Finding {
	var out []Finding
	for _, f := range s.Probes.Forgeries {
		if f.Policy == e.name && f.present() && !f.Value.Refused {
			out = append(out, Finding{Severity: Critical, Object: e.object(), Fix: reinstallFix,
				Message: f.What + " in a dry run was not refused: " + e.harm})
		}
	}
	return out
}

// checkForged compares a policy with what the chart installs, and looks at what
// became of a real write.
func checkForged(e expected) func(*Snapshot) []Finding {
	return func(s *Snapshot) []Finding { return append(policyFindings(s, e), s.forgeries(e)...) }
}
