// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
)

// checkWorks finds releases that need writes to workloads which no executor makes: there is none, or the owner
// of the namespace has not let it in. It finds clones that cannot be made as well.
func checkWorks(s *Snapshot) []Finding {
	const what = "whether the executor can write the objects of rollouts"
	switch {
	case !s.Delivery.Releases.known():
		return []Finding{s.Delivery.Releases.unknown(what)}
	case !s.carriesOutRollouts():
		return nil // delivery.releases tells of it
	case !s.Roles.known():
		return []Finding{s.Roles.unknown(what)}
	}
	bound := s.boundNamespaces()
	var out []Finding
	for i := range s.Delivery.Releases.Value {
		r := &s.Delivery.Releases.Value[i]
		if !r.NeedsExecutor {
			continue
		}
		if len(out) == maxProblems {
			return append(out, Finding{Severity: Warning, Message: "there are more releases that need the executor"})
		}
		if f, is := s.workFinding(r, bound); is {
			out = append(out, f)
		}
	}
	return out
}

func (s *Snapshot) workFinding(r *Release, bound []string) (Finding, bool) {
	f := Finding{Severity: Warning, Object: r.id()}
	switch {
	case !s.carriesWorks():
		f.Message = "it needs the executor to write workloads, and no executor carries ReleaseWorks out"
		f.Fix = "set executor.enabled in the values of the chart, and list the namespace " + r.Namespace + " in executor.namespaces"
	case !slices.Contains(bound, r.Namespace):
		f.Message = fmt.Sprintf("it needs the executor to write workloads, and the executor may not write in namespace %s", r.Namespace)
		f.Fix = "add to executor.namespaces of the chart's values and apply the chart again, or:\nkubectl create rolebinding " + executorTargets + " -n " + r.Namespace +
			" --clusterrole=" + executorTargets + " --serviceaccount=" + usualNamespace + ":" + ExecutorName
	case r.Problem != "":
		f.Message = "its clone cannot be made: " + r.Problem
		f.Fix = "kubectl plumbline release lint -f FILE"
	default:
		return Finding{}, false
	}
	return f, true
}
