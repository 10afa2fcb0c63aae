// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"time"
)

// rolloutsFlag has the discovery server carry out rollouts; delivery.enabled of the chart sets it.
const rolloutsFlag = "--rollouts"

// Delivery is what rollouts depend on. But for what holds releases, it is read only where there is a discovery
// server.
type Delivery struct {
	// Releases are the ABReleases with spec.rollout.
	Releases Read[[]Release]
	// Strategies are the names of all RolloutStrategies, and Shipped those that the chart has made.
	Strategies Read[[]string]
	Shipped    []string
	// Held are the releases with the finalizer, also those without a rollout.
	Held Read[[]Held]
	// Silences are the queries of runs under way that Prometheus did not answer.
	Silences Read[[]Silence]
}

// Release is an ABRelease with a rollout.
type Release struct {
	Namespace, Name string
	// Strategy is the RolloutStrategy that it names; empty if it names none.
	Strategy string
	// Waiting is the reason that its run waits for, and Message what is said about it; empty if it waits for
	// nothing. Deadline is zero if there is none.
	Waiting, Message string
	Deadline         time.Time
	// NeedsExecutor says that a variation is a clone, or that the minimum of an autoscaler is held in runs.
	NeedsExecutor bool
	// Problem says why a clone cannot be made; empty if nothing is known against it.
	Problem string
}

func (r *Release) id() string { return "ABRelease/" + r.Namespace + "/" + r.Name }

// carriesOutRollouts says whether the discovery server was told to.
func (s *Snapshot) carriesOutRollouts() bool {
	return slices.ContainsFunc(s.Workloads.Value, func(w Workload) bool {
		return w.Name == DiscoveryName && (slices.Contains(w.Args, rolloutsFlag) || slices.Contains(w.Args, rolloutsFlag+"=true"))
	})
}

// checkDelivery finds rollouts that are not carried out, and runs that wait past a deadline.
func checkDelivery(s *Snapshot) []Finding {
	const what = "whether rollouts go on"
	switch {
	case !s.Delivery.Releases.known():
		return []Finding{s.Delivery.Releases.unknown(what)}
	case !s.Delivery.Strategies.known():
		return []Finding{s.Delivery.Strategies.unknown(what)}
	}
	var out []Finding
	enabled := s.carriesOutRollouts()
	for i := range s.Delivery.Releases.Value {
		if len(out) == maxProblems {
			return append(out, Finding{Severity: Warning, Message: fmt.Sprintf("there are %d more releases to look at", len(s.Delivery.Releases.Value)-i)})
		}
		if f, is := s.Delivery.Releases.Value[i].finding(enabled, s.Now); is {
			out = append(out, f)
		}
	}
	if unused := s.unusedStrategies(); !enabled && len(unused) > 0 {
		out = append(out, Finding{
			Severity: Info, Object: "RolloutStrategy/" + unused[0],
			Message: fmt.Sprintf("rollouts are not enabled; strategies that no release names: %d: %s", len(unused), named(unused)),
			Fix:     "set delivery.enabled in the values of the chart, or\nkubectl delete rolloutstrategy " + unused[0],
		})
	}
	return out
}

func (r *Release) finding(enabled bool, now time.Time) (Finding, bool) {
	switch {
	case !enabled:
		return Finding{
			Severity: Warning, Object: r.id(), Message: "it has spec.rollout, and rollouts are not enabled: its stages do not go on",
			Fix: "set delivery.enabled in the values of the chart, or remove spec.rollout",
		}, true
	case r.Waiting != "" && !r.Deadline.IsZero() && now.After(r.Deadline):
		return Finding{
			Severity: Warning, Object: r.id(),
			Message: fmt.Sprintf("its run waits for %s past the deadline %s: %s", r.Waiting, r.Deadline.UTC().Format(time.RFC3339), r.Message),
			Fix:     fmt.Sprintf("kubectl describe abrelease %s -n %s", r.Name, r.Namespace),
		}, true
	}
	return Finding{}, false
}

// unusedStrategies are those that no release names, sorted.
func (s *Snapshot) unusedStrategies() []string {
	names := slices.DeleteFunc(slices.Clone(s.Delivery.Strategies.Value), func(name string) bool {
		return slices.ContainsFunc(s.Delivery.Releases.Value, func(r Release) bool { return r.Strategy == name })
	})
	slices.Sort(names)
	return names
}
