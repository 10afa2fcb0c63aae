// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/internal/gitops"
)

// routersFlag has releases name TrafficRouters; routers.enabled of the chart sets it.
const routersFlag = "--routers"

// Routers is the state that splits at TrafficRouters depend on. It is read also where there is no discovery server.
type Routers struct {
	// All are the TrafficRouters of the cluster.
	All Read[[]Router]
	// Releases name TrafficRouters.
	Releases Read[[]RoutedRelease]
	// Owned are the routes of releases that a GitOps tool applies.
	Owned Read[[]gitops.Ownership]
}

// Router is a TrafficRouter.
type Router struct {
	Name, Type string
	// Ready is the status of the condition, empty while the discovery server has not looked at the present generation.
	// Reason and Message are those of the condition.
	Ready, Reason, Message string
}

// RoutedRelease is a release that names TrafficRouters.
type RoutedRelease struct {
	Namespace, Name string
	Routers         []string
}

// takesRouters tells whether the discovery server has releases name TrafficRouters.
func (s *Snapshot) takesRouters() bool {
	return slices.ContainsFunc(s.Workloads.Value, func(w Workload) bool {
		return w.Name == DiscoveryName && (slices.Contains(w.Args, routersFlag) || slices.Contains(w.Args, routersFlag+"=true"))
	})
}

// checkRoutersReady finds TrafficRouters that are not Ready.
func checkRoutersReady(s *Snapshot) []Finding {
	if !s.Routers.All.known() {
		return []Finding{s.Routers.All.unknown("whether TrafficRouters are ready")}
	}
	var out []Finding
	for _, r := range s.Routers.All.Value {
		if r.Ready != "False" {
			continue
		}
		out = append(out, Finding{
			Severity: Warning, Object: "TrafficRouter/" + r.Name, Message: "it is not Ready: " + r.Reason + ": " + r.Message,
			Fix: "kubectl plumbline router check " + r.Name,
		})
	}
	return out
}

// checkRoutersEnabled finds TrafficRouters that no discovery server looks at.
func checkRoutersEnabled(s *Snapshot) []Finding {
	const what = "whether TrafficRouters are in use"
	switch mesh := s.HasMesh(); {
	case !s.Routers.All.known():
		return []Finding{s.Routers.All.unknown(what)}
	case len(s.Routers.All.Value) == 0:
		return nil
	case mesh == ReadUnknown:
		return []Finding{s.Workloads.unknown(what)}
	case mesh == ReadValue && s.takesRouters():
		return nil
	}
	names := make([]string, len(s.Routers.All.Value))
	for i, r := range s.Routers.All.Value {
		names[i] = r.Name
	}
	slices.Sort(names)
	return []Finding{{
		Severity: Warning, Object: "TrafficRouter/" + names[0],
		Message: fmt.Sprintf("no discovery server looks at TrafficRouters, so each release that names one is refused; TrafficRouters: %d: %s", len(names), named(names)),
		Fix:     "set routers.enabled in the values of the chart, or delete the TrafficRouters",
	}}
}

// checkRouterNames finds releases that name a TrafficRouter that is not there.
func checkRouterNames(s *Snapshot) []Finding {
	const what = "whether releases name TrafficRouters that are there"
	switch {
	case !s.Routers.Releases.known():
		return []Finding{s.Routers.Releases.unknown(what)}
	case !s.Routers.All.known():
		return []Finding{s.Routers.All.unknown(what)}
	}
	var out []Finding
	for _, release := range s.Routers.Releases.Value {
		for _, name := range release.Routers {
			if slices.ContainsFunc(s.Routers.All.Value, func(r Router) bool { return r.Name == name }) {
				continue
			}
			out = append(out, Finding{
				Severity: Warning, Object: "ABRelease/" + release.Namespace + "/" + release.Name,
				Message: "it names TrafficRouter " + name + ", which does not exist: its split is refused",
				Fix:     "make TrafficRouter " + name + ", or make another release, since routers are immutable",
			})
		}
	}
	return out
}

// checkRouteOwners finds GitOps tools that undo the weights of routes.
func checkRouteOwners(s *Snapshot) []Finding {
	if !s.Routers.Owned.known() {
		return []Finding{s.Routers.Owned.unknown("whether a GitOps tool undoes the weights of routes")}
	}
	var out []Finding
	for _, o := range s.Routers.Owned.Value {
		f := Finding{Object: o.Route.String(), Fix: fmt.Sprintf("add this to the spec of the object of %s:\n%s", o.Owner, o.Rule)}
		switch {
		case o.Unread != "":
			f.Severity, f.Message = Unknown, fmt.Sprintf("cannot tell whether %s ignores its weights: %s", o.Owner, o.Unread)
		case !o.Ignored:
			f.Severity, f.Message = Warning, fmt.Sprintf("%s applies it and does not ignore its weights: it undoes each split", o.Owner)
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}
