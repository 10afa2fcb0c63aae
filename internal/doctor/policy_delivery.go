// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// The policies on rollouts. The chart installs them with delivery.enabled.
const (
	releaseWritersPolicy     = "plumbline-release-writers"
	releaseWorkWritersPolicy = "plumbline-release-work-writers"
	releaseSupersedePolicy   = "plumbline-release-supersede"
)

func expectReleaseWriters() expected {
	return expectWriters(releaseWritersPolicy, writesOf("abreleases", createAndUpdate...),
		"a user that may write releases can promote or approve a run in the name of another user")
}

func expectReleaseWorkWriters() expected {
	return expectWriters(releaseWorkWritersPolicy, writesOf("releaseworks", createAndUpdate...),
		"a user that may write ReleaseWorks can make the executor scale and write workloads")
}

// expectReleaseSupersede has no unconditional: the matchConditions of the chart let writes pass
// that change no run.
func expectReleaseSupersede() expected {
	workloads := []target{{"apps", "deployments"}, {"apps", "statefulsets"}, {"apps", "daemonsets"}}
	return expected{
		kind: validatingPolicy, name: releaseSupersedePolicy, selector: true, eitherFailure: true, param: "ABRelease",
		requests: requestsOn(workloads, admissionv1.Update),
		harm:     "a new pod template supersedes a run where spec.rollout.supersede is Reject",
	}
}

// checkReleasePolicy compares a policy with what the chart installs, where rollouts are carried out.
func checkReleasePolicy(e expected) func(*Snapshot) []Finding {
	return withMesh("whether the policy "+e.name+" is in force", func(s *Snapshot) []Finding {
		if !s.carriesOutRollouts() {
			return []Finding{{Severity: OK, Message: "rollouts are not enabled"}}
		}
		return policyFindings(s, e)
	})
}
