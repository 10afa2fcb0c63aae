// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Held is an ABRelease with the finalizer that returns requests.
type Held struct {
	Namespace, Name string
	// Deleting says that the deletion was asked for, and waits.
	Deleting bool
	// Autoscaler has a minimum that a run has raised, and Former is the one of before; empty if none has.
	Autoscaler string
	Former     int32
}

// Silence is a query of a run that Prometheus did not answer.
type Silence struct {
	Namespace, Release, Query string
	// Time of the last attempt.
	Time time.Time
}

// checkFinalizers finds releases that wait for a discovery server which carries out no rollouts: their
// deletion would never end.
func checkFinalizers(s *Snapshot) []Finding {
	const what = "whether releases can be deleted"
	switch mesh := s.HasMesh(); {
	case mesh == ReadUnknown:
		return []Finding{s.Workloads.unknown(what)}
	case mesh == ReadValue && s.carriesOutRollouts():
		return nil
	case !s.Delivery.Held.known():
		return []Finding{s.Delivery.Held.unknown(what)}
	}
	var out []Finding
	for i, h := range s.Delivery.Held.Value {
		if len(out) == maxProblems {
			return append(out, Finding{Severity: Warning, Message: fmt.Sprintf("there are %d more releases with the finalizer", len(s.Delivery.Held.Value)-i)})
		}
		message := "no discovery server carries out rollouts, so the finalizer " + v1alpha1.FinalizerReturnRequests + " would hold its deletion"
		if h.Deleting {
			message = "its deletion waits for a discovery server that carries out rollouts, and no such server is there"
		}
		byHand := ""
		if h.Autoscaler != "" {
			message += fmt.Sprintf(", and the HorizontalPodAutoscaler %s keeps the minReplicas of a run", h.Autoscaler)
			byHand = fmt.Sprintf("kubectl patch hpa %s -n %s --type=merge -p '{\"spec\":{\"minReplicas\":%d}}'\n", h.Autoscaler, h.Namespace, h.Former)
		}
		out = append(out, Finding{
			Severity: Warning, Object: "ABRelease/" + h.Namespace + "/" + h.Name, Message: message,
			Fix: fmt.Sprintf("set delivery.enabled in the values of the chart. Or let the Service select the pods that are to have the requests, and then\n%skubectl patch abrelease %s -n %s --type=merge -p '{\"metadata\":{\"finalizers\":null}}'", byHand, h.Name, h.Namespace),
		})
	}
	return out
}

// checkStrategies names the strategies of people that no release uses. Where rollouts are not enabled,
// delivery.releases names all of them.
func checkStrategies(s *Snapshot) []Finding {
	const what = "which strategies releases use"
	switch {
	case !s.Delivery.Releases.known():
		return []Finding{s.Delivery.Releases.unknown(what)}
	case !s.Delivery.Strategies.known():
		return []Finding{s.Delivery.Strategies.unknown(what)}
	case !s.carriesOutRollouts():
		return nil
	}
	unused := slices.DeleteFunc(s.unusedStrategies(), func(name string) bool { return slices.Contains(s.Delivery.Shipped, name) })
	if len(unused) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Info, Object: "RolloutStrategy/" + unused[0],
		Message: fmt.Sprintf("strategies that no release names: %d: %s", len(unused), named(unused)),
		Fix:     "kubectl delete rolloutstrategy " + unused[0],
	}}
}

// checkPrometheus finds runs that wait because Prometheus does not answer the discovery server.
func checkPrometheus(s *Snapshot) []Finding {
	if !s.Delivery.Silences.known() {
		return []Finding{s.Delivery.Silences.unknown("whether Prometheus answers the queries of rollouts")}
	}
	silences := slices.Clone(s.Delivery.Silences.Value)
	if len(silences) == 0 {
		return nil
	}
	slices.SortFunc(silences, func(a, b Silence) int {
		return strings.Compare(a.Namespace+"/"+a.Release+"/"+a.Query, b.Namespace+"/"+b.Release+"/"+b.Query)
	})
	names, last := make([]string, 0, len(silences)), silences[0].Time
	for _, q := range silences {
		names = append(names, fmt.Sprintf("%s of %s/%s", q.Query, q.Namespace, q.Release))
		if q.Time.After(last) {
			last = q.Time
		}
	}
	return []Finding{{
		Severity: Warning, Object: "ABRelease/" + silences[0].Namespace + "/" + silences[0].Release,
		Message: fmt.Sprintf("Prometheus does not answer the discovery server, so runs wait; queries without an answer, the last at %s: %d: %s",
			last.UTC().Format(time.RFC3339), len(names), named(names)),
		Fix: "look at metrics.prometheus.url in the values of the chart, at the NetworkPolicy of plumbline-xds, and at its log",
	}}
}
